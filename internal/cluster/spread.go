package cluster

import "math/bits"

// Spread is a Ranking whose members are on nodes: among members of equal count, one of the node with the highest sum of counts
// is the most, and one of the node with the lowest sum the least. Members of one node come in the order in which they got their
// count, and so do nodes of equal sums. The zero Spread is empty.
//
// Slot selection uses it over agents by their free slots: spread by agent, then by node.
type Spread struct {
	links  []spreadLink // by member
	nodes  []spreadNode
	counts []Ranking // by count: nodes that have a member of that count, by their sum
	used   []uint64  // bit c is set if counts[c] has a node
}

type spreadLink struct {
	prev, next int32 // 1 + member; 0 is none
	node       int32
	count      int32 // 1 + count; 0 is not in
}

type spreadNode struct {
	sum   int
	lists []rankList // by count
}

// mostSum is where sums stop to matter: a node's rank needs no more room than this.
const mostSum = 1 << 12

// Set puts member, which is on a node (numbered densely from 0), at the end of those with count, which must not be negative.
func (s *Spread) Set(member, node, count int) {
	for len(s.links) <= member {
		s.links = append(s.links, spreadLink{})
	}
	for len(s.nodes) <= node {
		s.nodes = append(s.nodes, spreadNode{})
	}
	for len(s.counts) <= count {
		s.counts = append(s.counts, Ranking{})
	}
	for len(s.used) <= count/64 {
		s.used = append(s.used, 0)
	}
	if old := s.links[member]; old.count != 0 {
		s.unlink(member)
		if int(old.node) != node {
			s.rerank(int(old.node))
		}
	}
	n := &s.nodes[node]
	for len(n.lists) <= count {
		n.lists = append(n.lists, rankList{})
	}
	l, me := &n.lists[count], int32(member+1)
	s.links[member] = spreadLink{prev: l.tail, node: int32(node), count: int32(count + 1)}
	if l.tail == 0 {
		l.head = me
	} else {
		s.links[l.tail-1].next = me
	}
	l.tail = me
	n.sum += count
	s.rerank(node)
}

// Remove takes member out, if it is in.
func (s *Spread) Remove(member int) {
	if member < len(s.links) && s.links[member].count != 0 {
		node := int(s.links[member].node)
		s.unlink(member)
		s.rerank(node)
	}
}

// unlink takes member out of its node's list, and leaves the node's rank to rerank.
func (s *Spread) unlink(member int) {
	k := s.links[member]
	count, node := int(k.count-1), int(k.node)
	n := &s.nodes[node]
	l := &n.lists[count]
	if k.prev == 0 {
		l.head = k.next
	} else {
		s.links[k.prev-1].next = k.next
	}
	if k.next == 0 {
		l.tail = k.prev
	} else {
		s.links[k.next-1].prev = k.prev
	}
	n.sum -= count
	s.links[member] = spreadLink{}
	if l.head == 0 {
		s.counts[count].Remove(node)
		s.mark(count)
	}
}

// rerank puts a node where its sum belongs, at each count that one of its members has.
func (s *Spread) rerank(node int) {
	n := &s.nodes[node]
	rank := min(n.sum, mostSum)
	for count := range n.lists {
		if n.lists[count].head != 0 {
			s.counts[count].Set(node, rank)
			s.used[count/64] |= 1 << (count % 64)
		}
	}
}

func (s *Spread) mark(count int) {
	if s.counts[count].Empty() {
		s.used[count/64] &^= 1 << (count % 64)
	}
}

// Most returns a member with the highest count, or -1.
func (s *Spread) Most() int {
	for w := len(s.used) - 1; w >= 0; w-- {
		if s.used[w] != 0 {
			count := w*64 + 63 - bits.LeadingZeros64(s.used[w])
			return s.first(s.counts[count].Most(), count)
		}
	}
	return -1
}

// Least returns a member with the lowest count that is at least min, or -1.
func (s *Spread) Least(min int) int {
	for w := min / 64; w < len(s.used); w++ {
		set := s.used[w]
		if w == min/64 {
			set &= ^uint64(0) << (min % 64)
		}
		if set != 0 {
			count := w*64 + bits.TrailingZeros64(set)
			return s.first(s.counts[count].Least(0), count)
		}
	}
	return -1
}

func (s *Spread) first(node, count int) int { return int(s.nodes[node].lists[count].head - 1) }
