package batch

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const everything = flow.FieldKey | flow.FieldHeaders | flow.FieldOffset | flow.FieldTime

var someRecords = []Record{
	{Time: 1700000000000, Key: []byte("k"), Value: []byte("hello")},
	{Time: 1700000000005, Value: []byte(strings.Repeat("long value ", 40))},
	{Time: 1699999999999, Key: []byte{}, Headers: []RecordHeader{{Key: "trace", Value: []byte("1")}, {Key: "null"}}},
	{Time: 1700000000100, Key: []byte("tombstone")},
}

func mustAppend(t testing.TB, h Header, recs []Record) []byte {
	t.Helper()
	b, err := Append(nil, h, recs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// walk decodes every record of every batch of b.
func walk(b []byte, limit int, from, stop int64) (recs []Record, offsets []int64, err error) {
	var (
		d = Decompressor{MaxUnpacked: 1 << 20}
		c Cursor
		m flow.Messages
	)
	for len(b) > 0 {
		h, err := Parse(b)
		if err != nil {
			return recs, offsets, err
		}
		if err := Verify(b[:h.Size]); err != nil {
			return recs, offsets, err
		}
		raw, err := d.Unpack(h.Codec(), b[HeaderSize:h.Size])
		if err != nil {
			return recs, offsets, err
		}
		b = b[h.Size:]
		if err := c.Walk(&h, raw); err != nil {
			return recs, offsets, err
		}
		for !c.Done() {
			if err := c.Fill(&m, everything, limit, from, stop); err != nil {
				return recs, offsets, err
			}
			for i := range m.Len() {
				hs, err := Headers(nil, m.At(m.Headers[i]))
				if err != nil {
					return recs, offsets, err
				}
				for i := range hs {
					hs[i].Value = bytes.Clone(hs[i].Value)
				}
				recs = append(recs, Record{Time: m.Times[i], Key: bytes.Clone(m.At(m.Keys[i])), Value: bytes.Clone(m.Value(i)), Headers: hs})
				offsets = append(offsets, m.Offsets[i])
			}
		}
	}
	return recs, offsets, nil
}

func TestRoundTrip(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		for _, limit := range []int{1, 200, 1 << 20} {
			h := Header{BaseOffset: 1 << 40, Attributes: int16(codec), ProducerID: -1, Epoch: -1, Sequence: -1}
			recs, offsets, err := walk(mustAppend(t, h, someRecords), limit, 0, math.MaxInt64)
			if err != nil {
				t.Fatalf("%s: %v", codec, err)
			}
			if !reflect.DeepEqual(recs, someRecords) {
				t.Errorf("%s, limit %d: got\n%#v\nwant\n%#v", codec, limit, recs, someRecords)
			}
			if got, want := fmt.Sprint(offsets), fmt.Sprint([]int64{1 << 40, 1<<40 + 1, 1<<40 + 2, 1<<40 + 3}); got != want {
				t.Errorf("%s: offsets %s, want %s", codec, got, want)
			}
		}
	}
}

func TestGolden(t *testing.T) {
	b := mustAppend(t, Header{BaseOffset: 7, LeaderEpoch: 3, Attributes: attrTransactional, ProducerID: 5, Epoch: 1, Sequence: 9},
		[]Record{{Time: 1000, Key: []byte("k"), Value: []byte("v")}, {Time: 1001, Headers: []RecordHeader{{Key: "h", Value: []byte("x")}}}})
	want := strings.Join([]string{
		"0000000000000007", "00000045", "00000003", "02", "16086c65", "0010", "00000001",
		"00000000000003e8", "00000000000003e9", "0000000000000005", "0001", "00000009", "00000002",
		"10" + "00" + "00" + "00" + "026b" + "0276" + "00",
		"14" + "00" + "02" + "02" + "01" + "01" + "02" + "0268" + "0278",
	}, "")
	got := hex.EncodeToString(b)
	if got != want {
		t.Errorf("batch is\n%s\nwant\n%s", got, want)
	}
}

func TestAgreesWithKmsg(t *testing.T) {
	b := mustAppend(t, Header{BaseOffset: 42, LeaderEpoch: 2, ProducerID: 77, Epoch: 3, Sequence: 8}, someRecords)
	var kb kmsg.RecordBatch
	if err := kb.ReadFrom(b); err != nil {
		t.Fatal(err)
	}
	if kb.FirstOffset != 42 || kb.NumRecords != 4 || kb.LastOffsetDelta != 3 || kb.ProducerID != 77 || kb.ProducerEpoch != 3 || kb.FirstSequence != 8 || kb.MaxTimestamp != 1700000000100 {
		t.Errorf("kmsg reads the header as %+v", kb)
	}
	rest := kb.Records
	for i, want := range someRecords {
		var r kmsg.Record
		if err := r.ReadFrom(rest); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if !bytes.Equal(r.Key, want.Key) || !bytes.Equal(r.Value, want.Value) || len(r.Headers) != len(want.Headers) {
			t.Errorf("kmsg reads record %d as %+v", i, r)
		}
		rest = rest[len(r.AppendTo(nil)):]
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes left", len(rest))
	}
	if err := Verify(kb.AppendTo(nil)); err != nil {
		t.Errorf("Verify of what kmsg wrote: %v", err)
	}
}

func TestWindow(t *testing.T) {
	b := mustAppend(t, Header{BaseOffset: 100}, someRecords)
	for _, tc := range []struct{ from, stop, first, n int64 }{
		{0, 200, 100, 4}, {101, 200, 101, 3}, {103, 104, 103, 1}, {104, 200, 0, 0}, {0, 100, 0, 0}, {102, 103, 102, 1}, {0, 102, 100, 2},
	} {
		for _, limit := range []int{1, 1 << 20} {
			_, offsets, err := walk(b, limit, tc.from, tc.stop)
			if err != nil || int64(len(offsets)) != tc.n || tc.n > 0 && offsets[0] != tc.first {
				t.Errorf("offsets of [%d, %d) are %v (%v), want %d from %d", tc.from, tc.stop, offsets, err, tc.n, tc.first)
			}
		}
	}
}

func TestBufHoldsOnlyWhatWasTaken(t *testing.T) {
	b := mustAppend(t, Header{}, someRecords)
	h, _ := Parse(b)
	var c Cursor
	var m flow.Messages
	if err := c.Walk(&h, b[HeaderSize:]); err != nil {
		t.Fatal(err)
	}
	if err := c.Fill(&m, 0, 1<<20, 2, 3); err != nil {
		t.Fatal(err)
	}
	if len(m.Buf) > 40 || m.Len() != 1 || m.Value(0) != nil || m.Keys != nil {
		t.Errorf("window of one small record: %d bytes, %d records", len(m.Buf), m.Len())
	}
}

func TestLogAppendTime(t *testing.T) {
	b := mustAppend(t, Header{Attributes: attrLogAppendTime}, someRecords)
	recs, _, err := walk(b, 1<<20, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range recs {
		if r.Time != 1700000000100 {
			t.Errorf("time of record %d is %d, want the batch's max", i, r.Time)
		}
	}
}

func TestTruncation(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		whole := mustAppend(t, Header{Attributes: int16(codec)}, someRecords)
		for n := range whole {
			if n == 0 {
				continue
			}
			if _, err := Parse(whole[:n]); !errors.Is(err, ErrShort) {
				t.Fatalf("%s: Parse of %d of %d bytes: %v, want ErrShort", codec, n, len(whole), err)
			}
		}
		// The same, with a header that says that this is all there is.
		for n := HeaderSize; n < len(whole); n++ {
			cut := bytes.Clone(whole[:n])
			h, _ := parse(cut, n)
			seal(cut, &h)
			if _, _, err := walk(cut, 1<<20, 0, 100); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s: batch resealed at %d of %d bytes: %v, want ErrCorrupt", codec, n, len(whole), err)
			}
		}
	}
}

func TestInvalid(t *testing.T) {
	edit := func(f func(b []byte)) []byte {
		b := mustAppend(t, Header{}, someRecords[:1])
		f(b)
		h, err := parse(b, len(b))
		if err == nil {
			h.Count = int32(b[offCount])<<24 | int32(b[offCount+1])<<16 | int32(b[offCount+2])<<8 | int32(b[offCount+3])
			seal(b, &h)
		}
		return b
	}
	old := mustAppend(t, Header{}, someRecords[:1])
	old[offMagic] = 1
	flipped := mustAppend(t, Header{}, someRecords)
	flipped[len(flipped)-1] ^= 1
	for name, b := range map[string][]byte{
		"old format":        old,
		"crc":               flipped,
		"count too high":    edit(func(b []byte) { b[offCount+3]++ }),
		"count too low":     edit(func(b []byte) { b[offCount+3]-- }),
		"count huge":        edit(func(b []byte) { b[offCount] = 0x7f }),
		"offset beyond":     edit(func(b []byte) { b[HeaderSize+3] = 2 }),
		"offset negative":   edit(func(b []byte) { b[HeaderSize+3] = 1 }),
		"record too long":   edit(func(b []byte) { b[HeaderSize] += 2 }),
		"key too long":      edit(func(b []byte) { b[HeaderSize+4] = 126 }),
		"value too long":    edit(func(b []byte) { b[HeaderSize+6] = 126 }),
		"negative lastdiff": edit(func(b []byte) { b[offLastDelta] = 0x80 }),
		"unknown codec":     edit(func(b []byte) { b[offAttrs+1] = 6 }),
	} {
		if _, _, err := walk(b, 1<<20, 0, 100); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

func TestBomb(t *testing.T) {
	for codec := Gzip; codec <= Zstd; codec++ {
		b := mustAppend(t, Header{Attributes: int16(codec)}, []Record{{Value: make([]byte, 1<<20)}})
		d := Decompressor{MaxUnpacked: 64 << 10}
		if _, err := d.Unpack(codec, b[HeaderSize:]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s of 1 MiB into 64 KiB: %v, want ErrCorrupt", codec, err)
		}
	}
}

func TestScan(t *testing.T) {
	one := mustAppend(t, Header{BaseOffset: 10}, someRecords)
	empty := mustAppend(t, Header{BaseOffset: 14, LastDelta: 5}, nil) // compacted away
	b := append(append(bytes.Clone(one), empty...), one[:30]...)
	next, _, n, err := Scan(b, 10)
	if next != 20 || n != len(one)+len(empty) || err != nil {
		t.Errorf("Scan is %d, %d, %v; want 20, %d", next, n, err, len(one)+len(empty))
	}
	if next, _, n, err := Scan(one[:20], 3); next != 3 || n != 0 || err != nil {
		t.Errorf("Scan of a cut batch is %d, %d, %v", next, n, err)
	}
}

func marker(t *testing.T, offset, producer int64, kind MarkerKind) []byte {
	return mustAppend(t, Header{BaseOffset: offset, Attributes: attrControl | attrTransactional, ProducerID: producer},
		[]Record{{Key: []byte{0, 0, 0, byte(kind)}, Value: []byte{0, 0, 0, 0, 0, 0}}})
}

func TestAborted(t *testing.T) {
	txn := func(offset, producer int64) []byte {
		return mustAppend(t, Header{BaseOffset: offset, Attributes: attrTransactional, ProducerID: producer}, someRecords[:1])
	}
	batches := []struct {
		b    []byte
		want bool
	}{
		{txn(0, 1), true},  // of a transaction that commits
		{txn(1, 2), false}, // aborted
		{mustAppend(t, Header{BaseOffset: 2, ProducerID: 2}, someRecords[:1]), true}, // no transaction
		{txn(3, 1), true},
		{marker(t, 4, 2, Abort), false},
		{txn(5, 2), true}, // the same producer's next one
		{marker(t, 6, 1, Commit), false},
		{txn(7, 2), true},
		{marker(t, 8, 2, Commit), false},
		{txn(9, 2), false},
		{marker(t, 10, 3, Abort), false}, // of nobody
		{txn(11, 2), false},
	}
	var a Aborted
	for round := range 2 {
		a.Reset([]Transaction{{ProducerID: 2, FirstOffset: 9}, {ProducerID: 2, FirstOffset: 1}})
		for i, tc := range batches {
			h, err := Parse(tc.b)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Visible(&h, tc.b[HeaderSize:]); got != tc.want {
				t.Errorf("round %d: batch %d at offset %d visible is %v, want %v", round, i, h.BaseOffset, got, tc.want)
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	recs := make([]Record, 1000)
	for i := range recs {
		recs[i] = Record{Time: int64(i), Key: []byte("key"), Value: make([]byte, 100)}
	}
	b := mustAppend(t, Header{}, recs)
	var c Cursor
	var m flow.Messages
	run := func() {
		h, _ := Parse(b)
		if err := c.Walk(&h, b[HeaderSize:]); err != nil {
			t.Fatal(err)
		}
		for !c.Done() {
			if err := c.Fill(&m, everything, 8<<10, 0, math.MaxInt64); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(10, run); n != 0 {
		t.Errorf("walking 1000 records allocates %v times, want 0", n)
	}
}

func FuzzWalk(f *testing.F) {
	for codec := None; codec <= Zstd; codec++ {
		f.Add(mustAppend(f, Header{Attributes: int16(codec)}, someRecords), 100, int64(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, limit int, from int64) {
		if n := len(b); n >= HeaderSize { // else nearly all would die at the CRC
			h, err := parse(b, n)
			if err == nil {
				seal(b, &h)
			}
		}
		recs, _, err := walk(b, max(limit, 1), from, math.MaxInt64)
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrShort) {
			t.Errorf("error of no kind: %v", err)
		}
		if err == nil && len(b) > 0 && len(recs) > 1<<24 {
			t.Errorf("%d records from %d bytes", len(recs), len(b))
		}
		if a := (&Aborted{}); len(b) >= HeaderSize {
			if h, err := parse(b, len(b)); err == nil {
				a.Visible(&h, b[HeaderSize:])
			}
		}
		Scan(b, 0)
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add(AppendHeaders(nil, []RecordHeader{{"key", []byte("value")}, {"", nil}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		hs, err := Headers(nil, b)
		if len(hs) > len(b) {
			t.Errorf("%d headers from %d bytes", len(hs), len(b))
		}
		if err2 := CheckHeaders(b); (err == nil) != (err2 == nil) {
			t.Errorf("%x: %v and %v", b, err, err2)
		}
	})
}

func benchBatch(b *testing.B, codec Codec, want flow.MessageFields) {
	recs := make([]Record, 10000)
	for i := range recs {
		recs[i] = Record{Time: int64(i), Value: fmt.Appendf(nil, "%0100d", i)}
	}
	data := mustAppend(b, Header{Attributes: int16(codec)}, recs)
	var (
		c Cursor
		m flow.Messages
		d Decompressor
		n int
	)
	b.ReportAllocs()
	for b.Loop() {
		h, err := Parse(data)
		if err == nil {
			err = Verify(data)
		}
		raw, err2 := d.Unpack(h.Codec(), data[HeaderSize:])
		if err != nil || err2 != nil {
			b.Fatal(err, err2)
		}
		if err := c.Walk(&h, raw); err != nil {
			b.Fatal(err)
		}
		for !c.Done() {
			if err := c.Fill(&m, want, 8<<10, 0, math.MaxInt64); err != nil {
				b.Fatal(err)
			}
			n += m.Len()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/record")
}

func BenchmarkDecode100(b *testing.B) {
	b.Run("values", func(b *testing.B) { benchBatch(b, None, flow.FieldOffset) })
	b.Run("everything", func(b *testing.B) { benchBatch(b, None, everything) })
	for codec := Gzip; codec <= Zstd; codec++ {
		b.Run(codec.String(), func(b *testing.B) { benchBatch(b, codec, flow.FieldOffset) })
	}
}
