package drivertest

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformance shows that a driver keeps its promises also where what it drives is slow, out of reach, or at fault.
func TestConformance(t *testing.T) {
	for name, faulty := range map[string]func() *Fake{
		"sound":                    func() *Fake { return &Fake{} },
		"slow to start":            func() *Fake { return &Fake{Slow: 30 * time.Millisecond} },
		"lost agents out of reach": func() *Fake { return &Fake{Forgetful: true} },
		"starts out of order": func() *Fake {
			turn := make(chan struct{}, 1)
			return &Fake{BeforeStart: func(id cluster.AgentID) { // the first waits a while for another to be first
				if id == "agent-1" {
					select {
					case <-turn:
					case <-time.After(50 * time.Millisecond):
					}
					return
				}
				select {
				case turn <- struct{}{}:
				default:
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			Test(t, func(*testing.T, string) Subject {
				f := faulty()
				f.Agent = func(ctx context.Context, _ cluster.AgentID, _ ctl.AgentSecrets) error {
					<-ctx.Done()
					return nil
				}
				return Subject{Driver: f, Up: func(cluster.AgentID) {}, Crash: f.End}
			})
		})
	}
}
