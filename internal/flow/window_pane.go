package flow

import "sort"

// pane holds the accumulators of one slice of time.
type pane[K comparable, A any] struct {
	start, end int64
	first      int64 // end of the first window that holds it
	last       int64 // end of the last one
	late       bool  // a window that holds it has fired, and may be corrected

	index map[K]uint32 // where a key stands in keys and accs
	keys  []K          // in order of first record
	accs  []A
}

// panes are the panes of an operator in order of time, with one set of spare memory.
type panes[K comparable, A any] struct {
	list  []*pane[K, A]
	spare *pane[K, A]
}

// find returns the place of the pane that begins at start, or where to insert it.
func (p *panes[K, A]) find(start int64) (int, bool) {
	i := sort.Search(len(p.list), func(i int) bool { return p.list[i].start >= start })
	return i, i < len(p.list) && p.list[i].start == start
}

// insert puts a new pane at place i.
func (p *panes[K, A]) insert(i int, start, end int64) *pane[K, A] {
	n := p.spare
	if n == nil {
		n = &pane[K, A]{index: make(map[K]uint32)}
	}
	p.spare = nil
	n.start, n.end, n.late = start, end, false
	p.list = append(p.list, nil)
	copy(p.list[i+1:], p.list[i:])
	p.list[i] = n
	return n
}

// dropFirst removes the first n panes.
func (p *panes[K, A]) dropFirst(n int) {
	for _, d := range p.list[:n] {
		p.recycle(d)
	}
	rest := copy(p.list, p.list[n:])
	clear(p.list[rest:])
	p.list = p.list[:rest]
}

// spareFactor bounds how much more than it last needed a pane keeps: memory of a rush is given back.
const spareFactor = 8

// recycle keeps the memory of d for the next pane, unless that is far more than d used.
func (p *panes[K, A]) recycle(d *pane[K, A]) {
	if p.spare != nil || cap(d.keys) > spareFactor*len(d.keys)+64 {
		return
	}
	d.reset()
	p.spare = d
}

func (d *pane[K, A]) reset() {
	clear(d.index)
	clear(d.keys)
	clear(d.accs)
	d.keys, d.accs = d.keys[:0], d.accs[:0]
}

// add gives k the next place.
func (d *pane[K, A]) add(k K, acc A, keep keeper[K]) uint32 {
	checkKey(k)
	j := uint32(len(d.keys))
	d.keys, d.accs = append(d.keys, k), append(d.accs, acc)
	keep.keep(&d.keys[j])
	d.index[d.keys[j]] = j
	return j
}
