package agent_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/testjob"
)

// TestTokens hands tokens to an agent, which says in its heartbeats which it uses: those that it could not use it does not claim.
func TestTokens(t *testing.T) {
	m := newMaster(t)
	job := wordCount(words(1, 1), &testjob.Sink[count]{})
	var mu sync.Mutex
	var got []string
	ctx, cancel := context.WithCancel(t.Context())
	wait := m.start(ctx, t, "agent-1", job, compile(t, job, 1), func(c *agent.Config) {
		c.Tokens = func(b []byte) error {
			mu.Lock()
			defer mu.Unlock()
			if string(b) == "bad" {
				return errors.New("as asked")
			}
			got = append(got, string(b))
			return nil
		}
	})
	m.await(t, "registration", func() bool { return m.sessions["agent-1"] != nil })
	for version, text := range []string{1: "first", 2: "bad", 3: "third"} {
		if version > 0 {
			m.order("agent-1", &ctlpb.FromMaster{M: &ctlpb.FromMaster_Tokens{Tokens: &ctlpb.Tokens{Version: uint64(version), Credentials: []byte(text)}}})
		}
	}
	m.await(t, "word of the third tokens", func() bool { return m.beats["agent-1"].GetTokens() == 3 })
	mu.Lock()
	if len(got) != 2 || got[0] != "first" || got[1] != "third" {
		t.Errorf("the agent took %q", got)
	}
	mu.Unlock()
	cancel()
	_ = wait()
}
