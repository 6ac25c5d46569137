package flow

import (
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// berlin returns noon in a Location of its own, so that no two results are == before they are normalized.
func berlin(t testing.TB) time.Time {
	t.Helper()
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(2026, 1, 1, 12, 0, 0, 5, loc)
}

type timeKey struct {
	Name string
	At   time.Time
	Both [2]struct {
		N    int8
		When time.Time
	}
}

func TestNormalizedKeysAreEqual(t *testing.T) {
	now := time.Now()
	zone := time.FixedZone("", 3600)
	for _, times := range [][2]time.Time{
		{berlin(t), berlin(t)},
		{berlin(t), berlin(t).UTC()},
		{berlin(t), berlin(t).Local()},
		{now, now.Round(0)},
		{now.In(zone), time.Unix(now.Unix(), int64(now.Nanosecond()))},
		{time.Time{}, time.Time{}.In(zone)},
	} {
		var keys [2]timeKey
		for i, at := range times {
			keys[i] = timeKey{Name: "a", At: at}
			keys[i].Both[1].When = at
		}
		n := newNormalizer[timeKey]()
		if a, b := n.of(keys[0]), n.of(keys[1]); a != b {
			t.Errorf("keys of %v and %v differ: %v, %v", times[0], times[1], a, b)
		} else if !a.At.Equal(times[0]) || !a.Both[1].When.Equal(times[0]) {
			t.Errorf("the key of %v is another moment: %v", times[0], a)
		}
		// A key that was encoded and decoded is found as well.
		codec, err := newStateCodec[timeKey](nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := codec.Append(nil, &keys[0])
		if err != nil {
			t.Fatal(err)
		}
		var back timeKey
		if err := codec.Decode(b, &back); err != nil || back != n.of(keys[1]) {
			t.Errorf("key %v was restored as %v, %v", keys[0], back, err)
		}
	}
}

func TestKeysWithoutTimesAreTakenAsTheyAre(t *testing.T) {
	key := func(e event) string { return e.Key }
	if got := normalKey(key); reflect.ValueOf(got).Pointer() != reflect.ValueOf(key).Pointer() {
		t.Error("a key function without times was wrapped")
	}
	if normalKey[event, time.Time](nil) != nil {
		t.Error("no key function became one")
	}
	m := pairCodec[string, int]{}
	if n := testing.AllocsPerRun(10, func() { _, _ = lookup(map[string]*int(nil), m.normal.of("a")) }); n != 0 {
		t.Errorf("a lookup allocates %v times", n)
	}
}

// Floats that are == have one encoding, and so one hash: keys agree on what is equal.
func TestZerosOfBothSignsAreOneKey(t *testing.T) {
	type pair struct {
		A float32
		B [2]float64
	}
	neg := math.Copysign(0, -1)
	a, b := pair{0, [2]float64{0, 1}}, pair{float32(neg), [2]float64{neg, 1}}
	if a != b || hashOf(t, a) != hashOf(t, b) {
		t.Errorf("%v and %v: equal %v, hashes %x and %x", a, b, a == b, hashOf(t, a), hashOf(t, b))
	}
}

func TestMapStatesFindTimes(t *testing.T) {
	at := &slotSet{current: 0, uses: make([]uint32, 1)}
	s := newStates(at, nil)
	m, shared := NewMapState[time.Time, int](s, "m"), NewSharedMap[timeKey, int](s, "shared")
	if err := s.err(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		n, _ := m.Get(berlin(t))
		m.Set(berlin(t), n+1)
		k := timeKey{At: berlin(t)}
		n, _ = shared.Get(k)
		shared.Set(k, n+1)
	}
	if n, _ := m.Get(berlin(t)); n != 3 || m.Len() != 1 {
		t.Errorf("map state counted %d in %d entries, want 3 in 1", n, m.Len())
	}
	if n, _ := shared.Get(timeKey{At: berlin(t)}); n != 3 || shared.Len() != 1 {
		t.Errorf("shared map counted %d in %d entries, want 3 in 1", n, shared.Len())
	}
	m.Delete(berlin(t))
	shared.Delete(timeKey{At: berlin(t)})
	if m.Len() != 0 || shared.Len() != 0 {
		t.Errorf("after delete: %d and %d entries, want none", m.Len(), shared.Len())
	}
}

func TestDistinctCountsMomentsAndNaNOnce(t *testing.T) {
	moments := Distinct(func(int) time.Time { return berlin(t) })
	acc := moments.Zero()
	for i := range 3 {
		acc = moments.Add(acc, i)
	}
	if n := moments.Result(acc); n != 1 {
		t.Errorf("one moment counts as %d", n)
	}
	floats := Distinct(func(f float64) float64 { return f })
	codec, err := accumulatorCodec(floats, nil)
	if err != nil {
		t.Fatal(err)
	}
	halves := [2]*Set[float64]{floats.Zero(), floats.Zero()}
	for i := range halves {
		for _, f := range []float64{1, math.NaN(), -math.NaN(), 0, math.Copysign(0, -1)} {
			halves[i] = floats.Add(halves[i], f)
		}
		b, err := codec.Append(nil, &halves[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := codec.Decode(b, &halves[i]); err != nil {
			t.Fatal(err)
		}
	}
	if n := floats.Result(floats.Merge(floats.Merge(floats.Zero(), halves[0]), halves[1])); n != 3 {
		t.Errorf("1, NaN and 0 count as %d, want 3", n)
	}
}

// A pointer is equal by where it leads, which is another place after a copy: such keys would never be found again.
func TestMapKeysWithPointersAreRefused(t *testing.T) {
	s := newStates(&slotSet{current: outside}, nil)
	NewMapState[*int, int](s, "pointers")
	NewMapState[struct{ In [2]struct{ At *time.Time } }, int](s, "deep")
	NewSharedMap[netip.Addr, int](s, "addresses")
	NewMapState[unsafe.Pointer, int](s, "unsafe")
	if len(s.errs) != 4 {
		t.Fatalf("got %d errors, want 4: %v", len(s.errs), s.err())
	}
	if msg := s.errs[1].Error(); !strings.Contains(msg, "field In[].At is a *time.Time") {
		t.Errorf("the error does not name the field: %s", msg)
	}
	if _, err := accumulatorCodec(Distinct(func(e *event) *event { return e }), nil); err == nil || !strings.Contains(err.Error(), "*flow.event") {
		t.Errorf("distinct pointers: got %v", err)
	}
	codecs := NewCodecs()
	if err := Use(codecs, addrCodec{}); err != nil {
		t.Fatal(err)
	}
	s = newStates(&slotSet{current: outside}, codecs)
	if NewMapState[netip.Addr, int](s, "addresses"); s.err() != nil {
		t.Errorf("a type with a codec: %v", s.err())
	}
}

type addrCodec struct{}

func (addrCodec) Append(b []byte, a *netip.Addr) ([]byte, error) { return a.AppendTo(b), nil }

func (addrCodec) Decode(b []byte, a *netip.Addr) (err error) {
	*a, err = netip.ParseAddr(string(b))
	return err
}
