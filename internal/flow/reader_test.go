package flow

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// segmentsOf returns segments of each layout, with and without times, and fragments.
func segmentsOf[T any](t testing.TB, recs ...T) [][]byte {
	var all [][]byte
	for _, times := range [][]int64{nil, make([]int64, len(recs))} {
		for _, room := range []int{32, 4096} {
			x := newMemExchange(room)
			out, w := writerFor[T](t, nil, x, 1, Partitioning{})
			if err := out.Push(Batch[T]{Recs: recs, Times: times}); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			for _, e := range x.events[0] {
				all = append(all, e.([]byte))
			}
		}
	}
	return all
}

func readerOf[T any](t testing.TB) SegmentReader {
	r, err := TypeOf[T](nil).NewReader(Out[T](&sum[T]{of: func(T) uint64 { return 0 }}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// testTruncation checks that no prefix of a segment of records is taken for a segment.
func testTruncation[T any](t *testing.T, recs ...T) {
	t.Helper()
	for _, seg := range segmentsOf(t, recs...) {
		if seg[0] != kindRecords {
			continue
		}
		if err := readerOf[T](t).Consume(seg); err != nil {
			t.Fatalf("%T: whole segment: %v", recs, err)
		}
		for n := range seg {
			if err := readerOf[T](t).Consume(seg[:n]); err == nil {
				t.Errorf("%T: no error for the first %d of %d bytes", recs, n, len(seg))
			}
		}
	}
}

func TestTruncatedSegments(t *testing.T) {
	testTruncation[uint64](t, 1, 2, 3)
	testTruncation(t, [3]bool{true}, [3]bool{false, true})
	testTruncation(t, "a", "", strings.Repeat("b", 200))
	testTruncation(t, []byte("a"), nil, []byte{})
	testTruncation(t, kitchenOf(0), kitchenOf(1), kitchenOf(3))
}

func TestMalformedSegments(t *testing.T) {
	good := func(f func(b []byte)) []byte {
		b := append([]byte(nil), segmentsOf(t, "abc", "d")[len(segmentsOf(t, "abc", "d"))-1]...)
		f(b)
		return b
	}
	for _, c := range []struct {
		name, want string
		seg        []byte
	}{
		{"empty", "it ends too early", nil},
		{"kind", "its kind is 9", good(func(b []byte) { b[0] = 9 })},
		{"flags", "its flags are 0x41", good(func(b []byte) { b[1] |= 0x40 })},
		{"type", "it holds records of another type than string", good(func(b []byte) { b[2]++ })},
		{"no records", "it is empty", good(func(b []byte) { clear(b[4:8]) })},
		{"count", "it ends too early", good(func(b []byte) { binary.LittleEndian.PutUint32(b[4:], 1<<31) })},
		{"length", "a length is out of range", good(func(b []byte) { b[headBytes] = 0xFF })},
	} {
		err := readerOf[string](t).Consume(c.seg)
		if want := "cannot decode segment of string records: " + c.want; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", c.name, err, want)
		}
	}
	bools := segmentsOf(t, true, false)[0]
	bools[headBytes] = 2
	if err := readerOf[bool](t).Consume(bools); err == nil {
		t.Error("a bool of 2 is taken")
	}
}

func TestFragmentsOfSeveralWriters(t *testing.T) {
	var writers [2][][]byte
	for i := range writers {
		x := newMemExchange(64)
		out, _ := writerFor[string](t, nil, x, 1, Partitioning{})
		if err := out.Push(Batch[string]{Recs: []string{strings.Repeat(string(rune('a'+i)), 300)}, Times: []int64{int64(i)}}); err != nil {
			t.Fatal(err)
		}
		for _, e := range x.events[0] {
			writers[i] = append(writers[i], e.([]byte))
		}
	}
	got := &collect[string]{}
	r, err := TypeOf[string](nil).NewReader(Out[string](got))
	if err != nil {
		t.Fatal(err)
	}
	for i := range writers[0] {
		for w := range writers {
			if err := r.Consume(writers[w][i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(got.recs) != 2 || got.recs[0] != strings.Repeat("a", 300) || got.times[1] != 1 {
		t.Errorf("got %q at %v", got.recs, got.times)
	}
	if err := r.Consume(writers[0][1]); err == nil {
		t.Error("a fragment without the one before it is taken")
	}
}

func TestReaderPassesOnErrorsOfConsumers(t *testing.T) {
	full := errors.New("disk is full")
	r, err := TypeOf[string](nil).NewReader(Out[string](failing[string]{full}))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Consume(segmentsOf(t, "a")[1]); err != full {
		t.Errorf("got %v, want the consumer's error as it is", err)
	}
}

type failing[T any] struct{ err error }

func (f failing[T]) Push(Batch[T]) error   { return f.err }
func (f failing[T]) Control(Control) error { return f.err }

func fuzzReader[T any](f *testing.F, recs ...T) {
	for _, seg := range segmentsOf(f, recs...) {
		f.Add(seg, []byte{})
	}
	print := readerOf[T](f).(*reader[T]).l.print
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r := readerOf[T](t)
		for _, seg := range [][]byte{a, b} {
			if len(seg) >= 4 {
				binary.LittleEndian.PutUint16(seg[2:], print)
			}
			_ = r.Consume(seg) // must not panic
		}
	})
}

func FuzzReadFixed(f *testing.F) {
	fuzzReader(f, struct {
		A uint32
		B bool
	}{1, true})
}
func FuzzReadString(f *testing.F)  { fuzzReader(f, "a", strings.Repeat("b", 100)) }
func FuzzReadKitchen(f *testing.F) { fuzzReader(f, kitchenOf(0), kitchenOf(1), kitchenOf(3)) }
func FuzzReadBytes(f *testing.F)   { fuzzReader(f, nil, []byte{}, []byte("a"), make([]byte, 200)) }
