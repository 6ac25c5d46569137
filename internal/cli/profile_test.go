package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/profile"
)

// TestProfileWaitsForItsAgent: of an application that starts its agents, the one that is asked about is waited for; of one that runs, an agent that
// there is not is told at once, in words and not in JSON.
func TestProfileWaitsForItsAgent(t *testing.T) {
	for _, tt := range []struct {
		state string
		asked int // questions until the agent is there; 0: it never is
		told  bool
	}{{"waiting", 3, true}, {"running", 0, false}, {"waiting", 1, false}} {
		asked := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet:
				fmt.Fprintf(w, `{"state":%q}`, tt.state)
			case asked+1 == tt.asked:
				fmt.Fprint(w, `{"id":7,"state":"running"}`)
			default:
				asked++
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `{"error":"there is no agent-1"}`)
			}
		}))
		c := clientOf("app", "token")
		c.web = srv.URL
		ask := func(ctx context.Context, question func(context.Context, *client) error) error {
			return refusal(question(ctx, c))
		}
		var said strings.Builder
		s := &session{}
		s.env.Stderr = &said
		var p appmaster.ProcessProfile
		err := s.askProfile(t.Context(), ask, "/api/profiles?of=agent-1", "agent-1", &p)
		e, _ := errors.AsType[*exitError](err)
		switch {
		case tt.asked > 0 && (err != nil || p.ID != 7):
			t.Errorf("%+v: %v, %+v", tt, err, p)
		case tt.asked == 0 && (e == nil || e.code != exitPrecondition || !strings.Contains(err.Error(), "there is no agent-1") || strings.Contains(err.Error(), "{")):
			t.Errorf("%+v: %v", tt, err)
		}
		if got := strings.Count(said.String(), "waiting for agent-1"); (got == 1) != tt.told || got > 1 {
			t.Errorf("%+v: it said %q", tt, said.String())
		}
		c.close()
		srv.Close()
	}
}

func TestAgentCount(t *testing.T) {
	if agentCount(1) != "1 agent" || agentCount(0) != "0 agents" || agentCount(2) != "2 agents" {
		t.Error(agentCount(1), agentCount(0), agentCount(2))
	}
}

// TestProfileKeepsTheFirst: profiles without -o, one after the other, are files of their own; one with -o replaces what was there.
func TestProfileKeepsTheFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	var out strings.Builder
	s := &session{}
	s.env.Stdout = &out
	f := profileFlags{agent: "1", chosen: true}
	f.out = f.file("app", profile.CPU)
	for _, data := range []string{"first", "second", "third"} {
		if err := s.writeProfile(f, appmaster.ProcessProfile{Kind: profile.CPU}, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	f = profileFlags{out: "app-agent-1-cpu-2.pprof"}
	if err := s.writeProfile(f, appmaster.ProcessProfile{Kind: profile.CPU}, []byte("named")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"app-agent-1-cpu.pprof": "first", "app-agent-1-cpu-2.pprof": "named", "app-agent-1-cpu-3.pprof": "third"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
		if !strings.Contains(out.String(), name+"\t") {
			t.Errorf("%s is not named:\n%s", name, &out)
		}
	}
}
