package cluster

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// slowRanking is the obvious form: a list in order of Set.
type slowRanking []struct{ member, count int }

func (s *slowRanking) remove(m int) {
	*s = slices.DeleteFunc(*s, func(e struct{ member, count int }) bool { return e.member == m })
}

func (s *slowRanking) find(better func(a, b int) bool, min int) int {
	best, count := -1, 0
	for _, e := range *s {
		if e.count >= min && (best < 0 || better(e.count, count)) {
			best, count = e.member, e.count
		}
	}
	return best
}

func TestRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fast Ranking
		var slow slowRanking
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m := rapid.IntRange(0, 9).Draw(t, "member")
			slow.remove(m)
			if rapid.Bool().Draw(t, "set") {
				c := rapid.SampledFrom([]int{0, 1, 2, 63, 64, 65, 200}).Draw(t, "count")
				fast.Set(m, c)
				slow = append(slow, struct{ member, count int }{m, c})
			} else {
				fast.Remove(m)
			}
			min := rapid.SampledFrom([]int{0, 1, 3, 64, 66, 201}).Draw(t, "min")
			if got, want := fast.Most(), slow.find(func(a, b int) bool { return a > b }, 0); got != want {
				t.Fatalf("Most = %d, want %d", got, want)
			}
			if got, want := fast.Least(min), slow.find(func(a, b int) bool { return a < b }, min); got != want {
				t.Fatalf("Least(%d) = %d, want %d", min, got, want)
			}
		}
	})
}
