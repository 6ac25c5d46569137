package flow

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// simGroup is a group of subtasks with a master that hears of them by heartbeats, over links that are slow and may break for a while.
type simGroup struct {
	rng     *rand.Rand
	now     int64
	readers []*simReader
	marks   []ReaderMark
	least   int64
	news    []simNews // on their way
}

// deaf takes what comes.
type deaf struct{}

func (deaf) Push(Batch[event]) error { return nil }
func (deaf) Control(Control) error   { return nil }

// simNews arrives at a time: at the master from a reader, or at all readers from the master.
type simNews struct {
	at   int64
	from int // -1: the master
	mark int64
}

const (
	simDrift = 10_000
	simBeat  = 1000 // between heartbeats
	simStep  = 500  // most event time of a batch
)

func newSimGroup(t *testing.T, seed uint64) *simGroup {
	g := &simGroup{rng: rand.New(rand.NewPCG(seed, 2)), least: MinTime}
	w := Watermarks[event]{New: BoundedDelay[event](0)}.WithAlignment("g", simDrift*time.Millisecond)
	n := 1 + g.rng.IntN(6)
	for i := range n {
		r := &simReader{groupedRuntime: &groupedRuntime{testRuntime: newTestRuntime()}}
		for k := range g.rng.IntN(4) { // perhaps none
			r.splits = append(r.splits, &simSplit{id: fmt.Sprint(i, "-", k), at: g.rng.Int64N(3 * simDrift), end: 40_000 + g.rng.Int64N(60_000),
				step: 50 + g.rng.Int64N(simStep-50), pause: g.rng.Int64N(40)})
		}
		r.op = start(t, NewSource[event](r, &w, nil, nil), r, Out[event](deaf{}))
		g.readers = append(g.readers, r)
	}
	g.marks = make([]ReaderMark, n)
	return g
}

// slowest is the true time of the slowest split.
func (g *simGroup) slowest() int64 {
	least := MaxTime
	for _, r := range g.readers {
		for _, s := range r.splits {
			if !s.out {
				least = min(least, s.at)
			}
		}
	}
	return least
}

// tick is a millisecond of the group.
func (g *simGroup) tick(t *testing.T) {
	g.now++
	for i, r := range g.readers {
		g.run(t, i, r)
	}
	var left []simNews
	for _, n := range g.news {
		if n.at > g.now {
			left = append(left, n)
			continue
		}
		g.arrive(t, n)
	}
	g.news = left
	if least, ok := LeastMark(g.marks); ok && least != g.least {
		g.least = least
		g.send(-1, least)
	}
}

func (g *simGroup) send(from int, mark int64) {
	g.news = append(g.news, simNews{at: g.now + 1 + g.rng.Int64N(50), from: from, mark: mark})
}

func (g *simGroup) arrive(t *testing.T, n simNews) {
	if n.from >= 0 {
		if g.readers[n.from].cut < g.now {
			g.marks[n.from] = ReaderMark{Known: true, Mark: n.mark, Ended: n.mark == MaxTime && g.readers[n.from].ended}
		}
		return
	}
	for _, r := range g.readers {
		if r.cut < g.now {
			g.hear(t, r, g.least) // the last word counts, as over a link that keeps the order
		}
	}
}

func (g *simGroup) hear(t *testing.T, r *simReader, least int64) {
	if err := r.op.Source.(Aligned).Align(least); err != nil {
		t.Fatal(err)
	}
}

func (g *simGroup) run(t *testing.T, i int, r *simReader) {
	if err := r.advanceTo(g.now, r.op.Op); err != nil {
		t.Fatal(err)
	}
	if g.now == 1 {
		var splits []Split
		for _, s := range r.splits {
			splits = append(splits, Split{ID: s.id})
		}
		if err := r.op.Source.AddSplits(splits); err != nil {
			t.Fatal(err)
		}
	}
	if !r.ended {
		st, err := r.op.Source.Poll()
		if err != nil {
			t.Fatal(err)
		}
		r.ended = st == SourceEnd
	}
	mark, _ := r.op.Source.(Aligned).AlignMark()
	switch {
	case r.cut == g.now: // the session is back: both sides say what is
		g.send(i, mark)
		g.hear(t, r, g.least)
	case r.cut > g.now:
	case r.held > r.asked, g.now%simBeat == int64(i):
		g.send(i, mark)
	case g.rng.IntN(20_000) == 0:
		r.cut = g.now + g.rng.Int64N(5000)
	}
	r.asked = r.held
}

// TestGroupSimulated: groups of any shape read to their ends, and no split is ever much further than the drift ahead of the slowest.
func TestGroupSimulated(t *testing.T) {
	for seed := range uint64(10) {
		g := newSimGroup(t, seed)
		const most = 400_000
		for left := true; left; {
			if g.now > most {
				t.Fatalf("seed %d: not at its end after %d s", seed, most/1000)
			}
			g.tick(t)
			left = false
			slowest := g.slowest()
			for _, r := range g.readers {
				left = left || !r.ended
				for _, s := range r.splits {
					// What it reads between two looks, and what was ahead from the start.
					if limit := max(slowest, 0) + simDrift + (alignInterval+2)*simStep; g.now > 10_000 && !s.out && s.at > max(limit, 3*simDrift+limit-slowest) {
						t.Fatalf("seed %d: after %d ms split %s is at %d, the slowest at %d", seed, g.now, s.id, s.at, slowest)
					}
				}
			}
		}
	}
}
