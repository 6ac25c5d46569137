package jobspec

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// zoneNames are the names of IANA's time zones, one a line: those that Go embeds. TestZoneNames keeps them current.
//
//go:embed zones.txt
var zoneNames string

// UnknownZone is the message about a time zone that there isn't, with the nearest that there is.
func UnknownZone(name string) string {
	switch {
	case name == "" || name == "Local":
		return fmt.Sprintf("time zone %q is not the same everywhere: name one, such as UTC or Europe/Berlin", name)
	}
	names := strings.Fields(zoneNames)
	if n := strict.Nearest(name, names); n != "" {
		return fmt.Sprintf("unknown time zone %q; did you mean %q?", name, n)
	}
	for _, n := range names { // the city alone
		if _, city, ok := strings.Cut(n, "/"); ok && strings.EqualFold(strings.ReplaceAll(name, " ", "_"), city) {
			return fmt.Sprintf("unknown time zone %q; did you mean %q?", name, n)
		}
	}
	return fmt.Sprintf("unknown time zone %q: names are those of IANA, such as Europe/Berlin or UTC", name)
}
