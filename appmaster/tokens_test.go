package appmaster

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// TestTokens hands tokens to agents that are there, and those that come later get the latest.
func TestTokens(t *testing.T) {
	m := &master{log: slog.New(slog.DiscardHandler), agents: map[cluster.AgentID]*agentRecord{}}
	there, gone, late := &agentRecord{session: newSession("there")}, &agentRecord{}, &agentRecord{session: newSession("late")}
	m.agents["there"], m.agents["gone"] = there, gone
	there.session.accepted = true
	m.handTokens(there)
	m.renew([]byte("one"), true)
	m.renew([]byte("two"), true)
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
	m.renew(nil, false)
	if m.cfg.Tokens != nil || m.tokens.version != 2 {
		t.Error("a closed channel counts as tokens")
	}
}
