package flow

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// ring is a SegmentOut that gives out the same segment of a channel again and again, after reading it.
type ring struct {
	segs  [][]byte
	reads []SegmentReader // nil: don't
	bytes int
}

func newRing(channels, room int) *ring {
	r := &ring{}
	for range channels {
		r.segs = append(r.segs, alignedBytes(room))
	}
	return r
}

func (r *ring) Get(ch int) ([]byte, error) { return r.segs[ch], nil }

func (r *ring) Put(ch, n int) error {
	r.bytes += n
	if r.reads == nil {
		return nil
	}
	return r.reads[ch].Consume(r.segs[ch][:n])
}

func (r *ring) Control(int, Control) error { return nil }

type sum[T any] struct {
	n, x uint64
	of   func(T) uint64
}

func (s *sum[T]) Push(b Batch[T]) error {
	s.n += uint64(len(b.Recs))
	for i := range b.Recs {
		s.x += s.of(b.Recs[i])
	}
	return nil
}

func (s *sum[T]) Control(Control) error { return nil }

func benchExchange[T any](b *testing.B, channels int, p Partitioning, batch Batch[T], of func(T) uint64) {
	r := newRing(channels, 32<<10)
	s := &sum[T]{of: of}
	for range channels {
		rd, err := TypeOf[T](nil).NewReader(Out[T](s))
		if err != nil {
			b.Fatal(err)
		}
		r.reads = append(r.reads, rd)
	}
	out, w := writerFor[T](b, nil, r, channels, p)
	b.ReportAllocs()
	before := cpuTime(b)
	b.ResetTimer()
	for i := 0; i < b.N; i += len(batch.Recs) {
		if err := out.Push(batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/rec")
}

// cpuTime is the processor time of the process, which a busy machine doesn't distort as much as elapsed time.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkExchange is one record through writer, segment and reader.
func BenchmarkExchange(b *testing.B) {
	var nums Batch[uint64]
	var timed Batch[uint64]
	for i := range 1024 {
		nums.Recs = append(nums.Recs, uint64(i)*7919)
		timed.Times = append(timed.Times, int64(i))
	}
	timed.Recs = nums.Recs
	id := func(v uint64) uint64 { return v }
	byNum, err := NewKeyBy(id)
	if err != nil {
		b.Fatal(err)
	}
	var strs Batch[string]
	type click struct {
		At   int64
		User string
		Page string
		Kind int32
	}
	var clicks Batch[click]
	for i := range 512 {
		strs.Recs = append(strs.Recs, fmt.Sprintf("%0100d", i))
		clicks.Recs = append(clicks.Recs, click{int64(i), fmt.Sprint("user-", i%97), fmt.Sprint("/page/", i), 1})
	}
	byStr, err := NewKeyBy(func(s string) string { return s })
	if err != nil {
		b.Fatal(err)
	}
	strLen := func(s string) uint64 { return uint64(len(s)) }
	for _, n := range []int{1, 4, 100} {
		b.Run(fmt.Sprint("uint64/rebalance/", n), func(b *testing.B) {
			benchExchange(b, n, Partitioning{Kind: Rebalance}, nums, id)
		})
		b.Run(fmt.Sprint("uint64/hash/", n), func(b *testing.B) {
			benchExchange(b, n, Partitioning{Kind: Hash, Impl: byNum}, nums, id)
		})
		b.Run(fmt.Sprint("uint64timed/hash/", n), func(b *testing.B) {
			benchExchange(b, n, Partitioning{Kind: Hash, Impl: byNum}, timed, id)
		})
	}
	b.Run("string100/rebalance/4", func(b *testing.B) { benchExchange(b, 4, Partitioning{Kind: Rebalance}, strs, strLen) })
	b.Run("string100/hash/4", func(b *testing.B) {
		benchExchange(b, 4, Partitioning{Kind: Hash, Impl: byStr}, strs, strLen)
	})
	var bytes Batch[[]byte]
	for _, s := range strs.Recs {
		bytes.Recs = append(bytes.Recs, []byte(s))
	}
	byBytes, err := NewKeyBy(func(b []byte) uint64 { return uint64(b[99]) })
	if err != nil {
		b.Fatal(err)
	}
	bytesLen := func(s []byte) uint64 { return uint64(len(s)) }
	b.Run("bytes100/rebalance/4", func(b *testing.B) { benchExchange(b, 4, Partitioning{Kind: Rebalance}, bytes, bytesLen) })
	b.Run("bytes100/hash/4", func(b *testing.B) {
		benchExchange(b, 4, Partitioning{Kind: Hash, Impl: byBytes}, bytes, bytesLen)
	})
	b.Run("struct/hash/4", func(b *testing.B) {
		byUser, err := NewKeyBy(func(c click) string { return c.User })
		if err != nil {
			b.Fatal(err)
		}
		benchExchange(b, 4, Partitioning{Kind: Hash, Impl: byUser}, clicks, func(c click) uint64 { return uint64(c.At) })
	})
	b.Run("struct/rebalance/4", func(b *testing.B) {
		benchExchange(b, 4, Partitioning{Kind: Rebalance}, clicks, func(c click) uint64 { return uint64(c.At) })
	})
}

// BenchmarkChain is one record through map, filter and map.
func BenchmarkChain(b *testing.B) {
	var recs Batch[uint64]
	for i := range 1024 {
		recs.Recs = append(recs.Recs, uint64(i))
	}
	rt := opRuntime("chain")
	last := start(b, NewMap(func(v uint64) uint64 { return v + 1 }), rt, Out[uint64](&sum[uint64]{of: func(v uint64) uint64 { return v }}))
	mid := start(b, NewFilter(func(v uint64) bool { return v&7 != 0 }), rt, last.Inputs[0])
	in := start(b, NewMap(func(v uint64) uint64 { return v * 3 }), rt, mid.Inputs[0]).Inputs[0].(Out[uint64])
	b.ReportAllocs()
	before := cpuTime(b)
	b.ResetTimer()
	for i := 0; i < b.N; i += len(recs.Recs) {
		if err := in.Push(recs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/rec")
}
