package cli

import (
	"strings"
	"testing"
)

func TestPlacement(t *testing.T) {
	w := newWorld(t)
	job := w.wordJob("in.txt", "out")
	in := w.start("plan", job, "--agents", "3", "--agent.slots", "2", "--strategy", "evenly-spread", "--parallelism", "4")
	in.expect(0)
	out := in.stdout.String()
	for _, want := range []string{"placement on 3 agents, evenly-spread: 4 of 6 slots used", "\n  agent-1    [0] ", "\n             [1] ", "\n  agent-3    [0] ", " 4/4"} {
		if !strings.Contains(out, want) {
			t.Errorf("the picture lacks %q:\n%s", want, out)
		}
	}
	w.start("plan", job, "--strategy", "no-such").expect(2, "no-such")
	in = w.start("plan", job)
	in.expect(0)
	if strings.Contains(in.stdout.String(), "placement") {
		t.Errorf("a picture though nobody asked for one:\n%s", &in.stdout)
	}
	w.start("plan", job, "--parallelism", "9", "--agents", "1", "--agents.max", "2").expect(3, "needs 9 slots")
}
