package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/netstack"
	"github.com/heddle-stream/heddle/netstack/bufpool"
)

// producers are the goroutines that write, one a partition.
type producers struct {
	wg   sync.WaitGroup
	halt atomic.Bool
	stop context.CancelFunc

	// Guarded by mu.
	mu    sync.Mutex
	total mark
	err   error
}

func partitionID(producer int) string { return fmt.Sprintf("bench-%d", producer) }

// startProducers starts them. The first that fails tells end why.
func startProducers(ctx context.Context, end context.CancelCauseFunc, stack *netstack.Stack, o ExchangeOptions) (*producers, error) {
	ctx, cancel := context.WithCancel(ctx)
	ps := &producers{}
	ps.stop = func() {
		cancel()
		ps.wg.Wait()
	}
	for i := range o.Parallelism {
		p, err := stack.NewPartition(netstack.PartitionConfig{ID: partitionID(i), Subpartitions: o.Parallelism})
		if err != nil {
			ps.stop()
			return nil, err
		}
		ps.wg.Go(func() {
			m, err := produceRecords(ctx, p, o, i, &ps.halt)
			p.Release() // not deferred: a panic must end the process, not wait for a lock that it holds
			if err != nil {
				end(err)
			}
			ps.mu.Lock()
			defer ps.mu.Unlock()
			ps.total.Records += m.Records
			ps.total.Sum += m.Sum
			if ps.err == nil {
				ps.err = err
			}
		})
	}
	return ps, nil
}

// finish stops producing, waits until all is consumed and returns what was sent.
func (ps *producers) finish() (mark, error) {
	ps.halt.Store(true)
	ps.wg.Wait()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.total, ps.err
}

// segments makes a partition a flow.SegmentOut.
type segments struct {
	ctx  context.Context // ends the producer; the adapter lives in its goroutine only
	p    *netstack.Partition
	open []*bufpool.Segment
}

func (s *segments) Get(ch int) ([]byte, error) {
	seg, err := s.p.Get(s.ctx, ch)
	if err != nil {
		return nil, err
	}
	s.open[ch] = seg
	return seg.Bytes(), nil
}

func (s *segments) Put(ch, n int) error {
	seg := s.open[ch]
	s.open[ch] = nil
	return s.p.Put(ch, seg, n)
}

func (s *segments) Control(ch int, c flow.Control) error {
	return s.p.Event(ch, flow.AppendControl(nil, c), netstack.EventOptions{})
}

func produceRecords(ctx context.Context, p *netstack.Partition, o ExchangeOptions, producer int, halt *atomic.Bool) (m mark, err error) {
	cfg := flow.WriterConfig{
		Channels: o.Parallelism, Subtask: producer, Parallelism: o.Parallelism, MaxParallelism: max(128, o.Parallelism),
		Segments: &segments{ctx: ctx, p: p, open: make([]*bufpool.Segment, o.Parallelism)},
		Part:     flow.Partitioning{Kind: flow.Rebalance},
	}
	if o.RecordSize == 8 {
		if o.Partitioner == "hash" {
			keys, err := flow.NewKeyBy(func(v uint64) uint64 { return v })
			if err != nil {
				return m, err
			}
			cfg.Part = flow.Partitioning{Kind: flow.Hash, Impl: keys}
		}
		return pushAll(ctx, p, o, cfg, producer, halt, make([]uint64, flow.BatchBytes/8), number)
	}
	if o.Partitioner == "hash" {
		keys, err := flow.NewKeyBy(func(v []byte) uint64 { return binary.LittleEndian.Uint64(v) })
		if err != nil {
			return m, err
		}
		cfg.Part = flow.Partitioning{Kind: flow.Hash, Impl: keys}
	}
	recs := make([][]byte, max(1, flow.BatchBytes/o.RecordSize))
	for i := range recs {
		recs[i] = make([]byte, o.RecordSize)
	}
	return pushAll(ctx, p, o, cfg, producer, halt, recs, numberBytes)
}

// number gives the records of a batch consecutive numbers.
func number(recs []uint64, from uint64) {
	for i := range recs {
		recs[i] = from + uint64(i)
	}
}

func numberBytes(recs [][]byte, from uint64) {
	for i := range recs {
		binary.LittleEndian.PutUint64(recs[i], from+uint64(i))
	}
}

// pushAll writes batches of numbered records until halt, and finishes.
func pushAll[T any](ctx context.Context, p *netstack.Partition, o ExchangeOptions, cfg flow.WriterConfig, producer int, halt *atomic.Bool, recs []T, number func([]T, uint64)) (m mark, err error) {
	out, w, err := recordType(o.RecordSize).NewWriter(cfg)
	if err != nil {
		return m, err
	}
	to := out.(flow.Out[T])
	next := uint64(producer) << 48
	for !halt.Load() && ctx.Err() == nil {
		number(recs, next)
		n := uint64(len(recs))
		m.Records += n
		m.Sum += n*next + n*(n-1)/2
		next += n
		if err := to.Push(flow.Batch[T]{Recs: recs}); err != nil {
			return m, err
		}
	}
	if err := w.Flush(); err != nil {
		return m, err
	}
	return m, p.Finish(ctx)
}
