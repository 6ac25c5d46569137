package cluster

import "math/bits"

// Ranking holds members, numbered densely from 0, each under a small count, and finds one with the most or
// the least in constant time. Members of equal count come in the order in which they got that count,
// so that taking from the front goes round. The zero Ranking is empty.
//
// Slot selection uses it over what is alike; see Spread for agents, which are on nodes.
type Ranking struct {
	nodes []rankNode // by member
	lists []rankList // by count
	used  []uint64   // bit c is set if lists[c] has a member
}

type rankNode struct {
	prev, next int32 // 1 + member; 0 is none
	count      int32 // 1 + count; 0 is not in the ranking
}

type rankList struct{ head, tail int32 } // 1 + member

// Set puts member at the end of those with count, which must not be negative.
func (r *Ranking) Set(member, count int) {
	r.Remove(member)
	for len(r.nodes) <= member {
		r.nodes = append(r.nodes, rankNode{})
	}
	for len(r.lists) <= count {
		r.lists = append(r.lists, rankList{})
	}
	for len(r.used) <= count/64 {
		r.used = append(r.used, 0)
	}
	l, n, me := &r.lists[count], &r.nodes[member], int32(member+1)
	*n = rankNode{prev: l.tail, count: int32(count + 1)}
	if l.tail == 0 {
		l.head = me
		r.used[count/64] |= 1 << (count % 64)
	} else {
		r.nodes[l.tail-1].next = me
	}
	l.tail = me
}

// Remove takes member out, if it is in.
func (r *Ranking) Remove(member int) {
	if member >= len(r.nodes) || r.nodes[member].count == 0 {
		return
	}
	n := r.nodes[member]
	count := int(n.count - 1)
	l := &r.lists[count]
	if n.prev == 0 {
		l.head = n.next
	} else {
		r.nodes[n.prev-1].next = n.next
	}
	if n.next == 0 {
		l.tail = n.prev
	} else {
		r.nodes[n.next-1].prev = n.prev
	}
	if l.head == 0 {
		r.used[count/64] &^= 1 << (count % 64)
	}
	r.nodes[member] = rankNode{}
}

// Most returns the first of the members with the highest count, or -1.
func (r *Ranking) Most() int {
	for w := len(r.used) - 1; w >= 0; w-- {
		if r.used[w] != 0 {
			return int(r.lists[w*64+63-bits.LeadingZeros64(r.used[w])].head - 1)
		}
	}
	return -1
}

// Least returns the first of the members with the lowest count that is at least min, or -1.
func (r *Ranking) Least(min int) int {
	for w := min / 64; w < len(r.used); w++ {
		set := r.used[w]
		if w == min/64 {
			set &= ^uint64(0) << (min % 64)
		}
		if set != 0 {
			return int(r.lists[w*64+bits.TrailingZeros64(set)].head - 1)
		}
	}
	return -1
}

// Empty reports whether there is no member.
func (r *Ranking) Empty() bool {
	for _, set := range r.used {
		if set != 0 {
			return false
		}
	}
	return true
}

// Next returns the member after this one among those of equal count, or -1.
func (r *Ranking) Next(member int) int { return int(r.nodes[member].next - 1) }
