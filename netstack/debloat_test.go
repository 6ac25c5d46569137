package netstack

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/testnet"
)

// TestDebloat has a consumer of 100 kB/s: what is in flight to it shrinks to about a second's worth, and an event sent
// behind it comes after about as long; once the consumer is fast, segments are full again.
func TestDebloat(t *testing.T) {
	for _, local := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const rate = 100e3
			n := testnet.New()
			a, b := simulated(t, n, func(c *Config) { c.DebloatTarget = time.Second })
			if local {
				b = a
			}
			p := mustPartition(t, a, "p", 1)
			g, w := open(t, b, "p", a.Addr(), 0)
			stop := make(chan struct{})
			fed := make(chan struct{})
			var sent time.Time
			go func() {
				defer close(fed)
				for i := 0; ; i++ {
					seg, err := p.Get(t.Context(), 0)
					if err != nil {
						return
					}
					p.Put(0, seg, p.Room(0))
					select {
					case <-stop:
						sent = time.Now()
						p.Event(0, []byte("barrier"), EventOptions{})
						return
					default:
					}
				}
			}()
			began := time.Now()
			for time.Since(began) < time.Minute {
				it, err := next(g, w)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(float64(len(it.Payload)) / rate * 1e9))
				g.Recycle(it)
			}
			d, st := g.Debloat(), b.Stats()
			if full := p.SegmentRoom(); d.Room > full*4/5 || p.Room(0) != d.Room || st.SmallestRoom != d.Room {
				t.Errorf("local=%v: segments of %d of %d bytes, the producer's of %d: %+v", local, d.Room, full, p.Room(0), d)
			}
			if d.Delay < 600*time.Millisecond || d.Delay > 1500*time.Millisecond || st.Delay != d.Delay || d.Rate < rate*0.7 || d.Rate > rate*1.3 {
				t.Errorf("local=%v: %+v, want a delay of about 1s at %v/s", local, d, rate)
			}
			close(stop)
			for it, err := next(g, w); it.Segment != nil || err != nil; it, err = next(g, w) {
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(float64(len(it.Payload)) / rate * 1e9))
				g.Recycle(it)
			}
			<-fed
			if took := time.Since(sent); took > 2*time.Second {
				t.Errorf("local=%v: an event took %v", local, took)
			}
			time.Sleep(time.Second)
			if got := p.Room(0); got != p.SegmentRoom() {
				t.Errorf("local=%v: segments of %d bytes though nothing waits", local, got)
			}
		})
	}
}

// TestSizeReachesLateChannels has a gate settle on a size before one of its channels is connected, or before that one's partition is there:
// the producer gets to know it all the same.
func TestSizeReachesLateChannels(t *testing.T) {
	for _, late := range []string{"connection", "partition", "partition within the process"} {
		synctest.Test(t, func(t *testing.T) {
			n := testnet.New()
			dial := make(chan struct{})
			a, b := simulated(t, n, func(c *Config) {
				c.DebloatTarget = time.Second
				c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
					<-dial
					return n.Dial(ctx, addr)
				}
			})
			var p *Partition
			switch late {
			case "connection":
				p = mustPartition(t, a, "p", 1)
			case "partition":
				close(dial)
			default:
				close(dial)
				b = a
			}
			g, _ := open(t, b, "p", a.Addr(), 0)
			synctest.Wait()
			g.taken.Store(2000) // of a slow consumer with much waiting
			g.mu.Lock()
			g.queued = 5
			g.mu.Unlock()
			g.resize(time.Second)
			g.mu.Lock()
			g.queued = 0
			size := g.debloat.Size()
			g.mu.Unlock()
			if full := a.SegmentRoom(); size >= full {
				t.Fatalf("segments are to have %d of %d bytes", size, full)
			}
			if late == "connection" {
				close(dial)
			} else {
				synctest.Wait()
				p = mustPartition(t, a, "p", 1)
			}
			synctest.Wait()
			if got := p.Room(0); got != size&^7 {
				t.Errorf("late %s: the producer fills segments with %d bytes, want %d", late, got, size)
			}
		})
	}
}
