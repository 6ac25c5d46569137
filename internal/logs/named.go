package logs

import (
	"fmt"
	"log/slog"
)

// Named is the ReplaceAttr of a JSON handler: what has a name, such as a task or its state, is told by that, as a text handler does.
func Named(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindAny {
		if s, ok := a.Value.Any().(fmt.Stringer); ok {
			a.Value = slog.StringValue(fmt.Sprint(s))
		}
	}
	return a
}
