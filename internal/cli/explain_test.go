package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster/plane"
)

// TestExplainLocal asks an application that waits for agents that nobody starts.
func TestExplainLocal(t *testing.T) {
	w := newWorld(t)
	in := w.start("run", w.endless(), "--target", "standalone", "--agents", "1", "--detach")
	in.expect(0)
	var x localExplanation
	for end := time.Now().Add(time.Minute); len(x.Pending) == 0 && time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		in = w.start("explain", "--json")
		in.expect(0)
		if err := json.Unmarshal([]byte(in.stdout.String()), &x); err != nil {
			t.Fatal(err)
		}
	}
	if len(x.Pending) != 1 || len(x.Pending[0].Reasons) == 0 || x.State != "waiting" {
		t.Fatalf("explanation %+v", x)
	}
	in = w.start("explain", x.App)
	in.expect(0)
	for _, want := range []string{x.App, "waits for 1 slot, for ", "1 agent is starting", "started by you", "\n  heddle agent --secrets " + w.state + "/" + x.App + "/join/agent-1\n"} {
		if !strings.Contains(in.stdout.String(), want) {
			t.Errorf("no %q in:\n%s", want, &in.stdout)
		}
	}
	w.start("cancel", x.App).expect(0)
	w.start("explain", "heddle-0-none").expect(3, "heddle-0-none")
}

func TestPrintExplanation(t *testing.T) {
	var out bytes.Buffer
	s := &session{env: Env{Stdout: &out}, out: &terminal{}}
	now := time.Unix(1000, 0)
	x := localExplanation{App: "heddle-1-a", Job: "clicks", State: "waiting", Pending: []plane.Pending{{
		Asked: "4 slots", Since: now.Add(-90 * time.Second), Reasons: []plane.Reason{{Code: "limit", Text: "there are as many agents as may be", Fix: "raise agents.max"}},
	}}}
	if err := s.printLocalExplanation(x, now); err != nil {
		t.Fatal(err)
	}
	want := "heddle-1-a  clicks  waiting\nwaits for 4 slots, for 1m30s:\n  there are as many agents as may be\n    what helps: raise agents.max\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
}
