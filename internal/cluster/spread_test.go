package cluster

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// slowSpread is the obvious form: members in order of Set, nodes in order of their last change.
type slowSpread struct {
	members []slowMember
	nodes   []int
}

type slowMember struct{ member, node, count int }

func (s *slowSpread) remove(m int) {
	for _, e := range s.members {
		if e.member == m {
			s.touch(e.node)
		}
	}
	s.members = slices.DeleteFunc(s.members, func(e slowMember) bool { return e.member == m })
}

func (s *slowSpread) touch(node int) {
	s.nodes = append(slices.DeleteFunc(s.nodes, func(n int) bool { return n == node }), node)
}

func (s *slowSpread) sum(node int) (n int) {
	for _, e := range s.members {
		if e.node == node {
			n += e.count
		}
	}
	return n
}

// best finds the first member, by better count, then better sum of its node, then the node's turn.
func (s *slowSpread) best(better func(a, b int) bool, min int) int {
	var found *slowMember
	for _, node := range s.nodes {
		for i := range s.members {
			e := &s.members[i]
			if e.node != node || e.count < min {
				continue
			}
			if found == nil || better(e.count, found.count) || e.count == found.count && better(s.sum(node), s.sum(found.node)) {
				found = e
			}
		}
	}
	if found == nil {
		return -1
	}
	return found.member
}

func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fast Spread
		var slow slowSpread
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m := rapid.IntRange(0, 9).Draw(t, "member")
			if rapid.IntRange(0, 3).Draw(t, "op") > 0 {
				node, c := rapid.IntRange(0, 3).Draw(t, "node"), rapid.SampledFrom([]int{0, 1, 2, 63, 64, 65, 200}).Draw(t, "count")
				for _, e := range slow.members {
					if e.member == m && e.node == node { // its place changes, the node's turn comes once
						slow.members = slices.DeleteFunc(slow.members, func(e slowMember) bool { return e.member == m })
						break
					}
				}
				slow.remove(m)
				fast.Set(m, node, c)
				slow.members = append(slow.members, slowMember{m, node, c})
				slow.touch(node)
			} else {
				fast.Remove(m)
				slow.remove(m)
			}
			min := rapid.SampledFrom([]int{0, 1, 3, 64, 66, 201}).Draw(t, "min")
			if got, want := fast.Most(), slow.best(func(a, b int) bool { return a > b }, 0); got != want {
				t.Fatalf("Most = %d, want %d of %v", got, want, slow)
			}
			if got, want := fast.Least(min), slow.best(func(a, b int) bool { return a < b }, min); got != want {
				t.Fatalf("Least(%d) = %d, want %d of %v", min, got, want, slow)
			}
		}
	})
}
