package appmaster

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// TestTokens hands tokens to agents that are there, and those that come later get the latest.
func TestTokens(t *testing.T) {
	m := &master{log: slog.New(slog.DiscardHandler), agents: map[cluster.AgentID]*agentRecord{}}
	there, gone, late := &agentRecord{session: newSession("there")}, &agentRecord{}, &agentRecord{session: newSession("late")}
	m.agents["there"], m.agents["gone"] = there, gone
	there.session.accepted = true
	m.handTokens(there)
	m.renew(TokenUpdate{Credentials: []byte("one")}, true)
	m.renew(TokenUpdate{Credentials: []byte("two"), Push: &PushResult{ID: "p"}, Warning: "soon"}, true)
	if v := m.tokens.view; v.Push.Version != 2 || len(v.Held) != 0 || len(m.warnings) != 1 {
		t.Errorf("tokens are shown as %+v", v)
	}
	m.renew(TokenUpdate{Held: []Token{{Service: "a", Until: time.Unix(9, 0)}, {Service: "b"}, {Service: "c", Until: time.Unix(8, 0)}}}, true)
	if v := m.tokens.view; v.Push.ID != "p" || v.Version != 2 || v.First().Service != "c" {
		t.Errorf("tokens are shown as %+v", v)
	}
	m.handTokens(late)
	for name, x := range map[string]struct {
		a    *agentRecord
		want []string
	}{"there": {there, []string{"one", "two"}}, "late": {late, []string{"two"}}} {
		queue, _, _ := x.a.session.take()
		var got []string
		for _, q := range queue {
			got = append(got, string(q.GetTokens().GetCredentials()))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: got %q, want %q", name, got, x.want)
		}
	}
	m.tookTokens(there, "there", 2)
	if there.tokens != 2 {
		t.Errorf("the agent has version %d", there.tokens)
	}
	m.renew(TokenUpdate{}, false)
	if m.cfg.Tokens != nil || m.tokens.version != 2 {
		t.Error("a closed channel counts as tokens")
	}
}

func TestAwaited(t *testing.T) {
	s := &Snapshot{Agents: []Agent{{ID: "a", State: "alive", Tokens: 2}, {ID: "b", State: "alive"}, {ID: "c", State: "lost"}}}
	if got := s.Awaited(2); !slices.Equal(got, []string{"b"}) {
		t.Errorf("awaited are %v", got)
	}
	now := time.Unix(0, 0)
	for left, want := range map[time.Duration]string{-1: "ended", 90 * time.Second: "1m30s", 5 * time.Hour: "5h0m0s", 7 * 24 * time.Hour: "7.0 days"} {
		if got := (&Token{Until: now.Add(left)}).Left(now); got != want {
			t.Errorf("%v is %s, want %s", left, got, want)
		}
	}
	if got := (&Token{}).Left(now); got != "-" {
		t.Errorf("an unknown end is %s", got)
	}
	if (*Tokens)(nil).First() != nil {
		t.Error("one of none ends first")
	}
}
