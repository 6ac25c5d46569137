package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/netstack"
)

// sample returns this process's figures.
func sample() mark {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	allocs := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(allocs)
	return mark{CPU: time.Duration(u.Utime.Nano() + u.Stime.Nano()), Mallocs: allocs[0].Value.Uint64(), RSS: u.Maxrss << 10}
}

// consumer counts what one gate brings.
type consumer struct {
	records, sum atomic.Uint64 // written by its goroutine only
	err          error         // read after the goroutine has ended
}

// consume runs all consumers, answers each line of in by a mark, and ends with a last one.
func consume(ctx context.Context, cfg peerConfig, in io.Reader) error {
	stack, err := newStack(cfg, "consumers")
	if err != nil {
		return err
	}
	defer stack.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cs := make([]consumer, cfg.Options.Parallelism)
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	report := func(ended bool, err error) {
		m := sample()
		m.Ended = ended
		if err != nil {
			m.Err = err.Error()
		}
		for i := range cs {
			m.Records += cs[i].records.Load()
			m.Sum += cs[i].sum.Load()
		}
		mu.Lock()
		defer mu.Unlock()
		out.Encode(m)
	}
	go func() { // ends with the parent, whose pipe it reads, or with this process
		for lines := bufio.NewScanner(in); lines.Scan(); {
			report(false, nil)
		}
		cancel()
	}()
	var wg sync.WaitGroup
	for i := range cs {
		wg.Go(func() { cs[i].err = cs[i].run(ctx, stack, cfg, i) })
	}
	wg.Wait()
	for i := range cs {
		if err == nil {
			err = cs[i].err
		}
	}
	report(true, err)
	return err
}

func (c *consumer) run(ctx context.Context, stack *netstack.Stack, cfg peerConfig, sub int) error {
	var channels []netstack.ChannelConfig
	for i := range cfg.Options.Parallelism {
		channels = append(channels, netstack.ChannelConfig{Partition: partitionID(i), Subpartition: sub, Addr: cfg.Addr, ConnIndex: uint32(i)})
	}
	gate, wake, err := openGate(stack, channels...)
	if err != nil {
		return err
	}
	defer gate.Close()
	readers := make([]flow.SegmentReader, len(channels))
	for i := range readers {
		if readers[i], err = recordType(cfg.Options.RecordSize).NewReader(c.out(cfg.Options.RecordSize)); err != nil {
			return err
		}
	}
	return drain(ctx, gate, wake, readers)
}

// openGate returns a gate, and what tells that it may have something again.
func openGate(stack *netstack.Stack, channels ...netstack.ChannelConfig) (*netstack.Gate, <-chan struct{}, error) {
	wake := make(chan struct{}, 1)
	gate, err := stack.NewGate(netstack.GateConfig{Channels: channels, Wake: func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}})
	return gate, wake, err
}

// drain gives what the gate brings to the readers of its channels, until all have ended.
func drain(ctx context.Context, gate *netstack.Gate, wake <-chan struct{}, readers []flow.SegmentReader) error {
	for left := len(readers); left > 0; {
		it, ok, err := gate.Next()
		switch {
		case err != nil:
			return err
		case !ok:
			select {
			case <-wake:
			case <-ctx.Done():
				return ctx.Err()
			}
		case it.End:
			left--
		case it.Segment != nil:
			if err := readers[it.Channel].Consume(it.Payload); err != nil {
				return err
			}
			gate.Recycle(it)
		}
	}
	return nil
}

func (c *consumer) out(size int) any {
	if size == 8 {
		return flow.Out[uint64](sumOut[uint64]{c, func(recs []uint64) (sum uint64) {
			for _, v := range recs {
				sum += v
			}
			return sum
		}})
	}
	return flow.Out[[]byte](sumOut[[]byte]{c, func(recs [][]byte) (sum uint64) {
		for _, v := range recs {
			sum += binary.LittleEndian.Uint64(v)
		}
		return sum
	}})
}

// sumOut counts and sums records.
type sumOut[T any] struct {
	c   *consumer
	sum func([]T) uint64
}

func (o sumOut[T]) Push(b flow.Batch[T]) error {
	o.c.sum.Store(o.c.sum.Load() + o.sum(b.Recs))
	o.c.records.Store(o.c.records.Load() + uint64(len(b.Recs)))
	return nil
}

func (o sumOut[T]) Control(flow.Control) error { return nil }
