package jobspec

import (
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// keyNode says by which key the next step brings records together. It adds no operator.
type keyNode struct {
	common
	cols  []row.Column
	exprs map[string]*expression // of the columns that are not of the input
}

func (n *keyNode) check(p *planner) {
	in := n.checkInput(p)
	if in == nil {
		return
	}
	n.noPolicy(p)
	n.out.schema, n.out.key = in.schema, n
	n.exprs = map[string]*expression{}
	switch k := n.spec.KeyBy; {
	case k.Exprs != nil:
		n.exprs = p.compileAll(p.scopeOf(in), k.Exprs)
		for _, e := range k.Exprs.Entries {
			n.addColumn(e.Key.Value, n.exprs[e.Key.Value])
		}
	case len(k.Columns) > 0:
		if p.columns(in, k.Columns...) {
			for _, c := range k.Columns {
				n.addColumn(c.Value, columnExpr(in.schema, c.Value))
			}
		}
	default:
		e := compileExpr(p.doc, p.scopeOf(in), "key", k.Column)
		switch {
		case e == nil:
		case e.column != "":
			n.addColumn(e.column, e)
		default:
			n.addColumn("key", e)
		}
	}
}

// columnExpr is the expression that is a column.
func columnExpr(s row.Schema, name string) *expression {
	e := &expression{field: name, text: name, columns: []string{name}, column: name, typ: row.AnyType}
	if i := s.Index(name); i >= 0 {
		e.typ = s.Cols[i].Type
	}
	return e
}

func (n *keyNode) addColumn(name string, e *expression) {
	if e == nil {
		return
	}
	n.cols = append(n.cols, row.Column{Name: name, Type: e.typ})
	n.exprs[name] = e
}

func (n *keyNode) needed() {
	n.in.need.addAll(n.out.need)
	for _, e := range n.exprs {
		n.in.need.add(e.columns...)
	}
}

func (n *keyNode) build(*builder) { n.out.rows, n.out.have = n.in.rows, n.in.have }

// windowNode aggregates windows.
type windowNode struct {
	common
	spec flow.WindowSpec
	keys *keyNode // nil: one group of all records
	aggs []*aggregate
	late *sinkNode
}

// Columns of a window's results.
const (
	windowStart = "window_start"
	windowEnd   = "window_end"
)

func (n *windowNode) check(p *planner) {
	if n.in == nil {
		return
	}
	w := n.common.spec.Window
	n.keys, n.out.schema = n.in.key, row.Schema{}
	n.windows(p, w)
	if n.spec.Kind != flow.GlobalWindow && !n.spec.Processing && !n.in.timed {
		p.doc.Failf(w.Place(), "the window needs event time, which %s lacks: give every source an event_time (for Kafka's own: event_time: _timestamp), or set time: processing", n.in.title)
	}
	n.out.timed = n.spec.Kind != flow.GlobalWindow && !n.spec.Processing
	if n.keys == nil && n.common.spec.Parallelism.Value > 1 {
		p.doc.Failf(n.common.spec.Parallelism.Place(), "a window without key_by has one group, so parallelism can't be more than 1")
	}
	if n.keys != nil {
		n.out.schema.Cols = append(n.out.schema.Cols, n.keys.cols...)
	}
	if n.spec.Kind != flow.GlobalWindow {
		n.out.schema.Cols = append(n.out.schema.Cols, row.Column{Name: windowStart, Type: row.TimeType}, row.Column{Name: windowEnd, Type: row.TimeType})
	}
	for _, e := range w.Aggregate.Entries {
		if n.out.schema.Index(e.Key.Value) >= 0 {
			p.doc.Failf(e.Key.Place(), "there is a column %q already: %s", e.Key.Value, n.out.schema)
			continue
		}
		a := parseAggregate(p.doc, p.scopeOf(n.in), e.Key.Value, e.Value)
		typ := row.AnyType
		if a != nil {
			n.aggs, typ = append(n.aggs, a), a.typ
		}
		n.out.schema.Cols = append(n.out.schema.Cols, row.Column{Name: e.Key.Value, Type: typ})
	}
}

// windows makes the window specification and reports what is wrong with it.
func (n *windowNode) windows(p *planner, w *window) {
	zone := p.file.Timezone
	if w.Timezone.IsSet() {
		if zone = w.Timezone; location(p.doc, zone) == nil {
			n.spec.Kind = flow.CalendarWindow
			return
		}
	}
	s := &n.spec
	s.Offset, s.Lateness, s.Processing = w.Offset.Value, w.Lateness.Value, w.Time.Value == "processing"
	switch {
	case w.Tumbling.IsSet():
		s.Kind, s.Size = flow.TumblingWindow, w.Tumbling.Value
		if name := p.zoneName(zone); w.Tumbling.Days > 0 && name != "" {
			s.Kind, s.Unit, s.Zone = flow.CalendarWindow, flow.Day, name
			if w.Tumbling.Days > 1 {
				p.doc.Failf(w.Tumbling.Place(), "there are no calendar windows of %d days: use calendar: week or month, or %dh for windows without a time zone", w.Tumbling.Days, 24*w.Tumbling.Days)
				return
			}
		}
	case w.Calendar.IsSet():
		s.Kind, s.Unit, s.Zone = flow.CalendarWindow, calendarUnits[w.Calendar.Value], p.zoneName(zone)
		if s.Zone == "" {
			p.doc.Failf(w.Calendar.Place(), "a calendar needs a time zone: set timezone")
			return
		}
	case w.Sliding.IsSet():
		s.Kind, s.Size, s.Slide = flow.SlidingWindow, w.Sliding.Value, w.Slide.Value
		if !w.Slide.IsSet() {
			p.doc.Failf(w.Sliding.Place(), "a sliding window needs slide: how often a window begins")
			return
		}
	case w.Session.IsSet():
		s.Kind, s.Gap = flow.SessionWindow, w.Session.Value
	case w.Global != nil && w.Global.IsSet() && !w.Global.Value:
		p.doc.Failf(w.Global.Place(), "global can only be true")
	}
	n.unused(p, w)
	if w.Slide.IsSet() && w.Sliding.IsSet() && s.Slide > s.Size {
		p.doc.Failf(w.Slide.Place(), "slide is longer than the windows: the records between them would be in none")
	}
	if err := s.Check(); err != nil {
		p.doc.Failf(spanPlace(w), "%v", err)
	}
}

// spanPlace is where what a check of the windows complains of stands: the value that has to be in whole milliseconds, or the window.
func spanPlace(w *window) strict.Place {
	for _, d := range []strict.Duration{w.Tumbling, w.Sliding, w.Slide, w.Session, w.Offset, w.Lateness} {
		if d.IsSet() && d.Value%time.Millisecond != 0 {
			return d.Place()
		}
	}
	for _, d := range []strict.Duration{w.Lateness, w.Offset} {
		if d.IsSet() {
			return d.Place()
		}
	}
	return w.Place()
}

var calendarUnits = map[string]flow.CalendarUnit{"day": flow.Day, "week": flow.Week, "month": flow.Month, "quarter": flow.Quarter, "year": flow.Year}

// unused reports fields that mean nothing for the kind of window.
func (n *windowNode) unused(p *planner, w *window) {
	if w.Slide.IsSet() && n.spec.Kind != flow.SlidingWindow {
		p.doc.Failf(w.Slide.Place(), "slide goes with sliding only")
	}
	if w.Timezone.IsSet() && n.spec.Kind != flow.CalendarWindow {
		p.doc.Failf(w.Timezone.Place(), "timezone goes with calendar, or tumbling: 1d")
	}
	if n.spec.Kind != flow.GlobalWindow {
		return
	}
	for _, f := range []struct {
		name string
		set  bool
		at   strict.Place
	}{{"late", w.Late.IsSet(), w.Late.Place()}, {"lateness", w.Lateness.IsSet(), w.Lateness.Place()}, {"time", w.Time.IsSet(), w.Time.Place()}} {
		if f.set {
			p.doc.Failf(f.at, "%s means nothing for a global window: nothing is late there", f.name)
		}
	}
}

// zoneName is the name of the time zone that counts: the one given, else that of the options; "" if there is none.
func (p *planner) zoneName(given strict.String) string {
	if given.IsSet() {
		return given.Value
	}
	if p.zone != nil {
		return p.zone.String()
	}
	return ""
}

func (n *windowNode) needed() {
	for _, a := range n.aggs {
		if a.arg != nil {
			n.in.need.add(a.arg.columns...)
		}
	}
	n.in.need.all = n.in.need.all || n.late != nil || n.letters != nil
}

// build adds three operators: one that makes the key and the aggregates' arguments of a row, the window, and one that makes rows of its results.
func (n *windowNode) build(*builder) {
	in := n.in.have
	pre, keys, kinds := n.arguments(in)
	rows := apply(n.in.rows, func() heddle.Func[row.Row, row.Row] { return newProjector(pre) }).Name(n.id + " input")
	rows = n.fallible(rows)
	keyed := heddle.KeyBy(rows, func(r row.Row) string { return string(r.Prefix(keys)) })
	agg := &aggregator{skip: keys, kinds: kinds}
	var results heddle.Stream[heddle.Windowed[string, row.Row]]
	if n.late != nil {
		var late heddle.Stream[row.Row]
		results, late = heddle.AggregateLate(n.cut(keyed), agg)
		n.late.feed(n.original(late, pre, in))
	} else {
		results = heddle.Aggregate(n.cut(keyed), agg)
	}
	results = results.Name(n.id)
	out := heddle.Map(results, resultRow(n.spec.Kind != flow.GlobalWindow)).Name(n.id + " output")
	if uid := n.common.spec.UID; uid.IsSet() {
		results.UID(uid.Value)
	}
	if par := n.common.spec.Parallelism; par.IsSet() || n.keys == nil {
		results.Parallelism(max(1, par.Value))
		out.Parallelism(max(1, par.Value))
	}
	n.out.rows, n.out.have = out, n.out.schema
}

// arguments is the projection to the key's columns, then the arguments of the aggregates, and then, if
// late records go to a sink, all columns as they were. keys is the number of the first.
func (n *windowNode) arguments(in row.Schema) (pre *projection, keys int, kinds []aggKind) {
	pre = &projection{in: in, split: -1}
	add := func(name string, e *expression) *projected {
		pre.cols = append(pre.cols, e.projected(in))
		pre.out.Cols = append(pre.out.Cols, row.Column{Name: name, Type: e.typ})
		return &pre.cols[len(pre.cols)-1]
	}
	if n.keys != nil {
		for _, c := range n.keys.cols {
			add(c.Name, n.keys.exprs[c.Name]).key = true
		}
		keys = len(n.keys.cols)
	}
	for _, a := range n.aggs {
		kinds = append(kinds, a.kind)
		if a.arg == nil {
			continue
		}
		if c := add(a.name, a.arg); a.kind == sumOf || a.kind == avgOf {
			c.check = a.numeric
		}
	}
	if n.late != nil {
		for i, c := range in.Cols {
			pre.cols, pre.out.Cols = append(pre.cols, projected{from: i}), append(pre.out.Cols, c)
		}
		pre.out.Rest = in.Rest
	}
	return pre, keys, kinds
}

// original takes the columns back out of a row that arguments made.
func (n *windowNode) original(late heddle.Stream[row.Row], pre *projection, in row.Schema) (heddle.Stream[row.Row], row.Schema) {
	back := &projection{in: pre.out, out: in, split: -1}
	for i := range in.Cols {
		back.cols = append(back.cols, projected{from: len(pre.cols) - len(in.Cols) + i})
	}
	s, _ := projectRows(late, back)
	return s.Name(n.id + " late"), in
}

// cut cuts a keyed stream into the windows of the specification.
func (n *windowNode) cut(k heddle.Keyed[string, row.Row]) (w heddle.Windows[string, row.Row]) {
	s := &n.spec
	switch s.Kind {
	case flow.TumblingWindow:
		w = heddle.Tumbling(k, s.Size).Offset(s.Offset)
	case flow.SlidingWindow:
		w = heddle.Sliding(k, s.Size, s.Slide).Offset(s.Offset)
	case flow.CalendarWindow:
		w = heddle.Calendar(k, s.Unit, s.Zone)
	case flow.SessionWindow:
		w = heddle.Session(k, s.Gap)
	default:
		return heddle.Global(k)
	}
	if s.Lateness > 0 {
		w = w.AllowedLateness(s.Lateness)
	}
	if s.Processing {
		w = w.ProcessingTime()
	}
	return w
}

// resultRow makes the row of a window's result: the key, the window's bounds, the aggregates.
func resultRow(bounds bool) func(heddle.Windowed[string, row.Row]) row.Row {
	return func(w heddle.Windowed[string, row.Row]) row.Row {
		if !bounds {
			return row.Row(w.Key) + w.Value
		}
		b := make([]byte, 0, len(w.Key)+len(w.Value)+2*12)
		b = append(b, w.Key...)
		b = row.TimeValue(time.UnixMilli(int64(w.Start))).Append(b)
		b = row.TimeValue(time.UnixMilli(int64(w.End))).Append(b)
		return row.Row(append(b, w.Value...))
	}
}
