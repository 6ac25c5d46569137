package flow

import "time"

// Committer is a Reader or MessageReader that tells the outside world how far its input has been dealt with, as Kafka's consumer
// groups do. A mark stands for a place in its output: whoever drives it sends the mark down the stream behind what was emitted, and
// says when it has left every sink. (With checkpoints, the mark will be the barrier, and Delivered be called when the checkpoint is complete.)
// The task's goroutine calls it.
type Committer interface {
	// CommitEvery is how often to mark; 0: never.
	CommitEvery() time.Duration
	// Mark notes where reading stands, under a number higher than any before.
	Mark(id uint64)
	// Delivered says that everything emitted before the mark id has left every sink. It does not wait for the outside world.
	Delivered(id uint64)
}

// Committing is a Source whose readers may be Committers.
type Committing interface {
	Commits() bool
}

// Finalizer is a Source that has something to tell the outside world when the job has finished, and everything has left every sink.
// The master calls it.
type Finalizer interface {
	Finalize(env EnumeratorEnv, splits []Split) error
}

// otherMarks is how often a source that commits nothing marks its stream, where another one of the job does: an operator
// that reads both passes a mark on when it has come from both.
const otherMarks = 5 * time.Second

// DeliveredMark is the counter of a sink that holds the last mark before which everything is delivered.
const DeliveredMark = "delivered mark"

// Marked reports whether some source of the graph commits, so that every source has to mark its stream.
func (g *Graph) Marked() bool {
	for _, n := range g.Nodes {
		if c, ok := n.Source.(Committing); ok && c.Commits() {
			return true
		}
	}
	return false
}

// Graph returns the graph that the node is in, nil if it is in none.
func (n *Node) Graph() *Graph { return n.graph }

// Keeps names what of the graph holds records back beyond a commit, such as open windows; nil if nothing does.
func (g *Graph) Keeps() (names []string) {
	for _, n := range g.Nodes {
		if n.Keyed {
			names = append(names, n.Title())
		}
	}
	return names
}

// marker marks the stream of one source subtask. It is a pure machine but for its committer.
type marker struct {
	committer Committer // nil: it marks for the sake of others
	every     int64     // milliseconds; 0: never
	due       int64
	last      uint64
}

func newMarker(n *Node, reader any, now int64) marker {
	g := n.Graph()
	if g == nil || !g.Marked() {
		return marker{}
	}
	m := marker{every: otherMarks.Milliseconds()}
	if c, ok := reader.(Committer); ok && c.CommitEvery() > 0 {
		m.committer, m.every = c, max(c.CommitEvery().Milliseconds(), 1)
	}
	m.due = now + m.every
	return m
}

// mark makes a mark. Marks of all subtasks are times of about the same clock, so that one that merges them passes on the least.
func (m *marker) mark(now int64) Control {
	m.due = now + m.every
	m.last = max(m.last+1, uint64(max(now, 0)))
	if m.committer != nil {
		m.committer.Mark(m.last)
	}
	return Control{Kind: Mark, ID: m.last}
}

// Delivered implements DeliveredTo.
func (o *sourceOp[T]) Delivered(id uint64) {
	if o.marker.committer != nil {
		o.marker.committer.Delivered(id)
	}
}

// LastMark implements DeliveredTo.
func (o *sourceOp[T]) LastMark() uint64 { return o.marker.last }

// DeliveredTo is a SourceDriver that marks its stream.
type DeliveredTo interface {
	LastMark() uint64
	Delivered(id uint64)
}

// unwrapped is what decorators of readers have, so that what the inner one can do beside Reader is found.
type unwrapped interface{ Unwrap() MessageReader }

// innermost returns the connector's own reader.
func innermost(r any) any {
	if u, ok := r.(unwrapped); ok {
		return u.Unwrap()
	}
	return r
}
