package jobspec

import (
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// stream is the output of a source, a step or a branch.
type stream struct {
	title  string // for people: step 3 (filter)
	name   string // by which the file may refer to it; "" if it has none
	place  strict.Place
	schema row.Schema // every column that it has
	timed  bool       // has event times
	key    *keyNode   // set by a key_by: only window and dedupe can read it
	used   bool

	need needs // what its consumers read

	// Set when the stream is built.
	rows heddle.Stream[row.Row]
	have row.Schema // the columns that rows have: those needed, perhaps more
}

// newStream makes a stream of which nothing is known: if that stays so, it was reported why, and nothing that reads it is wrong.
func newStream(title, name string, place strict.Place) *stream {
	return &stream{title: title, name: name, place: place, schema: row.Schema{Rest: true}, timed: true}
}

// needs are the columns that somebody reads.
type needs struct {
	all   bool // every column that is not about the message, the rest included
	names []string
}

func (n *needs) add(names ...string) {
	for _, name := range names {
		if !slices.Contains(n.names, name) {
			n.names = append(n.names, name)
		}
	}
}

// addAll adds what m has, save the names given.
func (n *needs) addAll(m needs, save ...string) {
	n.all = n.all || m.all
	for _, name := range m.names {
		if !slices.Contains(save, name) {
			n.add(name)
		}
	}
}

// has reports whether the column is needed.
func (n *needs) has(c row.Column) bool {
	return n.all && !c.Meta || slices.Contains(n.names, c.Name)
}

// prune leaves what is needed of a schema. Fields of a rest that are needed by name become columns, in the order of
// their names: every process must come to the same.
func (n *needs) prune(s row.Schema) row.Schema {
	out := row.Schema{Rest: s.Rest && n.all}
	for _, c := range s.Cols {
		if n.has(c) {
			out.Cols = append(out.Cols, c)
		}
	}
	if s.Rest {
		for _, name := range slices.Sorted(slices.Values(n.names)) {
			if s.Index(name) < 0 {
				out.Cols = append(out.Cols, row.Column{Name: name, Type: row.AnyType})
			}
		}
	}
	return out
}

// havingOut is what a step has of its output: what is needed, and if that is everything, also the columns which its input has made of fields that it
// does not know, save those without.
func havingOut(in, out *stream, without ...string) row.Schema {
	have := out.need.prune(out.schema)
	if !have.Rest {
		return have
	}
	for _, c := range in.have.Cols {
		if in.schema.Index(c.Name) < 0 && have.Index(c.Name) < 0 && !slices.Contains(without, c.Name) {
			have.Cols = append(have.Cols, c)
		}
	}
	return have
}

// node is an operator of the plan: a source, a step or a sink.
type node interface {
	// check reports what is wrong, and gives the node's streams their schemas.
	check(p *planner)
	// needed tells the streams that the node reads what is needed of them. The node's own streams know already.
	needed()
	// build adds operators to the job.
	build(b *builder)
	// line is where the node is in the file.
	line() int
	// slotGroup is the slot sharing group that the file puts it into; "": it says nothing.
	slotGroup() string
	// does says what the operator of that name does: its kind in one word, and what else distinguishes it.
	does(operator string) (kind, detail string)
}

// planner turns a file into nodes.
type planner struct {
	groups  []flow.SlotGroup // what slot sharing groups ask for
	name    string           // of the file, for errors
	doc     *strict.Document
	file    *jobFile
	zone    *time.Location // nil if none is set
	streams map[string]*stream
	names   []string // of streams, in order
	all     []*stream
	nodes   []node
	sinks   map[string]*sinkNode
	files   func(name string) ([]byte, error)
	warn    func(text string) // nil: nobody is told
}

// scopeOf is what an expression on the stream may refer to.
func (p *planner) scopeOf(s *stream) scope { return scope{schema: s.schema, zone: p.zone} }

// add gives a stream its name.
func (p *planner) add(s *stream) *stream {
	p.all = append(p.all, s)
	if s.name == "" {
		return s
	}
	if before := p.streams[s.name]; before != nil {
		p.doc.Failf(s.place, "the name %q is taken by %s in line %d", s.name, before.title, before.place.Line)
		return s
	}
	p.streams[s.name], p.names = s, append(p.names, s.name)
	return s
}

// find returns the stream that a reference means, nil after reporting that there is none.
func (p *planner) find(ref strict.String) *stream {
	s := p.streams[ref.Value]
	if s == nil {
		p.doc.Failf(ref.Place(), "no source, branch or step above is called %q%s", ref.Value, strict.Suggest(ref.Value, p.names))
		return nil
	}
	s.used = true
	return s
}

// sink returns the sink that a reference means, nil after reporting that there is none.
func (p *planner) sink(ref strict.String) *sinkNode {
	s := p.sinks[ref.Value]
	if s == nil {
		var names []string
		for n := range p.sinks {
			names = append(names, n)
		}
		p.doc.Failf(ref.Place(), "no sink is called %q%s", ref.Value, strict.Suggest(ref.Value, names))
	}
	return s
}

// location loads a time zone.
func location(doc *strict.Document, name strict.String) *time.Location {
	loc, err := flow.LoadZone(name.Value)
	if err != nil {
		doc.Failf(name.Place(), "%s", UnknownZone(name.Value))
		return nil
	}
	return loc
}

// resolve makes the nodes of the file and connects them by name.
func (p *planner) resolve() {
	f := p.file
	sinks := []strict.Entry[sink]{}
	if f.Sink != nil {
		sinks = append(sinks, strict.Entry[sink]{Key: strict.String{At: f.Sink.At, Value: "sink"}, Value: *f.Sink})
	} else if f.Sinks != nil {
		sinks = f.Sinks.Entries
	}
	var order []*sinkNode
	for _, e := range sinks {
		n := &sinkNode{name: e.Key.Value, place: e.Key.Place(), spec: e.Value}
		if p.sinks[n.name] != nil {
			p.doc.Failf(n.place, "there are two sinks called %q", n.name)
			continue
		}
		p.sinks[n.name], order = n, append(order, n)
	}
	last := p.resolveSources()
	for i := range f.Steps {
		last = p.resolveStep(i, &f.Steps[i], last)
	}
	for _, n := range order {
		p.resolveSink(n, last)
	}
	failed := p.doc.Failed()
	for _, s := range p.all {
		if !s.used && !failed {
			p.doc.Failf(s.place, "nothing reads %s%s", s.title, unreadHint(s))
		}
	}
}

func unreadHint(s *stream) string {
	if s.name == "" {
		return ": give it a name, and read it with from"
	}
	return fmt.Sprintf(": read it with from: %s, or with a discard sink", s.name)
}

// resolveSources makes the sources, and returns the stream that the first step reads by default.
func (p *planner) resolveSources() *stream {
	f := p.file
	if f.Source != nil {
		return p.source("source", f.Source.Place(), f.Source)
	}
	if f.Sources == nil {
		return nil
	}
	var only *stream
	for i := range f.Sources.Entries {
		e := &f.Sources.Entries[i]
		only = p.source(e.Key.Value, e.Key.Place(), &e.Value)
	}
	if len(f.Sources.Entries) > 1 {
		return nil
	}
	return only
}

func (p *planner) source(name string, place strict.Place, spec *source) *stream {
	s := p.add(newStream("source "+name, name, place))
	n := &sourceNode{spec: spec, out: s}
	n.letters = p.deadLetters(spec.OnError)
	p.nodes = append(p.nodes, n)
	return s
}

// deadLetters returns the sink for records that fail, nil if the policy is another one.
func (p *planner) deadLetters(e *onError) *sinkNode {
	if e == nil || e.Detail == nil || !e.Detail.Sink.IsSet() {
		return nil
	}
	s := p.sink(e.Detail.Sink)
	if s != nil {
		s.fed = true
	}
	return s
}

// resolveSink connects a sink with what it reads; the only sink reads the last step by default.
func (p *planner) resolveSink(n *sinkNode, last *stream) {
	switch {
	case n.spec.From.IsSet():
		n.in = p.find(n.spec.From)
	case last != nil && p.file.Sink != nil:
		last.used = true
		n.in = last
	case n.fed:
	case last != nil && p.onlyWithoutFrom(n):
		last.used = true
		n.in = last
	case !p.doc.Failed():
		p.doc.Failf(n.place, "say with from what sink %s reads%s", n.name, namesHint(p.names))
	}
	p.nodes = append(p.nodes, n)
}

// onlyWithoutFrom reports whether n is the only sink that nothing else leads to.
func (p *planner) onlyWithoutFrom(n *sinkNode) bool {
	for _, o := range p.sinks {
		if o != n && !o.spec.From.IsSet() && !o.fed {
			return false
		}
	}
	return true
}

func namesHint(names []string) string {
	if len(names) == 0 || len(names) > 12 {
		return ""
	}
	s := "; there are: "
	for i, n := range names {
		if i > 0 {
			s += ", "
		}
		s += n
	}
	return s
}
