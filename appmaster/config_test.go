package appmaster

import (
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testnet"
)

// TestExitWait: a job that restarts does not wait for its driver to say why an agent has ended; one that fails for good does, since that is what people read.
func TestExitWait(t *testing.T) {
	for name, x := range map[string]struct {
		restart sched.Restart
		want    time.Duration
	}{"fails": {nil, time.Second}, "never": {sched.Never{}, time.Second}, "restarts": {sched.FixedDelay{Times: 1}, 0}} {
		l := testnet.New().Listen("am:1")
		c, err := Config{Job: &flow.Graph{}, Graph: &jobgraph.Graph{}, Driver: &fakeDriver{}, Listener: l, Restart: x.restart, Agents: slotmgr.Config{ExitWait: time.Second}}.complete()
		if err != nil || c.Agents.ExitWait != x.want {
			t.Errorf("%s: %v, %v; want %v", name, c.Agents.ExitWait, err, x.want)
		}
		_ = l.Close()
	}
}
