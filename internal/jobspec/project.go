package jobspec

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
)

// projection makes rows of rows: each output column is an input column, an expression, or nothing. It is immutable.
// Almost every step is one.
type projection struct {
	in, out row.Schema
	cols    []projected
	split   int      // output column that gets one record for each element of its list; -1 none
	without []string // fields that are no longer in the rest
}

// projected is where an output column comes from.
type projected struct {
	from  int         // input column; -1 none
	field string      // if from is -1: field of the input's rest, "" none
	expr  *expression // if not nil, the value
	key   bool        // in the form that equal keys have
	check func(row.Value) error
}

// project makes the projection of the columns of in to those of out by name. set are the columns that get a value by
// expression, drop are names that must not be in the rest.
func project(in, out row.Schema, set map[string]*expression, drop []string) *projection {
	p := &projection{in: in, out: out, split: -1, without: slices.Clone(drop)}
	for _, c := range out.Cols {
		e := set[c.Name]
		if e != nil && e.column != "" {
			e, c.Name = nil, e.column // a column under another name is copied
		}
		pc := projected{from: -1, expr: e}
		if e == nil {
			if pc.from = in.Index(c.Name); pc.from < 0 && in.Rest {
				pc.field = c.Name
			}
		}
		p.cols = append(p.cols, pc)
	}
	for _, c := range out.Cols {
		if !slices.Contains(p.without, c.Name) {
			p.without = append(p.without, c.Name)
		}
	}
	return p
}

// identity reports whether rows come out as they went in.
func (p *projection) identity() bool {
	if len(p.in.Cols) != len(p.out.Cols) || p.in.Rest != p.out.Rest || p.split >= 0 {
		return false
	}
	for i, c := range p.cols {
		if c.from != i || c.expr != nil || c.key {
			return false
		}
	}
	return !p.in.Rest || len(p.without) == len(p.in.Cols)
}

// projector runs a projection. It belongs to one goroutine.
type projector struct {
	p     *projection
	evals []*evaluator // nil where there is no expression
	spans row.Spans
	arena row.Arena
	buf   []byte
	rows  []row.Row
}

func newProjector(p *projection) *projector {
	r := &projector{p: p, evals: make([]*evaluator, len(p.cols))}
	for i, c := range p.cols {
		if c.expr != nil {
			r.evals[i] = c.expr.evaluator(p.in)
		}
	}
	return r
}

// Open implements heddle.Func.
func (r *projector) Open(context.Context, heddle.Env) error { return nil }

// Close implements heddle.Func.
func (r *projector) Close() error { return nil }

// ShowRecord prints a record for errors.
func (r *projector) ShowRecord(in row.Row) string { return r.p.in.Show(in) }

// Apply implements heddle.Func.
func (r *projector) Apply(in row.Row, emit func(row.Row)) error {
	enc := r.spans.Split(in, r.p.in.Width())
	if r.p.split >= 0 {
		return r.applySplit(in, enc, emit)
	}
	r.buf = r.buf[:0]
	for i := range r.p.cols {
		var err error
		if r.buf, err = r.column(r.buf, i, in, enc); err != nil {
			return err
		}
	}
	emit(row.Row(r.rest(r.buf, enc)))
	return nil
}

// column appends output column i.
func (r *projector) column(b []byte, i int, in row.Row, enc []string) ([]byte, error) {
	c := &r.p.cols[i]
	start := len(b)
	switch {
	case c.expr != nil:
		x, err := r.evals[i].run(in)
		if err != nil {
			return nil, err
		}
		if b, err = row.AppendAny(b, x); err != nil {
			return nil, c.expr.failed(err)
		}
	case c.from >= 0:
		b = append(b, enc[c.from]...)
	case c.field != "":
		rest, _, _ := row.Next(enc[len(enc)-1])
		b = rest.Field(c.field).Append(b)
	default:
		b = row.Value{}.Append(b)
	}
	if !c.key && c.check == nil {
		return b, nil
	}
	v := row.Peek(b[start:])
	if c.check != nil {
		if err := c.check(v); err != nil {
			return nil, err
		}
	}
	if c.key {
		b = v.AppendKey(b[:start]) // never ahead of what v still points to
	}
	return b, nil
}

// rest appends the rest, if the output has one.
func (r *projector) rest(b []byte, enc []string) []byte {
	if !r.p.out.Rest {
		return b
	}
	if !r.p.in.Rest {
		return row.AppendObject(b)
	}
	rest, _, _ := row.Next(enc[len(enc)-1])
	return rest.AppendWithout(b, r.p.without)
}

// applySplit makes a row for each element of the list.
func (r *projector) applySplit(in row.Row, enc []string, emit func(row.Row)) error {
	at := r.p.split
	r.buf = r.buf[:0]
	var err error
	for i := range at {
		if r.buf, err = r.column(r.buf, i, in, enc); err != nil {
			return err
		}
	}
	before := len(r.buf)
	for i := at + 1; i < len(r.p.cols); i++ {
		if r.buf, err = r.column(r.buf, i, in, enc); err != nil {
			return err
		}
	}
	r.buf = r.rest(r.buf, enc)
	if err := r.elements(at, in, enc, r.buf[:before], r.buf[before:]); err != nil {
		return err
	}
	r.rows = r.arena.Rows(r.rows[:0])
	for _, out := range r.rows {
		emit(out)
	}
	return nil
}

// elements puts a row for each element of the list in column i into the arena, between what comes before and after it.
func (r *projector) elements(i int, in row.Row, enc []string, before, after []byte) error {
	c := &r.p.cols[i]
	add := func(element []byte) {
		r.arena.Buf = append(append(append(r.arena.Buf, before...), element...), after...)
		r.arena.End()
	}
	if c.expr == nil {
		list, err := r.column(nil, i, in, enc)
		if err != nil {
			return err
		}
		return eachOf(row.Peek(list), c, add)
	}
	x, err := r.evals[i].run(in)
	if err != nil {
		return err
	}
	if list, ok := x.([]string); ok { // what words and split give, without a detour
		for _, s := range list {
			r.arena.Buf = row.StringValue(s).Append(append(r.arena.Buf, before...))
			r.arena.Buf = append(r.arena.Buf, after...)
			r.arena.End()
		}
		return nil
	}
	b, err := row.AppendAny(nil, x)
	if err != nil {
		return c.expr.failed(err)
	}
	return eachOf(row.Peek(b), c, add)
}

// eachOf calls add for each element of the list v; of a null there is none.
func eachOf(v row.Value, c *projected, add func([]byte)) error {
	if v.IsNull() {
		return nil
	}
	if v.Kind != row.List {
		what := "column"
		if c.expr != nil {
			what = c.expr.text
		}
		return fmt.Errorf("flat_map needs a list, but %s is %s", what, v)
	}
	for e := range v.Elements() {
		add(e.Append(nil))
	}
	return nil
}
