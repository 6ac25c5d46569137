package nettest

import (
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// slack is what a bound may be exceeded by on a busy machine, beside what the tests' own settings imply.
const slack = 3 * time.Second

// TestBadLinks moves everything, intact and in order, over links that are merely bad.
func TestBadLinks(t *testing.T) {
	testbed.Group(t, "net")
	for _, c := range []struct {
		name     string
		f        faults
		segments int
		set      setting
		tls      bool
	}{
		{"clean", faults{}, 300, setting{}, false},
		{"clean, compressed and summed", faults{}, 300, setting{Compression: "lz4", Checksum: true}, false},
		{"clean, TLS", faults{}, 300, setting{}, true},
		{"delay of 100 ms", faults{delay: 50 * time.Millisecond}, 100, setting{}, false}, // there and back
		{"delay of 100 ms, TLS", faults{delay: 50 * time.Millisecond}, 100, setting{}, true},
		{"reordering", faults{reorder: 0.2}, 100, setting{Checksum: true}, false},
		{"reordering, TLS", faults{reorder: 0.2}, 100, setting{}, true},
		{"loss of 30 %", faults{loss: 0.3}, 1, setting{}, false},
		{"loss of 30 %, TLS", faults{loss: 0.3}, 1, setting{}, true},
		{"loss of 2 %", faults{loss: 0.02}, 50, setting{Compression: "zstd"}, false},
		{"loss of 2 %, TLS", faults{loss: 0.02}, 50, setting{Compression: "zstd", Checksum: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.set.Keepalive, c.set.Timeout, c.set.Channels = 5*time.Second, 60*time.Second, 3
			if c.tls {
				c.set.TLS = newKeyPair(t)
			}
			p, q := w.start("producer", c.set), w.start("consumer", c.set)
			w.fault(c.f)
			began := time.Now()
			p.tell(order{Do: "run", ID: "p", Segments: c.segments})
			q.tell(order{Do: "run", ID: "p", Segments: c.segments})
			for _, a := range []*agent{q, p} {
				o := a.hear(100 * time.Second)
				for o.Began {
					o = a.hear(100 * time.Second)
				}
				if o.Err != "" || o.Segments != 3*c.segments || o.Used != 0 {
					t.Errorf("%s: %+v, want %d segments", a.role, o, 3*c.segments)
				}
			}
			t.Logf("%d segments in %v, %d packets carried, %d dropped", 3*c.segments, time.Since(began).Round(time.Millisecond),
				w.links[0].carried.Load()+w.links[1].carried.Load(), w.links[0].dropped.Load()+w.links[1].dropped.Load())
			if c.f.loss > 0 && w.links[0].dropped.Load() == 0 {
				t.Error("nothing was lost")
			}
			w.checkSecrecy(c.tls)
			w.fault(faults{})
			p.stop()
			q.stop()
		})
	}
}

// TestBrokenLinks breaks the link, or an end of it, under way: both ends learn of it within the bound, blame the other, keep
// nothing, and once the link is mended a new exchange between the same agents dials anew and works.
func TestBrokenLinks(t *testing.T) {
	testbed.Group(t, "net")
	const keepalive, timeout = 500 * time.Millisecond, 2 * time.Second
	for _, c := range []struct {
		name  string
		pause time.Duration // of the producer before each segment: an hour is an idle connection
		hurt  func(w *world, p, q *agent)
		mend  func(w *world)
		bound time.Duration // of both ends
		tls   bool
	}{
		{"black hole, busy", 0, func(w *world, _, _ *agent) { w.fault(faults{loss: 1}) }, func(w *world) { w.fault(faults{}) }, timeout, false},
		{"black hole, busy, TLS", 0, func(w *world, _, _ *agent) { w.fault(faults{loss: 1}) }, func(w *world) { w.fault(faults{}) }, timeout, true},
		{"black hole, now and then", 100 * time.Millisecond, func(w *world, _, _ *agent) { w.fault(faults{loss: 1}) }, func(w *world) { w.fault(faults{}) }, timeout, false},
		{"black hole, idle", time.Hour, func(w *world, _, _ *agent) { w.fault(faults{loss: 1}) }, func(w *world) { w.fault(faults{}) }, timeout, false},
		{"black hole, idle, TLS", time.Hour, func(w *world, _, _ *agent) { w.fault(faults{loss: 1}) }, func(w *world) { w.fault(faults{}) }, timeout, true},
		{"black hole one way", 0, func(w *world, _, _ *agent) { w.links[1].set.Store(&faults{loss: 1}) }, func(w *world) { w.fault(faults{}) }, 2 * timeout, false},
		{"cut", 0, func(w *world, _, _ *agent) { w.cut() }, func(w *world) { w.mend() }, timeout, false},
		{"cut, TLS", 0, func(w *world, _, _ *agent) { w.cut() }, func(w *world) { w.mend() }, timeout, true},
		{"reset in mid frame", 0, func(w *world, _, _ *agent) { w.links[0].reset.Store(true) }, nil, 0, false},
		{"reset in mid frame, TLS", 0, func(w *world, _, _ *agent) { w.links[0].reset.Store(true) }, nil, 0, true},
		{"half-close by the consumer", 0, func(_ *world, _, q *agent) { q.tell(order{Do: "half-close"}) }, nil, 0, false},
		{"half-close by the consumer, TLS", 0, func(_ *world, _, q *agent) { q.tell(order{Do: "half-close"}) }, nil, 0, true},
		{"half-close by the producer", 0, func(_ *world, p, _ *agent) { p.tell(order{Do: "half-close"}) }, nil, 0, false},
		{"half-close by the producer, TLS", 0, func(_ *world, p, _ *agent) { p.tell(order{Do: "half-close"}) }, nil, 0, true},
		{"reset by the consumer", 0, func(_ *world, _, q *agent) { q.tell(order{Do: "reset"}) }, nil, 0, false},
		{"reset by the consumer, TLS", 0, func(_ *world, _, q *agent) { q.tell(order{Do: "reset"}) }, nil, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			set := setting{Keepalive: keepalive, Timeout: timeout, Channels: 3}
			name := strings.TrimSuffix(c.name, ", TLS")
			if c.tls {
				set.TLS = newKeyPair(t)
			}
			p, q := w.start("producer", set), w.start("consumer", set)
			p.tell(order{Do: "run", ID: "p", Pause: c.pause})
			q.tell(order{Do: "run", ID: "p"})
			for _, a := range []*agent{p, q} {
				if o := a.hear(20 * time.Second); !o.Began {
					t.Fatalf("%s: %+v before the fault", a.role, o)
				}
			}
			began := time.Now()
			c.hurt(w, p, q)
			self := strings.HasPrefix(name, "half-close by") || strings.HasPrefix(name, "reset by")
			for _, a := range []*agent{p, q} {
				o := a.hear(c.bound + slack + 10*time.Second)
				took := time.Since(began)
				if o.Err == "" || strings.Contains(o.Err, "corrupt") || o.Used != 0 || o.Conns != 0 {
					t.Errorf("%s: %+v", a.role, o)
				}
				// An end whose own socket was closed under it may see its own doing; the other never does.
				if own := self && strings.HasSuffix(name, a.role); !own && (!o.Remote || o.Kind != "lost") {
					t.Errorf("%s blames %q (%s, remote=%v), want the other end", a.role, o.Err, o.Kind, o.Remote)
				}
				if took > c.bound+slack {
					t.Errorf("%s found out after %v, want at most %v", a.role, took, c.bound+slack)
				}
				t.Logf("%s: after %v: %s", a.role, took.Round(time.Millisecond), o.Err)
			}
			if c.mend != nil {
				c.mend(w)
			}
			if name == "reset in mid frame" && w.links[0].forged.Load() != 1 {
				t.Error("no reset was forged")
			}
			p.tell(order{Do: "run", ID: "again", Segments: 10})
			q.tell(order{Do: "run", ID: "again", Segments: 10})
			for _, a := range []*agent{q, p} {
				o := a.hear(30 * time.Second)
				for o.Began {
					o = a.hear(30 * time.Second)
				}
				if o.Err != "" || o.Segments != 30 {
					t.Errorf("once mended, %s: %+v", a.role, o)
				}
			}
			w.checkSecrecy(c.tls)
			p.stop()
			q.stop()
		})
	}
}

// TestKilledProducer kills the producer's process: its kernel says so at once.
func TestKilledProducer(t *testing.T) {
	testbed.Group(t, "net")
	w := newWorld(t)
	set := setting{Keepalive: time.Second, Timeout: 5 * time.Second, Channels: 3}
	p, q := w.start("producer", set), w.start("consumer", set)
	p.tell(order{Do: "run", ID: "p"})
	q.tell(order{Do: "run", ID: "p"})
	for _, a := range []*agent{p, q} {
		a.hear(20 * time.Second)
	}
	began := time.Now()
	p.cmd.Process.Kill()
	o := q.hear(10 * time.Second)
	if !o.Remote || o.Kind != "lost" || o.Used != 0 || time.Since(began) > slack {
		t.Errorf("after %v: %+v", time.Since(began), o)
	}
	q.stop()
}
