package plane

import (
	"fmt"
	"strings"
	"time"
)

// Outlook says what slots there are and will be.
func (p *Plane) Outlook(now time.Time) string {
	s := p.Slots.Supply()
	parts := []string{fmt.Sprintf("%d of %s free on %s", s.Free, Count(s.Slots, "slot"), Count(s.Alive+s.Probation, "agent"))}
	if s.Cut {
		parts[0] = fmt.Sprintf("%s in use on %s, which have %v left of %v", Count(s.Slots, "slot"), Count(s.Alive+s.Probation, "agent"), s.Left, s.Total)
	}
	if s.Starting > 0 {
		starting := Count(s.Starting, "agent") + " starting"
		if age := now.Sub(s.Since).Round(time.Second); age > 0 {
			starting += fmt.Sprintf(" for up to %v", age)
		}
		parts = append(parts, starting)
	}
	if s.Asked > 0 {
		parts = append(parts, Count(s.Asked, "agent")+" asked for and not granted")
	}
	if s.Limit > 0 && s.Alive+s.Probation+s.Starting+s.Asked >= s.Limit {
		parts = append(parts, fmt.Sprintf("the limit of %s (%s) is reached", Count(s.Limit, "agent"), limits[s.LimitBy]))
	}
	if s.Full {
		parts = append(parts, fmt.Sprintf("the limit of %s (slots.max) is reached", Count(s.Slots, "slot")))
	}
	if len(s.Excluded) > 0 {
		parts = append(parts, "excluded hosts: "+strings.Join(s.Excluded, ", "))
	}
	if s.Starved != "" {
		parts = append(parts, "no more agents will come: "+s.Starved)
	}
	return strings.Join(parts, ", ")
}

// limits are the options that set them.
var limits = [...]string{"agents.max", "slots.max", "agents.max-cpu", "agents.max-memory", "agents.max-resources"}

// Count is a number of things, in words: "1 slot", "2 slots".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
