package flow

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anything has a field of every kind, for rapid.Make.
type anything struct {
	B    bool
	I    int
	I8   int8
	U16  uint16
	F32  float32
	C    [2]int64
	S    string
	Raw  []byte
	Ints []uint16
	Strs []string
	Ptr  *string
	In   struct {
		X, Y   int32
		Nested []struct {
			K string
			V *[3]bool
		}
	}
	Arr [2][]string
}

type timed struct {
	At time.Time
	A  anything
}

func TestCodecProperties(t *testing.T) {
	gen := rapid.Make[anything]()
	rapid.Check(t, func(rt *rapid.T) {
		recs := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) timed {
			sec, nano := rapid.Int64Range(-1<<40, 1<<40).Draw(rt, "sec"), rapid.Int64Range(0, 999_999_999).Draw(rt, "nano")
			return timed{time.Unix(sec, nano).UTC(), gen.Draw(rt, "rec")}
		}), 1, 20).Draw(rt, "recs")
		l, err := layoutOf(reflect.TypeFor[timed](), nil)
		if err != nil {
			rt.Fatal(err)
		}
		x := newMemExchange(rapid.SampledFrom([]int{64, 500, 32 << 10}).Draw(rt, "room"))
		out, w := writerFor[timed](t, nil, x, 1, Partitioning{})
		if err := out.Push(Batch[timed]{Recs: recs}); err != nil {
			rt.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			rt.Fatal(err)
		}
		got := read(t, nil, x, 0, func(r timed) timed { r.A.Raw = slices.Clone(r.A.Raw); return r })
		if !reflect.DeepEqual(got.recs, recs) {
			rt.Fatalf("got %+v\nwant %+v", got.recs, recs)
		}
		if l.fixed || l.custom || !l.strings {
			rt.Fatalf("layout: %+v", l)
		}
	})
}

// A string outlives its segment; that is what copying them is for.
func TestStringsOutliveTheirSegment(t *testing.T) {
	x := newMemExchange(1 << 10)
	out, w := writerFor[string](t, nil, x, 1, Partitioning{})
	if err := out.Push(Batch[string]{Recs: []string{"keep me"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	got := read[string](t, nil, x, 0, nil)
	clear(x.events[0][0].([]byte))
	if got.recs[0] != "keep me" {
		t.Errorf("got %q", got.recs[0])
	}
}

func TestFixedTypes(t *testing.T) {
	type fixed struct {
		A uint8
		B int64
		C [3]struct{ D bool }
	}
	type named string
	for _, c := range []struct {
		typ    reflect.Type
		fixed  bool
		plain  opKind
		custom bool
		bools  int
	}{
		{reflect.TypeFor[int](), true, 0, false, 0},
		{reflect.TypeFor[fixed](), true, 0, false, 3},
		{reflect.TypeFor[struct{}](), true, 0, false, 0},
		{reflect.TypeFor[complex64](), true, 0, false, 0},
		{reflect.TypeFor[string](), false, opString, false, 0},
		{reflect.TypeFor[named](), false, opString, false, 0},
		{reflect.TypeFor[[]byte](), false, opBytes, false, 0},
		{reflect.TypeFor[[]uint16](), false, 0, false, 0},
		{reflect.TypeFor[[1]string](), false, 0, false, 0},
		{reflect.TypeFor[struct{ S string }](), false, 0, false, 0},
		{reflect.TypeFor[time.Time](), false, 0, false, 0},
		{reflect.TypeFor[*int](), false, 0, false, 0},
	} {
		l, err := layoutOf(c.typ, nil)
		if err != nil {
			t.Fatal(err)
		}
		if l.fixed != c.fixed || l.plain != c.plain || l.custom != c.custom || len(l.bools) != c.bools {
			t.Errorf("%s: got %+v", c.typ, l)
		}
	}
}

type money struct{ cents map[string]int }

type moneyCodec struct{}

func (moneyCodec) Append(b []byte, m *money) ([]byte, error) {
	if m.cents == nil {
		return b, errors.New("no money")
	}
	if m.cents["panic"] > 0 {
		panic("too much money")
	}
	return append(b, strings.Repeat("$", m.cents["usd"])...), nil
}

func (moneyCodec) Decode(b []byte, m *money) error {
	if m.cents != nil {
		return fmt.Errorf("decoding into %v", m.cents)
	}
	if len(b) > 1<<20 {
		return errors.New("too rich")
	}
	m.cents = map[string]int{"usd": len(b)}
	return nil
}

func moneyCodecs(t *testing.T) *Codecs {
	cs := NewCodecs()
	if err := Use[money](cs, moneyCodec{}); err != nil {
		t.Fatal(err)
	}
	return cs
}

func TestAuthorsCodec(t *testing.T) {
	type purse struct {
		ID  int
		Has []money
	}
	cs := moneyCodecs(t)
	if err := Use[money](cs, moneyCodec{}); err == nil {
		t.Error("two codecs for one type")
	}
	for _, room := range []int{64, 4096} {
		x := newMemExchange(room)
		out, w := writerFor[purse](t, cs, x, 1, Partitioning{})
		var want []purse
		for i := range 300 {
			p := purse{ID: i}
			for j := range i % 4 {
				p.Has = append(p.Has, money{map[string]int{"usd": i * j}})
			}
			want = append(want, p)
		}
		if err := out.Push(Batch[purse]{Recs: want, Times: ints(300)}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := read[purse](t, cs, x, 0, nil); !reflect.DeepEqual(got.recs, want) || !slices.Equal(got.times, ints(300)) {
			t.Errorf("room %d: got other records", room)
		}
	}
}

func TestAuthorsCodecFails(t *testing.T) {
	cs := moneyCodecs(t)
	for _, c := range []struct {
		rec  money
		want string
	}{
		{money{}, "cannot encode record: codec: no money; record: {cents:map[]}"},
		{money{map[string]int{"panic": 1}}, "cannot encode record: codec: panic: too much money at flow/codec_test.go:"},
	} {
		out, _ := writerFor[money](t, cs, newMemExchange(4096), 1, Partitioning{})
		if err := out.Push(Batch[money]{Recs: []money{c.rec}}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
	x := newMemExchange(4096)
	out, _ := writerFor[money](t, cs, x, 1, Partitioning{})
	if err := out.Push(Batch[money]{Recs: []money{{map[string]int{"usd": 2 << 20}}}}); err != nil {
		t.Fatal(err)
	}
	r, err := TypeOf[money](cs).NewReader(Out[money](&collect[money]{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range x.events[0] {
		err = r.Consume(e.([]byte))
	}
	if want := "cannot decode segment of flow.money records: codec: too rich"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
