package jobspec

import (
	"context"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// filterNode keeps records.
type filterNode struct {
	common
	cond *expression
}

func (n *filterNode) check(p *planner) {
	in := n.checkInput(p)
	if in == nil {
		return
	}
	n.out.schema = in.schema
	n.cond = compileExpr(p.doc, p.scopeOf(in), "filter", *n.spec.Filter)
	n.cond.wantType(p.doc, *n.spec.Filter, row.BoolType)
}

func (n *filterNode) needed() {
	n.in.need.addAll(n.out.need)
	n.in.need.add(n.cond.columns...)
	n.in.need.all = n.in.need.all || n.letters != nil
}

func (n *filterNode) build(*builder) {
	have := n.in.have
	s := apply(n.in.rows, func() heddle.Func[row.Row, row.Row] { return &filterFunc{in: have, cond: n.cond.evaluator(have)} })
	n.out.rows, n.out.have = n.fallible(n.finish(s)), have
}

// filterFunc runs a filter.
type filterFunc struct {
	in   row.Schema
	cond *evaluator
}

// ShowRecord prints a record for errors.
func (f *filterFunc) ShowRecord(in row.Row) string { return f.in.Show(in) }

// Open implements heddle.Func.
func (f *filterFunc) Open(context.Context, heddle.Env) error { return nil }

// Close implements heddle.Func.
func (f *filterFunc) Close() error { return nil }

// Apply implements heddle.Func.
func (f *filterFunc) Apply(in row.Row, emit func(row.Row)) error {
	ok, err := f.cond.truth(in)
	if ok {
		emit(in)
	}
	return err
}

// setNode sets columns to expressions.
type setNode struct {
	common
	exprs map[string]*expression
}

func (n *setNode) check(p *planner) {
	in := n.checkInput(p)
	if in == nil {
		return
	}
	n.exprs = p.compileAll(p.scopeOf(in), n.spec.Set)
	n.out.schema = withColumns(in.schema, n.spec.Set, n.exprs)
}

// compileAll compiles the expressions of a map.
func (p *planner) compileAll(sc scope, m *strict.Map[strict.Text]) map[string]*expression {
	out := map[string]*expression{}
	for _, e := range m.Entries {
		if _, twice := out[e.Key.Value]; twice {
			p.doc.Failf(e.Key.Place(), "column %q is set twice", e.Key.Value)
			continue
		}
		out[e.Key.Value] = compileExpr(p.doc, sc, e.Key.Value, e.Value)
	}
	return out
}

// withColumns is s with the columns of m, in their places if they are there, else at the end.
func withColumns(s row.Schema, m *strict.Map[strict.Text], exprs map[string]*expression) row.Schema {
	out := row.Schema{Cols: append([]row.Column(nil), s.Cols...), Rest: s.Rest}
	for _, e := range m.Entries {
		c := row.Column{Name: e.Key.Value, Type: row.AnyType}
		if x := exprs[c.Name]; x != nil {
			c.Type = x.typ
		}
		if i := out.Index(c.Name); i >= 0 {
			out.Cols[i] = c
		} else {
			out.Cols = append(out.Cols, c)
		}
	}
	return out
}

func (n *setNode) needed() {
	var names []string
	for name, e := range n.exprs {
		names = append(names, name)
		if n.out.need.has(row.Column{Name: name}) { // what nobody reads isn't computed
			n.in.need.add(e.columns...)
		}
	}
	n.in.need.addAll(n.out.need, names...)
	n.in.need.all = n.in.need.all || n.letters != nil
}

func (n *setNode) build(*builder) {
	out := havingOut(n.in, n.out)
	n.out.have = out
	s, made := projectRows(n.in.rows, project(n.in.have, out, n.exprs, nil))
	if made {
		s = n.fallible(n.finish(s))
	}
	n.out.rows = s
}

// pickNode keeps or drops columns.
type pickNode struct {
	common
}

func (n *pickNode) check(p *planner) {
	in := n.checkInput(p)
	if in == nil {
		return
	}
	n.noPolicy(p)
	if n.spec.Keep != nil {
		if p.columns(in, n.spec.Keep...) {
			n.out.schema = row.Schema{}
			for _, k := range n.spec.Keep {
				c := row.Column{Name: k.Value, Type: row.AnyType}
				if i := in.schema.Index(k.Value); i >= 0 {
					c.Type = in.schema.Cols[i].Type
				}
				n.out.schema.Cols = append(n.out.schema.Cols, c)
			}
		}
		return
	}
	p.columns(in, n.spec.Drop...)
	n.out.schema = row.Schema{Rest: in.schema.Rest}
	for _, c := range in.schema.Cols {
		if !n.drops(c.Name) {
			n.out.schema.Cols = append(n.out.schema.Cols, c)
		}
	}
	if len(n.out.schema.Cols) == 0 && !n.out.schema.Rest {
		p.doc.Failf(n.spec.Place(), "no column is left")
	}
}

func (n *pickNode) drops(name string) bool {
	for _, d := range n.spec.Drop {
		if d.Value == name {
			return true
		}
	}
	return false
}

func (n *pickNode) dropped() (names []string) {
	for _, d := range n.spec.Drop {
		names = append(names, d.Value)
	}
	return names
}

func (n *pickNode) needed() {
	if n.spec.Keep == nil {
		n.in.need.addAll(n.out.need, n.dropped()...)
		return
	}
	for _, c := range n.out.schema.Cols {
		if n.out.need.has(c) {
			n.in.need.add(c.Name)
		}
	}
}

func (n *pickNode) build(*builder) {
	out := havingOut(n.in, n.out, n.dropped()...)
	n.out.have = out
	s, made := projectRows(n.in.rows, project(n.in.have, out, nil, n.dropped()))
	if made {
		s = n.finish(s)
	}
	n.out.rows = s
}

// flatMapNode makes a record for each element of a list.
type flatMapNode struct {
	common
	name string
	list *expression
}

func (n *flatMapNode) check(p *planner) {
	in := n.checkInput(p)
	if in == nil {
		return
	}
	m := n.spec.FlatMap
	if len(m.Entries) != 1 {
		p.doc.Failf(m.Place(), "flat_map takes one column, not %d", len(m.Entries))
		return
	}
	n.name = m.Entries[0].Key.Value
	n.list = compileExpr(p.doc, p.scopeOf(in), n.name, m.Entries[0].Value)
	if !n.list.wantType(p.doc, m.Entries[0].Value, row.ListType) {
		return
	}
	n.out.schema = withColumns(in.schema, m, map[string]*expression{})
	c := &n.out.schema.Cols[n.out.schema.Index(n.name)]
	if n.list.elem != "" {
		c.Type = n.list.elem
	}
}

func (n *flatMapNode) needed() {
	n.in.need.addAll(n.out.need, n.name)
	n.in.need.add(n.list.columns...)
	n.in.need.all = n.in.need.all || n.letters != nil
}

func (n *flatMapNode) build(*builder) {
	n.out.need.add(n.name)
	out := havingOut(n.in, n.out)
	pr := project(n.in.have, out, map[string]*expression{n.name: n.list}, nil)
	pr.split = out.Index(n.name)
	s := apply(n.in.rows, func() heddle.Func[row.Row, row.Row] { return newProjector(pr) })
	n.out.rows, n.out.have = n.fallible(n.finish(s)), out
}

// unionNode unites streams.
type unionNode struct {
	common
	ins []*stream
}

func (n *unionNode) check(p *planner) {
	n.noPolicy(p)
	if len(n.spec.Union) < 2 {
		p.doc.Failf(n.spec.Place(), "a union needs two streams or more")
	}
	n.out.timed = true
	var schemas []row.Schema
	for _, in := range n.ins {
		if in.key != nil {
			p.doc.Failf(n.spec.Place(), "a union can't read %s: key_by must be followed by window or dedupe", in.title)
		}
		n.out.timed = n.out.timed && in.timed
		schemas = append(schemas, in.schema)
	}
	n.out.schema = unite(schemas)
}

// unite is the schema of the union of streams: all columns, of one type where all agree.
func unite(schemas []row.Schema) (out row.Schema) {
	for _, s := range schemas {
		out.Rest = out.Rest || s.Rest
		for _, c := range s.Cols {
			i := out.Index(c.Name)
			switch {
			case i < 0:
				out.Cols = append(out.Cols, c)
			case out.Cols[i].Type != c.Type:
				out.Cols[i].Type = row.AnyType
			}
			if i >= 0 {
				out.Cols[i].Meta = out.Cols[i].Meta && c.Meta
			}
		}
	}
	return out
}

func (n *unionNode) needed() {
	for _, in := range n.ins {
		in.need.addAll(n.out.need)
	}
}

func (n *unionNode) build(*builder) {
	n.out.have = n.out.need.prune(n.out.schema)
	for _, in := range n.ins {
		if n.out.have.Rest {
			n.out.have = unite([]row.Schema{n.out.have, {Cols: havingOut(in, n.out).Cols}})
		}
	}
	var rows []heddle.Stream[row.Row]
	for _, in := range n.ins {
		s, made := projectRows(in.rows, project(in.have, n.out.have, nil, nil))
		if made {
			s = s.Name(n.id)
		}
		rows = append(rows, s)
	}
	n.out.rows = heddle.Union(rows[0], rows[1:]...)
}

// routeNode sends records to branches.
type routeNode struct {
	common
	outs  []*stream
	conds []*expression
}

func (n *routeNode) check(p *planner) {
	in := n.checkInput(p)
	if in == nil {
		return
	}
	for i, e := range n.spec.Route.Entries {
		cond := compileExpr(p.doc, p.scopeOf(in), e.Key.Value, e.Value)
		cond.wantType(p.doc, e.Value, row.BoolType)
		n.conds = append(n.conds, cond)
		n.outs[i].schema, n.outs[i].timed = in.schema, in.timed
	}
}

func (n *routeNode) needed() {
	for i, out := range n.outs {
		n.in.need.addAll(out.need)
		n.in.need.add(n.conds[i].columns...)
	}
	n.in.need.all = n.in.need.all || n.letters != nil
}

func (n *routeNode) build(*builder) {
	have := n.in.have
	tags := make([]heddle.Tag[row.Row], len(n.outs))
	for i, out := range n.outs {
		tags[i] = heddle.NewTag[row.Row](out.name)
	}
	s := apply(n.in.rows, func() heddle.Func[row.Row, row.Row] {
		f := &routeFunc{in: have, tags: tags}
		for _, c := range n.conds {
			f.conds = append(f.conds, c.evaluator(have))
		}
		return f
	})
	s = n.fallible(n.finish(s))
	for i, out := range n.outs {
		out.rows, out.have = heddle.SideOutput(s, tags[i]), have
	}
}

// routeFunc runs a route: each branch is a side output.
type routeFunc struct {
	in    row.Schema
	conds []*evaluator
	tags  []heddle.Tag[row.Row]
	env   heddle.Env
}

// ShowRecord prints a record for errors.
func (f *routeFunc) ShowRecord(in row.Row) string { return f.in.Show(in) }

// Open implements heddle.Func.
func (f *routeFunc) Open(_ context.Context, env heddle.Env) error {
	f.env = env
	return nil
}

// Close implements heddle.Func.
func (f *routeFunc) Close() error { return nil }

// Apply implements heddle.Func.
func (f *routeFunc) Apply(in row.Row, _ func(row.Row)) error {
	for i, c := range f.conds {
		ok, err := c.truth(in)
		if err != nil {
			return err
		}
		if ok {
			return f.tags[i].Emit(f.env, in)
		}
	}
	return nil
}
