package flow

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestLengthsAroundLimits sends records whose lengths are around those where an encoding changes its form, and where a
// segment ends, with and without times, alone and as fields.
func TestLengthsAroundLimits(t *testing.T) {
	lengths := []int{-1, 0, 1, 2, 125, 126, 127, 128, 129, 1000, 3000, 16382, 16383, 16384, 16385}
	rnd := rand.New(rand.NewPCG(1, 2))
	type pair struct {
		N int32
		B []byte
		S string
	}
	var plain [][]byte
	var strs []string
	var pairs []pair
	for i := range 2000 {
		n := lengths[rnd.IntN(len(lengths))]
		if i%8 != 0 {
			n %= 300
		}
		var b []byte
		if n >= 0 {
			b = bytes.Repeat([]byte{byte(i)}, n)
		}
		plain, strs, pairs = append(plain, b), append(strs, string(b)), append(pairs, pair{int32(i), b, string(b)})
	}
	for _, room := range []int{512, 4096, 32 << 10} {
		for _, timed := range []bool{false, true} {
			t.Run(fmt.Sprint(room, "/", timed), func(t *testing.T) {
				throughAndBack(t, room, timed, plain, bytes.Clone)
				throughAndBack(t, room, timed, strs, nil)
				throughAndBack(t, room, timed, pairs, func(p pair) pair { p.B = bytes.Clone(p.B); return p })
			})
		}
	}
}

// throughAndBack writes recs in batches of changing length by each partitioning, and reads them.
func throughAndBack[T any](t *testing.T, room int, timed bool, recs []T, keep func(T) T) {
	t.Helper()
	for _, part := range []Partitioning{{Kind: Rebalance}, {Kind: Custom, Impl: func(T, int) int { return 0 }}} {
		x := newMemExchange(room)
		out, w := writerFor[T](t, nil, x, 1, part)
		times := make([]int64, len(recs))
		for i, n := 0, 0; i < len(recs); i += n {
			n = min(1+i%50, len(recs)-i)
			b := Batch[T]{Recs: recs[i : i+n]}
			if timed {
				for j := i; j < i+n; j++ {
					times[j] = int64(j)
				}
				b.Times = times[i : i+n]
			}
			if err := out.Push(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		got := read[T](t, nil, x, 0, keep)
		if !reflect.DeepEqual(got.recs, recs) || timed != got.timed || timed && !reflect.DeepEqual(got.times, times) {
			t.Fatalf("%T: %d records came back as %d, or differ", recs, len(recs), len(got.recs))
		}
	}
}
