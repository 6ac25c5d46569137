package flow

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

func TestHashIsXXH64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "b")
		if got, want := HashBytes(b), xxhash.Sum64(b); got != want {
			t.Fatalf("HashBytes(%x) = %#x, want %#x", b, got, want)
		}
		if got, want := HashString(string(b)), xxhash.Sum64(b); got != want {
			t.Fatalf("HashString(%x) = %#x, want %#x", b, got, want)
		}
		v := rapid.Uint64().Draw(t, "v")
		if got, want := HashUint64(v), xxhash.Sum64(binary.LittleEndian.AppendUint64(nil, v)); got != want {
			t.Fatalf("HashUint64(%d) = %#x, want %#x", v, got, want)
		}
	})
}

func hashOf[K any](t *testing.T, k K) uint64 {
	t.Helper()
	h, err := HashOf[K]()
	if err != nil {
		t.Fatal(err)
	}
	return h(&k)
}

// TestKeyHashes pins the encoding of keys: what it says here is in checkpoints.
func TestKeyHashes(t *testing.T) {
	type user struct {
		Name string
		ID   int32
		_    int64
	}
	type named string
	words := func(ws ...uint64) []byte {
		var b []byte
		for _, w := range ws {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	for _, c := range []struct {
		got uint64
		enc []byte
	}{
		{hashOf(t, int8(-2)), words(math.MaxUint64 - 1)},
		{hashOf(t, int16(-2)), words(math.MaxUint64 - 1)},
		{hashOf(t, int64(-2)), words(math.MaxUint64 - 1)},
		{hashOf(t, uint16(65535)), words(65535)},
		{hashOf(t, uint32(7)), words(7)},
		{hashOf(t, uint8(7)), words(7)},
		{hashOf(t, float32(1.5)), words(math.Float64bits(1.5))},
		{hashOf(t, math.Copysign(0, -1)), words(0)},
		{hashOf(t, math.Float64frombits(0xFFF8000000000123)), words(0x7FF8000000000001)},
		{hashOf(t, true), []byte{1}},
		{hashOf(t, "clicks"), []byte("clicks")},
		{hashOf(t, named("clicks")), []byte("clicks")},
		{hashOf(t, []byte("clicks")), []byte("clicks")},
		{hashOf(t, [3]byte{1, 2, 3}), []byte{1, 2, 3}},
		{hashOf(t, [2]int16{-1, 2}), words(math.MaxUint64, 2)},
		{hashOf(t, time.Unix(5, 6)), words(5, 6)},
		{hashOf(t, user{"ab", -1, 0}), append(append(words(2), "ab"...), words(math.MaxUint64, 0)...)},
		{hashOf(t, struct{}{}), nil},
	} {
		if want := xxhash.Sum64(c.enc); c.got != want {
			t.Errorf("hash %#x, want %#x of %x", c.got, want, c.enc)
		}
	}
	if _, err := HashOf[struct{ A struct{ M map[int]int } }](); err == nil || !strings.Contains(err.Error(), "field A.M is a map") {
		t.Errorf("a map as key: got %v", err)
	}
}

func TestKeyGroupsCoverAllSubtasks(t *testing.T) {
	for _, c := range []struct{ groups, parallelism int }{{1, 1}, {128, 3}, {128, 128}, {MaxKeyGroups, 1000}} {
		seen := make([]int, c.parallelism)
		for g := range c.groups {
			seen[GroupSubtask(g, c.groups, c.parallelism)]++
		}
		for s, n := range seen {
			if n < c.groups/c.parallelism || n > c.groups/c.parallelism+1 {
				t.Errorf("%v: subtask %d has %d groups", c, s, n)
			}
		}
		if KeyGroup(0, c.groups) != 0 || KeyGroup(math.MaxUint64, c.groups) != c.groups-1 {
			t.Errorf("%v: key groups out of range", c)
		}
	}
}

func TestKeyByAgreesWithHashOf(t *testing.T) {
	type id int32
	check := func(name string, groups func(out []uint16), want func(i int) uint64) {
		out := make([]uint16, 100)
		groups(out)
		for i, g := range out {
			if w := KeyGroup(want(i), 97); int(g) != w {
				t.Errorf("%s: record %d in group %d, want %d", name, i, g, w)
			}
		}
	}
	recs := ints(100)
	check("string", func(out []uint16) { mustKeyBy(t, func(v int64) string { return fmt.Sprint(v) }).Groups(recs, 97, out) },
		func(i int) uint64 { return hashOf(t, fmt.Sprint(i)) })
	check("int", func(out []uint16) { mustKeyBy(t, func(v int64) int { return int(v) }).Groups(recs, 97, out) },
		func(i int) uint64 { return hashOf(t, i) })
	check("int32", func(out []uint16) { mustKeyBy(t, func(v int64) id { return id(v) }).Groups(recs, 97, out) },
		func(i int) uint64 { return hashOf(t, id(i)) })
	check("struct", func(out []uint16) {
		mustKeyBy(t, func(v int64) [2]int64 { return [2]int64{v, 1} }).Groups(recs, 97, out)
	},
		func(i int) uint64 { return hashOf(t, [2]int64{int64(i), 1}) })
}
