package drivertest

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	Test(t, func(*testing.T, string) Subject {
		f := &Fake{Agent: func(ctx context.Context, _ cluster.AgentID, _ ctl.AgentSecrets) error {
			<-ctx.Done()
			return nil
		}}
		return Subject{Driver: f, Up: func(cluster.AgentID) {}, Crash: f.End}
	})
}
