package task

import (
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// deliveries are the spans of records that are on their way to somewhere outside. What a task that ended has not delivered it never will.
type deliveries struct {
	mu   sync.Mutex
	open map[*delivery]struct{}
}

// delivery is the span of a flow.Delivery. Whoever takes it out of its deliveries ends it.
type delivery struct {
	telemetry.Span
	of *deliveries
}

func (ds *deliveries) begin(s telemetry.Span) *delivery {
	d := &delivery{s, ds}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.open == nil {
		ds.open = map[*delivery]struct{}{}
	}
	ds.open[d] = struct{}{}
	return d
}

// Done implements flow.Delivery.
func (d *delivery) Done(attrs ...flow.TraceAttr) {
	d.of.mu.Lock()
	_, open := d.of.open[d]
	delete(d.of.open, d)
	d.of.mu.Unlock()
	if open {
		d.Set(attrs...)
		d.End(time.Time{})
	}
}

// giveUp ends what is under way, as failed.
func (ds *deliveries) giveUp() {
	ds.mu.Lock()
	open := ds.open
	ds.open = nil
	ds.mu.Unlock()
	for d := range open {
		d.Fail("not known to be delivered: the task ended first")
		d.End(time.Time{})
	}
}
