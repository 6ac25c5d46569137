package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/netstack"
)

// SlowChannelOptions say what to measure.
type SlowChannelOptions struct {
	Channels int           // of one connection; 0: 100
	Pairs    int           // of windows with and without the slow one; 0: 20
	Window   time.Duration // how long each is; 0: 100 ms
	Pause    time.Duration // of the slow consumer, before it takes the next segment; 0: 20 ms
}

// SlowChannelResult tells what the consumers beside a slow one got, as a share of what they get without it.
type SlowChannelResult struct {
	Channels, Pairs int
	// Bytes is the median over pairs of bytes a second with the slow channel to those without: of the others, each per channel.
	Bytes float64
	// PerCPU is the same of the bytes moved for a second of processor time, which a busy machine distorts less.
	PerCPU float64
	// Slow is how many segments a second the slow channel took.
	Slow float64
}

// SlowChannel moves segments over one connection of many channels, whose consumers take all there is, but for one that in every
// second window is slow. Each channel has a producer of its own: what a producer of many consumers can't send to one holds up the others by itself.
func SlowChannel(ctx context.Context, o SlowChannelOptions) (SlowChannelResult, error) {
	o = o.withDefaults()
	res := SlowChannelResult{Channels: o.Channels, Pairs: o.Pairs}
	ctx, cancel := context.WithCancel(ctx)
	m, err := newMixed(ctx, o)
	if err == nil {
		err = m.compare(ctx, o, &res)
	}
	cancel()
	if m != nil {
		err = errors.Join(err, m.close())
	}
	if err != nil {
		return res, fmt.Errorf("cannot measure a slow channel: %w", err)
	}
	return res, nil
}

func (o SlowChannelOptions) withDefaults() SlowChannelOptions {
	o.Channels = cmp.Or(o.Channels, 100)
	o.Pairs = cmp.Or(o.Pairs, 20)
	o.Window = cmp.Or(o.Window, 100*time.Millisecond)
	o.Pause = cmp.Or(o.Pause, 20*time.Millisecond)
	return o
}

// mixed is producers and consumers with one connection between them.
type mixed struct {
	stacks    []*netstack.Stack
	wg        sync.WaitGroup
	slow      atomic.Bool
	all, lazy atomic.Int64 // segments taken: by all channels, by number 0

	mu  sync.Mutex
	err error // guarded by mu: the first that was no cancellation
}

func newMixed(ctx context.Context, o SlowChannelOptions) (*mixed, error) {
	m := &mixed{}
	key := make([]byte, netstack.KeySize)
	rand.Read(key)
	for _, name := range []string{"producers", "consumers"} {
		s, err := netstack.New(netstack.Config{Identity: name, Auth: netstack.Auth{Key: key}, MemorySegments: 64 * o.Channels})
		if err != nil {
			return m, err
		}
		m.stacks = append(m.stacks, s)
	}
	for i := range o.Channels {
		p, err := m.stacks[0].NewPartition(netstack.PartitionConfig{ID: partitionID(i), Subpartitions: 1})
		if err != nil {
			return m, err
		}
		m.run(ctx, func() error { return produceSegments(ctx, p) })
		m.run(ctx, func() error { return m.consume(ctx, i, o.Pause) })
	}
	return m, nil
}

func (m *mixed) run(ctx context.Context, f func() error) {
	m.wg.Go(func() {
		if err := f(); err != nil && ctx.Err() == nil {
			m.mu.Lock()
			m.err = errors.Join(m.err, err)
			m.mu.Unlock()
		}
	})
}

// close waits for what newMixed started, whose context has ended.
func (m *mixed) close() error {
	m.wg.Wait()
	for _, s := range m.stacks {
		s.Close()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func produceSegments(ctx context.Context, p *netstack.Partition) error {
	defer p.Release()
	for {
		seg, err := p.Get(ctx, 0)
		if err != nil {
			return err
		}
		if err := p.Put(0, seg, len(seg.Bytes())); err != nil {
			return err
		}
	}
}

func (m *mixed) consume(ctx context.Context, i int, rest time.Duration) error {
	gate, wake, err := openGate(m.stacks[1], netstack.ChannelConfig{Partition: partitionID(i), Addr: m.stacks[0].Addr()})
	if err != nil {
		return err
	}
	defer gate.Close()
	for {
		it, ok, err := gate.Next()
		if err != nil {
			return err
		}
		if !ok {
			select {
			case <-wake:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		gate.Recycle(it)
		m.all.Add(1)
		if i == 0 {
			m.lazy.Add(1)
			if m.slow.Load() {
				if err := pause(ctx, rest); err != nil {
					return err
				}
			}
		}
	}
}

// window is what moved in a while.
type window struct {
	others, all, cpu, seconds float64
	lazy                      float64
}

func (m *mixed) window(ctx context.Context, o SlowChannelOptions, slow bool) (window, error) {
	m.slow.Store(slow)
	if err := pause(ctx, max(o.Window/4, o.Pause)); err != nil { // what was on its way
		return window{}, err
	}
	began, all, lazy, cpu := time.Now(), m.all.Load(), m.lazy.Load(), sample().CPU
	for {
		if err := pause(ctx, o.Window); err != nil {
			return window{}, err
		}
		w := window{cpu: (sample().CPU - cpu).Seconds(), seconds: time.Since(began).Seconds(), all: float64(m.all.Load() - all), lazy: float64(m.lazy.Load() - lazy)}
		w.others = w.all - w.lazy
		switch {
		case w.others > 0 && w.cpu > 0:
			return w, nil
		case w.seconds > longestWindow.Seconds():
			return w, fmt.Errorf("%.0f segments came within %v", w.others, longestWindow)
		}
	}
}

// longestWindow is how long a window may become on a machine so busy that nothing moves.
const longestWindow = 30 * time.Second

// compare measures pairs of windows, each the other way round than the one before.
func (m *mixed) compare(ctx context.Context, o SlowChannelOptions, res *SlowChannelResult) error {
	if err := pause(ctx, warmUp); err != nil {
		return err
	}
	var bytes, perCPU, slow []float64
	for i := range o.Pairs {
		var w [2]window // without, with
		for j := range w {
			k := (i + j) % 2
			var err error
			if w[k], err = m.window(ctx, o, k == 1); err != nil {
				return err
			}
		}
		bytes = append(bytes, w[1].others/w[1].seconds/(w[0].others/w[0].seconds))
		perCPU = append(perCPU, w[1].all/w[1].cpu/(w[0].all/w[0].cpu))
		slow = append(slow, w[1].lazy/w[1].seconds)
	}
	res.Bytes, res.PerCPU, res.Slow = median(bytes), median(perCPU), median(slow)
	return nil
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}
