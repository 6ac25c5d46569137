package kafkasource

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// What Java answers for String.hashCode, and for Flink's owner of partition 5 among 1, 2, 3, 7, 8 and 128 readers.
var javaSays = []struct {
	topic  string
	hash   int32
	owners [6]int
}{
	{"", 0, [...]int{0, 1, 2, 5, 5, 5}},
	{"a", 97, [...]int{0, 0, 0, 2, 4, 68}},
	{"clicks", -1357714453, [...]int{0, 0, 2, 5, 2, 122}},
	{"clicks-per-user", -167094755, [...]int{0, 0, 0, 5, 0, 8}},
	{"polygenelubricants", math.MinInt32, [...]int{0, 1, 2, 5, 5, 5}},
	{"orders.v1", -390712796, [...]int{0, 1, 0, 2, 1, 97}},
	{"Zażółć-gęślą-jaźń", -1748522346, [...]int{0, 1, 0, 3, 7, 47}},
	{"straße", -891990090, [...]int{0, 1, 1, 2, 7, 15}},
	{"日本語トピック", -304544657, [...]int{0, 0, 1, 3, 6, 118}},
	{"\U0001F600", 1772899, [...]int{0, 0, 0, 4, 2, 2}},
	{"smile-\U0001F600-\U0001F44D\U0001F3FD", 1722677078, [...]int{0, 1, 1, 1, 7, 111}},
	{"\u00e9\u0301", 7992, [...]int{0, 1, 2, 6, 5, 77}},
	{"Aa", 2112, [...]int{0, 1, 2, 6, 5, 69}},
	{"BB", 2112, [...]int{0, 1, 2, 6, 5, 69}},
	{strings.Repeat("x", 249), -1202799496, [...]int{0, 1, 1, 4, 5, 13}},
	{"the.quick.brown.fox.jumps.over.the.lazy.dog_2026-11-30", 1751489699, [...]int{0, 0, 2, 0, 2, 66}},
}

func TestOwner(t *testing.T) {
	for _, tc := range javaSays {
		if got := javaHash(tc.topic); got != tc.hash {
			t.Errorf("hash of %q is %d, Java says %d", tc.topic, got, tc.hash)
		}
		for i, readers := range []int{1, 2, 3, 7, 8, 128} {
			if got := owner(kafka.TP{Topic: tc.topic, Partition: 5}, readers); got != tc.owners[i] {
				t.Errorf("owner of partition 5 of %q among %d is %d, Flink says %d", tc.topic, readers, got, tc.owners[i])
			}
		}
	}
}

func TestSplitState(t *testing.T) {
	for _, want := range []splitState{
		{kafka.TP{Topic: "clicks", Partition: 3}, 17, noStop},
		{kafka.TP{Topic: "a-b-1", Partition: math.MaxInt32}, math.MaxInt64 - 1, 0},
		{kafka.TP{Topic: strings.Repeat("x", 249)}, 0, 1 << 40},
	} {
		s := want.split()
		got, err := parseSplit(s)
		if err != nil || got != want {
			t.Errorf("split of %+v is read as %+v, %v", want, got, err)
		}
		for n := range s.State {
			if _, err := parseSplit(flow.Split{ID: s.ID, State: s.State[:n]}); err == nil {
				t.Errorf("the first %d of %d bytes of a split are accepted", n, len(s.State))
			}
		}
		if _, err := parseSplit(flow.Split{ID: s.ID, State: append(bytes.Clone(s.State), 0)}); err == nil {
			t.Error("a split with a byte too many is accepted")
		}
	}
	golden := splitState{kafka.TP{Topic: "ab", Partition: 1}, 300, noStop}.split()
	if want := "\x01\x02ab\x02\xd8\x04\x01"; string(golden.State) != want || golden.ID != "ab-1" {
		t.Errorf("split is %s %q, want ab-1 %q", golden.ID, golden.State, want)
	}
	if _, err := parseSplit(flow.Split{ID: "x", State: []byte("\x02\x02ab\x02\xd8\x04\x01")}); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("split of a later version: %v", err)
	}
}

func FuzzParseSplit(f *testing.F) {
	f.Add(splitState{kafka.TP{Topic: "ab", Partition: 1}, 300, noStop}.split().State)
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseSplit(flow.Split{ID: "x", State: b}); err == nil {
			if again, err := parseSplit(s.split()); err != nil || again != s {
				t.Errorf("%+v becomes %+v, %v", s, again, err)
			}
		}
	})
}
