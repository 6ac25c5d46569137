package appmaster

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// prepare asks connectors and formats whether they will be able to work. Nothing is deployed before, so that what they lack is what the job fails by.
func (m *master) prepare(ctx context.Context) {
	for _, n := range m.cfg.Job.Nodes {
		if n.Ready == nil {
			continue
		}
		m.post(func() { m.readying = n })
		if err := m.ask(ctx, n); err != nil {
			if ctx.Err() == nil {
				f := classify(err)
				f.Message = fmt.Sprintf("cannot start %s: %s", n.KindAndTitle(), f.Message)
				f.Operator = n.Title()
				m.post(func() {
					m.log.Error("a connector or format is not ready", "error", f.Error())
					m.schedEvent(time.Now(), sched.Fail{Failure: f})
				})
			}
			return
		}
	}
	m.post(func() {
		m.prepared = true
		m.beginIfChecked()
	})
}

func (m *master) ask(ctx context.Context, n *flow.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = cluster.Failure{Kind: cluster.Internal, Message: fmt.Sprintf("panic while it was asked whether it is ready: %v", p)}
		}
	}()
	return n.Ready(ctx, m.cfg.Option)
}

// beginIfChecked lets tasks be deployed once the sources have answered and the others are ready.
func (m *master) beginIfChecked() {
	if m.prepared && m.undiscovered() == nil {
		m.schedEvent(time.Now(), sched.Checked{})
	}
}
