package netstack

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/testnet"
)

// slowLink is a connection that carries so many bytes a second, in the time of the bubble.
type slowLink struct {
	net.Conn
	rate int
}

func (l slowLink) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(l.rate))
	return l.Conn.Write(b)
}

// slowListener gives out slow links.
type slowListener struct {
	net.Listener
	rate int
}

func (l slowListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return slowLink{nc, l.rate}, nil
}

// TestSlowChannelShares shares one connection, which is the bottleneck, among 100 channels of which one has a consumer that takes a segment
// every 50 ms, or, stuck, none. The others must get what they get without it, but for 5 %. Time is simulated, so the figures are exact.
func TestSlowChannelShares(t *testing.T) {
	even := sharedConnection(t, 0)
	for name, pause := range map[string]time.Duration{"slow": 50 * time.Millisecond, "stuck": time.Hour} {
		if got := sharedConnection(t, pause); got < even*95/100 {
			t.Errorf("beside a %s one, the other channels got %d segments in the time of %d", name, got, even)
		} else {
			t.Logf("beside a %s one %d segments, else %d", name, got, even)
		}
	}
}

// sharedConnection returns how many segments 99 channels get in two seconds, beside one whose consumer pauses before each.
func sharedConnection(t *testing.T, pause time.Duration) (others int64) {
	const channels, rate = 100, 16 << 20
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		cfg := Config{Auth: Auth{Key: testKey}, SegmentBytes: 4096, MemorySegments: 8192, Dial: n.Dial}
		var stacks [2]*Stack
		for i := range stacks {
			cfg.Identity = fmt.Sprint("s", i)
			cfg.Listener = slowListener{n.Listen(cfg.Identity), rate}
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			stacks[i] = s
		}
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		var taken atomic.Int64
		for i := range channels {
			p := mustPartition(t, stacks[0], fmt.Sprint("p", i), 1)
			g, w := open(t, stacks[1], fmt.Sprint("p", i), stacks[0].Addr(), 0)
			wg.Go(func() {
				for {
					seg, err := p.Get(ctx, 0)
					if err != nil {
						return
					}
					p.Put(0, seg, len(seg.Bytes()))
				}
			})
			wg.Go(func() {
				for ctx.Err() == nil {
					it, ok, err := g.Next()
					switch {
					case err != nil:
						return
					case !ok:
						select {
						case <-w:
						case <-ctx.Done():
						}
						continue
					case i > 0:
						taken.Add(1)
					default:
						select {
						case <-time.After(pause):
						case <-ctx.Done():
						}
					}
					g.Recycle(it)
				}
			})
		}
		time.Sleep(time.Second) // until all is in its course
		before := taken.Load()
		time.Sleep(2 * time.Second)
		others = taken.Load() - before
		cancel()
		wg.Wait()
	})
	return others
}
