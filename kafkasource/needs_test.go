package kafkasource

import (
	"fmt"
	"testing"
)

// TestNeeds: what a source must be let to use follows from its description.
func TestNeeds(t *testing.T) {
	for name, x := range map[string]struct {
		s    *Source
		want string
	}{
		"topics":    {Topics("a", "b"), "[{topic a false true false } {topic b false true false }]"},
		"pattern":   {Pattern("log-.*").Brokers("x:1", "y:2"), "[{topic log-.* true true false x:1,y:2}]"},
		"group":     {Topics("a").Start(Committed("g", Earliest())), "[{topic a false true false } {group g false true false }]"},
		"commit":    {Topics("a").Start(Committed("g", Earliest())).CommitTo("g"), "[{topic a false true false } {group g false true true }]"},
		"otherwise": {Topics("a").Start(Committed("g", Committed("h", Position{}))), "[{topic a false true false } {group g false true false } {group h false true false }]"},
	} {
		if got := fmt.Sprint(x.s.Needs()); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}
