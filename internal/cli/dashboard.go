package cli

import (
	"fmt"

	"github.com/heddle-stream/heddle/appmaster/web"
	"github.com/heddle-stream/heddle/internal/lastlines"
	"github.com/heddle-stream/heddle/internal/logs"
)

// pageLines is how many lines of a log the dashboard shows.
const pageLines = 500

// options are the options in force, as the dashboard shows them.
func (a *application) options() []web.Option {
	values := a.conf.Values()
	list := make([]web.Option, 0, len(values))
	for _, v := range values {
		list = append(list, web.Option{Name: v.Option.Name, Value: v.Shown(), Origin: v.Origin(), Doc: v.Option.Doc})
	}
	return list
}

// lastLines returns the end of the log of a process of the application, by its name.
func (a appDir) lastLines(name string) ([]string, error) {
	file, ok := a.logs()[name]
	if !ok {
		return nil, fmt.Errorf("there is no log of %s on this host", name)
	}
	lines := lastlines.Of(file, pageLines)
	if older := pageLines - len(lines); older > 0 { // it was moved aside, and begun anew
		lines = append(lastlines.Of(logs.Aside(file, 1), older), lines...)
	}
	return lines, nil
}
