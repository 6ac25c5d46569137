package flow

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"
)

// memExchange is a SegmentOut that keeps what it is given.
type memExchange struct {
	room   int
	open   map[int][]byte
	events map[int][]any // per channel: []byte or Control
	gets   int
	fail   error
}

func newMemExchange(room int) *memExchange {
	return &memExchange{room: room, open: map[int][]byte{}, events: map[int][]any{}}
}

func (m *memExchange) Get(ch int) ([]byte, error) {
	if m.fail != nil {
		return nil, m.fail
	}
	if m.open[ch] != nil {
		return nil, fmt.Errorf("channel %d has an open segment", ch)
	}
	m.gets++
	b := alignedBytes(m.room)
	for i := range b {
		b[i] = 0xA5 // what an earlier use may have left
	}
	m.open[ch] = b
	return b, nil
}

func (m *memExchange) Put(ch, n int) error {
	if n <= 0 || m.open[ch] == nil || n > len(m.open[ch]) {
		return fmt.Errorf("bad Put(%d, %d)", ch, n)
	}
	m.events[ch] = append(m.events[ch], m.open[ch][:n])
	m.open[ch] = nil
	return nil
}

func (m *memExchange) Control(ch int, c Control) error {
	if m.open[ch] != nil {
		return fmt.Errorf("control on channel %d overtakes records", ch)
	}
	m.events[ch] = append(m.events[ch], c)
	return nil
}

// collect is an Out that copies what it gets.
type collect[T any] struct {
	recs  []T
	times []int64
	ctl   []Control
	timed bool
	keep  func(T) T
}

func (c *collect[T]) Push(b Batch[T]) error {
	if b.Times != nil && len(b.Times) != len(b.Recs) {
		return fmt.Errorf("%d times for %d records", len(b.Times), len(b.Recs))
	}
	for _, r := range b.Recs {
		if c.keep != nil {
			r = c.keep(r)
		}
		c.recs = append(c.recs, r)
	}
	c.times = append(c.times, b.Times...)
	c.timed = b.Times != nil
	return nil
}

func (c *collect[T]) Control(k Control) error { c.ctl = append(c.ctl, k); return nil }

// writerFor makes a writer of n channels.
func writerFor[T any](t testing.TB, cs *Codecs, x SegmentOut, n int, p Partitioning) (Out[T], Writer) {
	t.Helper()
	out, w, err := TypeOf[T](cs).NewWriter(WriterConfig{Part: p, Channels: n, MaxParallelism: 128, Parallelism: n, Segments: x, Bytes: new(Counter)})
	if err != nil {
		t.Fatal(err)
	}
	return out.(Out[T]), w
}

// read decodes everything on channel ch.
func read[T any](t testing.TB, cs *Codecs, x *memExchange, ch int, keep func(T) T) *collect[T] {
	t.Helper()
	got := &collect[T]{keep: keep}
	r, err := TypeOf[T](cs).NewReader(Out[T](got))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range x.events[ch] {
		switch e := e.(type) {
		case []byte:
			err = r.Consume(e)
		case Control:
			err = r.Control(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return got
}

type inner struct {
	B  bool
	F  float32
	Ts [2]time.Time
}

type kitchen struct {
	ID    uint64
	Small int8
	Name  string
	Raw   []byte
	At    time.Time
	In    inner
	Tags  []string
	Nums  []int32
	Opt   *inner
	Empty []struct{}
	Deep  [][]string
	c     complex128 // unexported fields are sent as well
}

func kitchenOf(i int) kitchen {
	k := kitchen{ID: uint64(i), Small: int8(i), Name: fmt.Sprint("name-", i), At: time.Unix(int64(i), 5).UTC(), c: complex(float64(i), 1)}
	k.In = inner{B: i%2 == 0, F: float32(i), Ts: [2]time.Time{time.Unix(1, 2).UTC()}}
	if i%3 == 0 {
		k.Raw = []byte{}
		k.Tags = []string{"a", fmt.Sprint(i), ""}
		k.Nums = []int32{1, int32(i)}
		k.Opt = &inner{B: true}
		k.Deep = [][]string{nil, {}, {"x"}}
		k.Empty = make([]struct{}, i%5)
	}
	if i%3 == 1 {
		k.Raw = make([]byte, i%300)
	}
	return k
}

func keepKitchen(k kitchen) kitchen {
	k.Raw = slices.Clone(k.Raw)
	return k
}

func testRoundTrip[T any](t *testing.T, room, n int, make func(i int) T, keep func(T) T) {
	t.Helper()
	for _, timed := range []bool{false, true} {
		x := newMemExchange(room)
		out, w := writerFor[T](t, nil, x, 1, Partitioning{})
		var want []T
		var times []int64
		for i := 0; i < n; {
			k := min(n-i, 1+i%97)
			b := Batch[T]{}
			for range k {
				b.Recs = append(b.Recs, make(i))
				if timed {
					b.Times = append(b.Times, int64(i)*3-5)
				}
				i++
			}
			if err := out.Push(b); err != nil {
				t.Fatal(err)
			}
			want, times = append(want, b.Recs...), append(times, b.Times...)
		}
		if err := out.Control(Control{Kind: End}); err != nil {
			t.Fatal(err)
		}
		if w.Pending() {
			t.Error("Pending after End")
		}
		got := read(t, nil, x, 0, keep)
		if !reflect.DeepEqual(got.recs, want) || !slices.Equal(got.times, times) {
			t.Fatalf("room %d, timed %v: got %d records, want %d, or other ones", room, timed, len(got.recs), len(want))
		}
		if len(got.ctl) != 1 || got.ctl[0].Kind != End {
			t.Errorf("got controls %v, want End", got.ctl)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, room := range []int{64, 136, 1024, 32 << 10} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			testRoundTrip(t, room, 5000, func(i int) uint64 { return uint64(i) }, nil)
			testRoundTrip(t, room, 500, func(i int) [3]int32 { return [3]int32{int32(i), 2, 3} }, nil)
			testRoundTrip(t, room, 500, func(i int) bool { return i%3 == 0 }, nil)
			testRoundTrip(t, room, 500, func(i int) struct{} { return struct{}{} }, nil)
			testRoundTrip(t, room, 100, func(i int) [200]byte { return [200]byte{byte(i), 199: 7} }, nil)
			testRoundTrip(t, room, 2000, func(i int) string { return fmt.Sprint("s", i*i*i) }, nil)
			testRoundTrip(t, room, 400, func(i int) string { return string(make([]byte, i*7)) }, nil)
			testRoundTrip(t, room, 400, func(i int) []byte { return make([]byte, i) }, slices.Clone)
			testRoundTrip(t, room, 100, func(i int) time.Time { return time.Unix(int64(i)<<20, 7).UTC() }, nil)
			testRoundTrip(t, room, 1000, kitchenOf, keepKitchen)
		})
	}
}

func TestTypesThatCantBeSent(t *testing.T) {
	type hasMap struct {
		A int
		M struct{ Tags map[string]string }
	}
	type list struct {
		V    int
		Next *list
	}
	for _, c := range []struct {
		typ  Type
		want string
	}{
		{TypeOf[hasMap](nil), "records of type flow.hasMap can't be sent between processes: field M.Tags is a map[string]string; give the type a codec (heddle.UseCodec)"},
		{TypeOf[any](nil), "records of type interface {} can't be sent between processes: it is a interface {}; give the type a codec (heddle.UseCodec)"},
		{TypeOf[netip.Addr](nil), "records of type netip.Addr can't be sent between processes: field z is a unique.Handle[net/netip.addrDetail]," +
			" which means nothing in another process (netip.Addr holds one); give the type a codec (heddle.UseCodec)"},
		{TypeOf[[]func()](nil), "records of type []func() can't be sent between processes: field [] is a func(); give the type a codec (heddle.UseCodec)"},
		{TypeOf[list](nil), "records of type flow.list can't be sent between processes: field Next is a flow.list, which contains itself; give the type a codec (heddle.UseCodec)"},
	} {
		if err := c.typ.Err(); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v\nwant %s", c.typ.Name(), err, c.want)
		}
		if _, _, err := c.typ.NewWriter(WriterConfig{Channels: 1}); err == nil {
			t.Errorf("%s: NewWriter: no error", c.typ.Name())
		}
	}
}

func TestWriterFailsWithItsExchange(t *testing.T) {
	cancelled := errors.New("cancelled")
	x := newMemExchange(1024)
	x.fail = cancelled
	nums, _ := writerFor[int](t, nil, x, 1, Partitioning{})
	if err := nums.Push(Batch[int]{Recs: []int{1}}); !errors.Is(err, cancelled) {
		t.Errorf("fixed: got %v", err)
	}
	strs, _ := writerFor[string](t, nil, x, 1, Partitioning{})
	if err := strs.Push(Batch[string]{Recs: []string{"a"}}); !errors.Is(err, cancelled) {
		t.Errorf("strings: got %v", err)
	}
}
