package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
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

// agents notes when the agents that a job has got its slots from came, each phase with the last of them, and when all of its tasks ran. Times are by the
// clocks of those who tell them.
func (t *timings) agents(snap *appmaster.Snapshot) {
	last := func(phase string, of func(a *appmaster.Agent) time.Time) {
		var at time.Time
		for i := range snap.Agents {
			if x := of(&snap.Agents[i]); x.After(at) {
				at = x
			}
		}
		if !at.IsZero() {
			t.markAt(phase, at)
		}
	}
	last("agents granted", func(a *appmaster.Agent) time.Time { return a.Granted })
	last("agents started", func(a *appmaster.Agent) time.Time { return a.Started })
	last("agents registered", func(a *appmaster.Agent) time.Time { return a.Joined })
	t.markAt("tasks deployed", snap.Since)
}

// print writes a line a phase: how long it took, and the time since the start. A phase is never over before the one ahead of it: where the clocks of several
// processes, or the moment that this one saw something, say so, it took no time.
func (t *timings) print(w io.Writer) {
	last := t.start
	for _, m := range t.marks {
		if m.at.Before(last) {
			m.at = last
		}
		fmt.Fprintf(w, "%s%s%8.0f ms  %8.0f ms\n", m.phase, strings.Repeat(" ", max(1, 24-len(m.phase))),
			float64(m.at.Sub(last))/1e6, float64(m.at.Sub(t.start))/1e6)
		last = m.at
	}
}
