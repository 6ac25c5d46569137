package jobspec

import (
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
)

// dedupeNode passes on the first of equal records.
type dedupeNode struct {
	common
	exprs []*expression // what makes records equal
}

func (n *dedupeNode) check(p *planner) {
	if n.in == nil {
		return
	}
	d := n.spec.Dedupe
	n.out.schema, n.out.timed = n.in.schema, n.in.timed
	if d.Within.IsSet() && d.Within.Value < time.Millisecond {
		p.doc.Failf(d.Within.Place(), "within must be at least 1ms")
	}
	key := n.in.key
	switch {
	case key != nil && d.By != nil:
		p.doc.Failf(d.Place(), "by and a key_by before it say the same: leave one out")
	case key != nil:
		for _, c := range key.cols {
			n.exprs = append(n.exprs, key.exprs[c.Name])
		}
	case d.By == nil:
		p.doc.Failf(d.Place(), "dedupe needs by, or a key_by before it")
	case p.columns(n.in, d.By...):
		for _, c := range d.By {
			n.exprs = append(n.exprs, columnExpr(n.in.schema, c.Value))
		}
	}
}

func (n *dedupeNode) needed() {
	n.in.need.addAll(n.out.need)
	for _, e := range n.exprs {
		n.in.need.add(e.columns...)
	}
	n.in.need.all = n.in.need.all || n.letters != nil
}

// build adds an operator that puts the key in front of each row, one that drops what was seen, and one that takes the key off again.
func (n *dedupeNode) build(*builder) {
	in := n.in.have
	pre := &projection{in: in, split: -1}
	for _, e := range n.exprs {
		pc := e.projected(in)
		pc.key = true
		pre.cols = append(pre.cols, pc)
		pre.out.Cols = append(pre.out.Cols, row.Column{Name: e.field, Type: e.typ})
	}
	keys := len(pre.cols)
	for i, c := range in.Cols {
		pre.cols, pre.out.Cols = append(pre.cols, projected{from: i}), append(pre.out.Cols, c)
	}
	pre.out.Rest = in.Rest
	s := apply(n.in.rows, func() heddle.Func[row.Row, row.Row] { return newProjector(pre) }).Name(n.id + " input")
	s = n.fallible(s)
	keyed := heddle.KeyBy(s, func(r row.Row) string { return string(r.Prefix(keys)) })
	s = n.finish(heddle.Process(keyed, deduper(n.spec.Dedupe.Within.Value)))
	out := heddle.Map(s, func(r row.Row) row.Row { return r[len(r.Prefix(keys)):] }).Name(n.id + " output")
	if n.common.spec.Parallelism.IsSet() {
		out = out.Parallelism(n.common.spec.Parallelism.Value)
	}
	n.out.rows, n.out.have = out, in
}

// projected is the column that an expression makes of rows of in.
func (e *expression) projected(in row.Schema) projected {
	pc := projected{from: -1, expr: e}
	if e.column != "" {
		pc.expr = nil
		if pc.from = in.Index(e.column); pc.from < 0 {
			pc.field = e.column
		}
	}
	return pc
}

// deduper remembers when a key was first seen, for a time.
func deduper(within time.Duration) func(*heddle.States) heddle.Processor[string, row.Row, row.Row] {
	return func(s *heddle.States) heddle.Processor[string, row.Row, row.Row] {
		seen := heddle.NewValue[heddle.Instant](s, "seen")
		return heddle.Processor[string, row.Row, row.Row]{
			Process: func(c *heddle.ProcessContext[string, row.Row], r row.Row) error {
				now, timed := c.Time()
				if !timed {
					now = heddle.Instant(c.Now())
				}
				if at, ok := seen.Lookup(); ok && now < at.Add(within) {
					return nil
				}
				seen.Set(now)
				if timed {
					c.SetEventTimer(now.Add(within))
				} else {
					c.SetProcessingTimer(now.Add(within))
				}
				c.Emit(r)
				return nil
			},
			OnTimer: func(_ *heddle.ProcessContext[string, row.Row], t heddle.Timer) error {
				if at, ok := seen.Lookup(); ok && at.Add(within) <= t.At {
					seen.Clear()
				}
				return nil
			},
		}
	}
}
