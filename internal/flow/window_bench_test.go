package flow

import (
	"strconv"
	"testing"
	"time"
)

type numEvent struct {
	ID uint64
	N  int64
}

func numKey(e numEvent) uint64 { return e.ID }

// numBatches makes batches whose event times run on from one to the next, with keys in no order.
func numBatches(keys, batches int) []Batch[numEvent] {
	bs := make([]Batch[numEvent], batches)
	n := uint64(1)
	for i := range bs {
		for range 512 {
			n = n*6364136223846793005 + 1442695040888963407
			bs[i].Recs = append(bs[i].Recs, numEvent{(n >> 33) % uint64(keys), 1})
			bs[i].Times = append(bs[i].Times, int64(i))
		}
	}
	return bs
}

func windowIn[T any](t testing.TB, s *WindowSpec, key func(T) uint64) Out[T] {
	p := WindowParams[uint64, T, int64, int64]{Spec: s, Key: key, Agg: Count[T]()}
	inst := start(t, NewWindow(p), newTestRuntime(), Out[Windowed[uint64, int64]](&discardOut[Windowed[uint64, int64]]{}))
	return inst.Inputs[0].(Out[T])
}

func BenchmarkWindowAdd(b *testing.B) {
	for _, c := range []struct {
		name string
		spec WindowSpec
	}{
		{"tumbling", WindowSpec{Kind: TumblingWindow, Size: time.Minute}},
		{"sliding", WindowSpec{Kind: SlidingWindow, Size: time.Minute, Slide: 10 * time.Second}},
		{"session", WindowSpec{Kind: SessionWindow, Gap: time.Minute}},
	} {
		for _, keys := range []int{100, 10_000, 1_000_000} {
			b.Run(c.name+"/keys="+strconv.Itoa(keys), func(b *testing.B) {
				in, batches := windowIn(b, &c.spec, numKey), numBatches(keys, 1024)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := in.Push(batches[i%len(batches)]); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/record")
			})
		}
	}
}

// A window that fires and begins anew must not allocate for records, keys it has memory for, or results.
func TestWindowsDontAllocate(t *testing.T) {
	for _, c := range []struct {
		name string
		spec WindowSpec
	}{
		{"tumbling", WindowSpec{Kind: TumblingWindow, Size: 8 * time.Millisecond}},
		{"sliding", WindowSpec{Kind: SlidingWindow, Size: 16 * time.Millisecond, Slide: 8 * time.Millisecond}},
		{"session", WindowSpec{Kind: SessionWindow, Gap: 2 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, b := windowIn(t, &c.spec, numKey), numBatches(100, 1)[0]
			now := int64(0)
			step := func() {
				now++
				for i := range b.Times {
					b.Times[i] = now
				}
				if err := in.Push(b); err != nil {
					t.Fatal(err)
				}
				if err := in.Control(Control{Kind: Watermark, Time: now}); err != nil {
					t.Fatal(err)
				}
			}
			for range 100 {
				step()
			}
			if allocs := testing.AllocsPerRun(200, step); allocs > 0.1 {
				t.Errorf("a batch of %d records and a watermark: got %v allocations, want 0", len(b.Recs), allocs)
			}
		})
	}
}

// BenchmarkMapUpdate is what an update of a plain map costs: the floor for a window's.
func BenchmarkMapUpdate(b *testing.B) {
	for _, keys := range []int{100, 10_000, 1_000_000} {
		b.Run("keys="+strconv.Itoa(keys), func(b *testing.B) {
			m, batches := make(map[uint64]int64), numBatches(keys, 1024)
			for i := 0; b.Loop(); i++ {
				for _, e := range batches[i%len(batches)].Recs {
					m[e.ID] += e.N
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/record")
		})
	}
}

func BenchmarkProcessValue(b *testing.B) {
	for _, keys := range []int{100, 10_000, 1_000_000} {
		b.Run("keys="+strconv.Itoa(keys), func(b *testing.B) {
			f := NewProcess(ProcessParams[uint64, numEvent, int64]{Key: numKey, Setup: func(s *States) Processor[uint64, numEvent, int64] {
				n := NewValue[int64](s, "n")
				return Processor[uint64, numEvent, int64]{Process: func(c *ProcessContext[uint64, int64], e numEvent) error {
					n.Set(n.Get() + e.N)
					c.Emit(n.Get())
					return nil
				}}
			}})
			in := start(b, f, newTestRuntime(), Out[int64](&discardOut[int64]{})).Inputs[0].(Out[numEvent])
			batches := numBatches(keys, 1024)
			for i := 0; b.Loop(); i++ {
				if err := in.Push(batches[i%len(batches)]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/record")
		})
	}
}
