package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func ints(n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = int64(i)
	}
	return s
}

func mustKeyBy[T, K any](t testing.TB, key func(T) K) *KeyBy[T] {
	t.Helper()
	k, err := NewKeyBy(key)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// partitions is where records of each kind must go.
func TestPartitioning(t *testing.T) {
	key := func(v int64) int64 { return v % 50 }
	custom := func(v int64, n int) int { return int(v) % 3 }
	for _, c := range []struct {
		part     Partitioning
		channels int
		check    func(t *testing.T, per [][]int64)
	}{
		{Partitioning{Kind: Forward}, 1, func(t *testing.T, per [][]int64) {
			if !slices.Equal(per[0], ints(1000)) {
				t.Error("forward: not the records in order")
			}
		}},
		{Partitioning{Kind: Broadcast}, 3, func(t *testing.T, per [][]int64) {
			for ch, recs := range per {
				if !slices.Equal(recs, ints(1000)) {
					t.Errorf("broadcast: channel %d got other records", ch)
				}
			}
		}},
		{Partitioning{Kind: Custom, Impl: custom}, 4, func(t *testing.T, per [][]int64) {
			for ch, recs := range per {
				for _, v := range recs {
					if int(v)%3 != ch {
						t.Errorf("custom: %d went to %d", v, ch)
					}
				}
			}
		}},
		{Partitioning{Kind: Hash, Impl: mustKeyBy(t, key)}, 4, func(t *testing.T, per [][]int64) {
			for ch, recs := range per {
				for _, v := range recs {
					if want := GroupSubtask(KeyGroup(HashUint64(uint64(key(v))), 128), 128, 4); want != ch {
						t.Errorf("hash: %d went to %d, want %d", v, ch, want)
					}
				}
			}
		}},
		{Partitioning{Kind: Rebalance}, 4, func(t *testing.T, per [][]int64) {
			for ch, recs := range per {
				if len(recs) < 200 || len(recs) > 300 {
					t.Errorf("rebalance: channel %d got %d of 1000", ch, len(recs))
				}
			}
		}},
	} {
		t.Run(c.part.Kind.String(), func(t *testing.T) {
			for _, room := range []int{256, 32 << 10} {
				for _, step := range []int{1, 7, 100, 1000} {
					x := newMemExchange(room)
					out, w := writerFor[int64](t, nil, x, c.channels, c.part)
					for recs := range slices.Chunk(ints(1000), step) {
						if err := out.Push(Batch[int64]{Recs: recs}); err != nil {
							t.Fatal(err)
						}
					}
					if err := w.Flush(); err != nil || w.Pending() {
						t.Fatalf("Flush: %v, pending %v", err, w.Pending())
					}
					if c.part.Kind == Rebalance && step == 1000 && room > 1<<10 {
						continue // one batch is one segment's worth: spread over time only
					}
					per := make([][]int64, c.channels)
					total := 0
					for ch := range per {
						per[ch] = read[int64](t, nil, x, ch, nil).recs
						total += len(per[ch])
					}
					if want := 1000; c.part.Kind != Broadcast && total != want {
						t.Errorf("room %d, step %d: %d records arrived, want %d", room, step, total, want)
					}
					c.check(t, per)
				}
			}
		})
	}
}

func TestRebalanceSpreadsSmallBatches(t *testing.T) {
	x := newMemExchange(32 << 10)
	out, w := writerFor[string](t, nil, x, 4, Partitioning{Kind: Rebalance})
	if err := out.Push(Batch[string]{Recs: strings.Fields("a b c d e f g h i j")}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for ch, want := range []int{3, 3, 2, 2} {
		if got := len(read[string](t, nil, x, ch, nil).recs); got != want {
			t.Errorf("channel %d got %d records, want %d", ch, got, want)
		}
	}
}

func TestSegmentsKeepTimesApart(t *testing.T) {
	x := newMemExchange(1 << 10)
	out, _ := writerFor[string](t, nil, x, 1, Partitioning{})
	fixed := newMemExchange(1 << 10)
	fout, _ := writerFor[int](t, nil, fixed, 1, Partitioning{})
	for i, times := range [][]int64{nil, {1}, nil, {2}, {MinTime}} {
		if err := out.Push(Batch[string]{Recs: []string{fmt.Sprint(i)}, Times: times}); err != nil {
			t.Fatal(err)
		}
		if err := fout.Push(Batch[int]{Recs: []int{i}, Times: times}); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Control(Control{Kind: End}); err != nil {
		t.Fatal(err)
	}
	if err := fout.Control(Control{Kind: End}); err != nil {
		t.Fatal(err)
	}
	want := []int64{1, 2, MinTime}
	if got := read[string](t, nil, x, 0, nil); !slices.Equal(got.times, want) || len(got.recs) != 5 {
		t.Errorf("strings: got %v at %v", got.recs, got.times)
	}
	if got := read[int](t, nil, fixed, 0, nil); !slices.Equal(got.times, want) || !slices.Equal(got.recs, []int{0, 1, 2, 3, 4}) {
		t.Errorf("ints: got %v at %v", got.recs, got.times)
	}
}

func TestControlFollowsItsRecords(t *testing.T) {
	x := newMemExchange(1 << 10)
	out, _ := writerFor[int64](t, nil, x, 3, Partitioning{Kind: Hash, Impl: mustKeyBy(t, func(v int64) int64 { return v })})
	for i := range int64(5) {
		if err := out.Push(Batch[int64]{Recs: []int64{i}}); err != nil {
			t.Fatal(err)
		}
		if err := out.Control(Control{Kind: Watermark, Time: i}); err != nil {
			t.Fatal(err)
		}
	}
	for ch := range 3 {
		if got := read[int64](t, nil, x, ch, nil); len(got.ctl) != 5 {
			t.Errorf("channel %d got %d watermarks, want 5", ch, len(got.ctl))
		}
	}
}

func TestAuthorsPartitioners(t *testing.T) {
	for _, c := range []struct {
		part Partitioning
		want string
	}{
		{Partitioning{Kind: Custom, Impl: func(int, int) int { return 3 }}, "cannot partition int records: the function for PartitionBy returned 3 of 2; record: 7"},
		{Partitioning{Kind: Custom, Impl: func(v, n int) int { return v / (n - 2) }}, "cannot partition int records: panic: runtime error: integer divide by zero at flow/writer_test.go:"},
		{Partitioning{Kind: Hash, Impl: mustKeyBy(t, func(v int) string { panic("no key") })}, "cannot partition int records: panic: no key at flow/writer_test.go:"},
	} {
		out, _ := writerFor[int](t, nil, newMemExchange(1<<10), 2, c.part)
		if err := out.Push(Batch[int]{Recs: []int{7}}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
	for _, p := range []Partitioning{{Kind: Hash}, {Kind: Custom, Impl: func(string, int) int { return 0 }}} {
		if _, _, err := TypeOf[int](nil).NewWriter(WriterConfig{Part: p, Channels: 2, MaxParallelism: 2}); err == nil {
			t.Errorf("%s with Impl %T: no error", p.Kind, p.Impl)
		}
	}
}

// TestWriterProperties drives a writer with anything and checks that all arrives once, in order per channel.
func TestWriterProperties(t *testing.T) {
	type rec struct {
		Seq  int
		Text string
	}
	rapid.Check(t, func(rt *rapid.T) {
		channels := rapid.IntRange(1, 5).Draw(rt, "channels")
		room := rapid.SampledFrom([]int{40, 100, 1000, 4096}).Draw(rt, "room")
		kind := rapid.SampledFrom([]PartitionKind{Hash, Rebalance, Custom}).Draw(rt, "kind")
		part := Partitioning{Kind: kind}
		switch kind {
		case Hash:
			part.Impl = mustKeyBy(t, func(r rec) string { return r.Text })
		case Custom:
			part.Impl = func(r rec, n int) int { return len(r.Text) % n }
		}
		x := newMemExchange(room)
		out, w := writerFor[rec](t, nil, x, channels, part)
		seq := 0
		for range rapid.IntRange(0, 20).Draw(rt, "steps") {
			if rapid.IntRange(0, 5).Draw(rt, "flush") == 0 {
				if err := w.Flush(); err != nil {
					rt.Fatal(err)
				}
			}
			b := Batch[rec]{}
			timed := rapid.Bool().Draw(rt, "timed")
			for range rapid.IntRange(0, 200).Draw(rt, "n") {
				size := rapid.SampledFrom([]int{0, 1, 7, 30, 200, 5000}).Draw(rt, "size")
				b.Recs = append(b.Recs, rec{seq, strings.Repeat("x", size)})
				if timed {
					b.Times = append(b.Times, int64(seq))
				}
				seq++
			}
			if err := out.Push(b); err != nil {
				rt.Fatal(err)
			}
		}
		if err := out.Control(Control{Kind: End}); err != nil {
			rt.Fatal(err)
		}
		seen := make([]bool, seq)
		for ch := range channels {
			last := -1
			for _, r := range read[rec](t, nil, x, ch, nil).recs {
				if r.Seq <= last || seen[r.Seq] {
					rt.Fatalf("channel %d: record %d after %d", ch, r.Seq, last)
				}
				last, seen[r.Seq] = r.Seq, true
			}
		}
		if i := slices.Index(seen, false); i >= 0 {
			rt.Fatalf("record %d of %d did not arrive", i, seq)
		}
	})
}

func TestNoAllocationPerRecord(t *testing.T) {
	byNum := mustKeyBy(t, func(v uint64) uint64 { return v })
	nums := Batch[uint64]{Recs: make([]uint64, 1024), Times: make([]int64, 1024)}
	for i := range nums.Recs {
		nums.Recs[i] = uint64(i)
	}
	strs := Batch[string]{}
	for i := range 512 {
		strs.Recs = append(strs.Recs, fmt.Sprintf("%020d", i))
	}
	for _, part := range []Partitioning{{Kind: Rebalance}, {Kind: Hash, Impl: byNum}, {Kind: Broadcast}} {
		if n := allocsPerRecord(t, part, nums); n > 0 {
			t.Errorf("%s of uint64: %v allocations a record", part.Kind, n)
		}
	}
	if n := allocsPerRecord(t, Partitioning{Kind: Rebalance}, strs); n > 0.01 {
		t.Errorf("rebalance of strings: %v allocations a record", n)
	}
	if n := allocsPerRecord(t, Partitioning{Kind: Hash, Impl: mustKeyBy(t, func(s string) string { return s })}, strs); n > 0.01 {
		t.Errorf("hash of strings: %v allocations a record", n)
	}
}

func allocsPerRecord[T any](t *testing.T, p Partitioning, b Batch[T]) float64 {
	x := newRing(3, 32<<10)
	for range 3 {
		r, err := TypeOf[T](nil).NewReader(Out[T](&sum[T]{of: func(T) uint64 { return 0 }}))
		if err != nil {
			t.Fatal(err)
		}
		x.reads = append(x.reads, r)
	}
	out, _ := writerFor[T](t, nil, x, 3, p)
	return testing.AllocsPerRun(50, func() {
		if err := out.Push(b); err != nil {
			t.Fatal(err)
		}
	}) / float64(len(b.Recs))
}
