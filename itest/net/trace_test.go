package nettest

import (
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestDelayShowsAsWireTime follows segments over a link that delays everything, between hosts whose clocks agree or differ by hours. What they
// tell of their way has the delay as time on the wire, not as waiting for credit, no phase takes less than nothing, and the difference of the clocks is known.
func TestDelayShowsAsWireTime(t *testing.T) {
	testbed.Group(t, "net")
	const delay, segments = 80 * time.Millisecond, 15
	for name, ahead := range map[string]time.Duration{"clocks agree": 0, "consumer ahead": 3 * time.Hour, "consumer behind": -3 * time.Hour, "a little ahead": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fault(faults{delay: delay})
			set := setting{Keepalive: 5 * time.Second, Timeout: 60 * time.Second, Channels: 1}
			p := w.start("producer", set)
			set.Ahead = ahead
			q := w.start("consumer", set)
			run := order{Do: "run", ID: "p", Segments: segments, Pause: 5 * delay, Follow: true}
			p.tell(run)
			q.tell(run)
			for _, a := range []*agent{q, p} {
				o := a.hear(100 * time.Second)
				for o.Began {
					o = a.hear(100 * time.Second)
				}
				if o.Err != "" {
					t.Errorf("%s: %+v", a.role, o)
				}
				if a != q {
					continue
				}
				if o.Hops != segments || o.Wire < delay*9/10 || o.Credit > delay/2 || o.Least < 0 {
					t.Errorf("%d segments over a link of %v: %d were followed; half were on the wire for %v and waited for credit for %v; the shortest phase is %v",
						segments, delay, o.Hops, o.Wire, o.Credit, o.Least)
				}
				if off := (o.Ahead - ahead).Abs(); off > o.Within || o.Within < delay/2 {
					t.Errorf("the consumer's clock is ahead by %v, it says %v within %v", ahead, o.Ahead, o.Within)
				}
				t.Logf("on the wire %v, waiting for credit %v, clock ahead %v within %v", o.Wire, o.Credit, o.Ahead, o.Within)
			}
			w.fault(faults{})
			p.stop()
			q.stop()
		})
	}
}
