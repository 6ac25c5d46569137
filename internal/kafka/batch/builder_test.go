package batch

import (
	"bytes"
	"fmt"
	"testing"
)

// build fills a batch with recs by a Builder.
func build(t testing.TB, buf []byte, recs []Record) *Builder {
	t.Helper()
	b := new(Builder)
	b.Begin(buf)
	for _, r := range recs {
		var h []byte
		if len(r.Headers) > 0 {
			h = AppendHeaders(nil, r.Headers)
		}
		if !b.Append(r.Time, r.Key, r.Value, h) {
			t.Fatalf("no room for record %d", b.Len())
		}
	}
	return b
}

func mixedRecords(n int) (recs []Record) {
	for i := range n {
		r := Record{Time: int64(1000 + i*37%100), Value: bytes.Repeat([]byte{byte('a' + i%7)}, i%300)}
		switch i % 5 {
		case 0:
			r.Key = fmt.Appendf(nil, "key %d", i)
		case 1:
			r.Key = []byte{}
		case 2:
			r.Value = nil
		case 3:
			r.Headers = []RecordHeader{{"a", []byte("1")}, {"b", nil}}
		}
		recs = append(recs, r)
	}
	return recs
}

// A Builder makes the same bytes as Append, for each codec, and again when sealed anew.
func TestBuilder(t *testing.T) {
	recs := mixedRecords(500)
	h := Header{LeaderEpoch: -1, ProducerID: 7, Epoch: 2, Sequence: 40}
	var c Compressor
	for codec := None; codec <= Zstd; codec++ {
		b := build(t, make([]byte, 1<<20), recs)
		for range 2 {
			got, err := b.Seal(h, codec, &c)
			if err != nil {
				t.Fatal(err)
			}
			want := h
			want.Attributes = int16(codec)
			if !bytes.Equal(got, mustAppend(t, want, recs)) {
				t.Errorf("%s: Builder and Append disagree", codec)
			}
			h.Sequence += 5
		}
	}
}

// What packing would make larger stays as it is.
func TestBuilderIncompressible(t *testing.T) {
	b := build(t, make([]byte, 1<<10), []Record{{Value: []byte("xyz")}})
	got, err := b.Seal(Header{}, Gzip, new(Compressor))
	if err != nil {
		t.Fatal(err)
	}
	if h, err := Parse(got); err != nil || h.Codec() != None {
		t.Errorf("header %+v, %v", h, err)
	}
}

func TestBuilderRoom(t *testing.T) {
	for _, n := range []int{0, 1, 100, 10_000} {
		value := make([]byte, n)
		b := new(Builder)
		b.Begin(make([]byte, HeaderSize+Room(3, n, 0)))
		if !b.Append(1<<50, []byte("key"), value, nil) {
			t.Errorf("Room(3, %d, 0) is too little", n)
		}
		if b.Append(0, nil, make([]byte, 100), nil) || b.Len() != 1 {
			t.Error("a record without room was taken")
		}
	}
}

func TestSplit(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		for _, n := range []int{2, 3, 500} {
			recs := mixedRecords(n)
			b, rest := build(t, make([]byte, 1<<20), recs), new(Builder)
			if _, err := b.Seal(Header{}, codec, new(Compressor)); err != nil {
				t.Fatal(err)
			}
			rest.Begin(make([]byte, 1<<20))
			if err := b.Split(rest, new(Decompressor)); err != nil {
				t.Fatal(err)
			}
			for i, part := range []*Builder{b, rest} {
				want := recs[:n/2]
				if i == 1 {
					want = recs[n/2:]
				}
				got, err := part.Seal(Header{}, None, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, mustAppend(t, Header{}, want)) {
					t.Errorf("%s: half %d of %d records is wrong", codec, i, n)
				}
			}
		}
	}
}

func TestCheckHeaders(t *testing.T) {
	good := AppendHeaders(nil, []RecordHeader{{"key", []byte("value")}, {"", nil}})
	if err := CheckHeaders(good); err != nil {
		t.Error(err)
	}
	for n := range good {
		_, err := Headers(nil, good[:n])
		if err2 := CheckHeaders(good[:n]); (err == nil) != (err2 == nil) {
			t.Errorf("of %x Headers says %v, CheckHeaders %v", good[:n], err, err2)
		}
	}
}

func TestBuilderAllocates(t *testing.T) {
	buf, value := make([]byte, 1<<20), make([]byte, 100)
	var b Builder
	var c Compressor
	if n := testing.AllocsPerRun(20, func() {
		b.Begin(buf)
		for b.Append(1, nil, value, nil) {
		}
		if _, err := b.Seal(Header{}, None, &c); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

func BenchmarkBuild100(b *testing.B) {
	buf, value := make([]byte, 256<<10), make([]byte, 100)
	var w Builder
	w.Begin(buf)
	b.SetBytes(100)
	for b.Loop() {
		if !w.Append(1700000000000, nil, value, nil) {
			if _, err := w.Seal(Header{}, None, nil); err != nil {
				b.Fatal(err)
			}
			w.Begin(buf)
		}
	}
}
