package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// timings are the phases of a start, each with the moment it was over.
type timings struct {
	start time.Time
	marks []timing
}

type timing struct {
	phase string
	at    time.Time
}

// newTimings counts from the start of this process, as near as that is known.
func newTimings() *timings { return &timings{start: processStart} }

var processStart = time.Now()

// mark notes that a phase is over, the first time it is called for it.
func (t *timings) mark(phase string) { t.markAt(phase, time.Now()) }

func (t *timings) markAt(phase string, at time.Time) {
	if t == nil {
		return
	}
	for _, m := range t.marks {
		if m.phase == phase {
			return
		}
	}
	t.marks = append(t.marks, timing{phase, at})
}

// print writes a line a phase: how long it took, and the time since the start.
func (t *timings) print(w io.Writer) {
	last := t.start
	for _, m := range t.marks {
		fmt.Fprintf(w, "%s%s%8.0f ms  %8.0f ms\n", m.phase, strings.Repeat(" ", max(1, 24-len(m.phase))),
			float64(m.at.Sub(last))/1e6, float64(m.at.Sub(t.start))/1e6)
		last = m.at
	}
}
