package jobspec

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
	"github.com/heddle-stream/heddle/kafkasource"
	"github.com/heddle-stream/heddle/schemaregistry"
)

// sourceNode reads records.
type sourceNode struct {
	spec    *source
	out     *stream
	letters *sinkNode

	zone      *time.Location
	format    string
	columns   []string // csv: names of a line's fields in order, "" for one that is left out
	delimiter byte
	header    bool
	generated map[string]*expression
	from      heddle.MessageSource
}

// kafkaTime is the column of a Kafka message's own timestamp.
const kafkaTime = "_timestamp"

func (n *sourceNode) check(p *planner) {
	n.zone = p.zone
	declared := n.declared(p)
	n.out.schema, n.out.timed = row.Schema{}, false
	switch s := n.spec; {
	case s.Kafka != nil:
		n.checkFormat(p, &s.Kafka.Format, declared)
		n.out.schema.Cols = append(n.out.schema.Cols, row.MetaColumns...)
		n.from = n.kafka(p, s.Kafka)
	case s.File != nil:
		n.checkFormat(p, &s.File.Format, declared)
		n.from = heddle.Files(s.File.Path.Value)
	case s.Generator != nil:
		n.checkGenerator(p)
	}
	for _, c := range n.out.schema.Cols {
		if !c.Meta && slices.ContainsFunc(row.MetaColumns, func(m row.Column) bool { return m.Name == c.Name }) {
			p.doc.Failf(n.out.place, "the column name %s stands for what Kafka knows of a message; it can't be a field", c.Name)
		}
	}
	n.checkEventTime(p)
}

// declared are the columns of fields.
func (n *sourceNode) declared(p *planner) (cols []row.Column) {
	if n.spec.Fields == nil {
		return nil
	}
	if n.spec.Generator != nil {
		p.doc.Failf(n.spec.Fields.Place(), "a generator's fields are those of its record: leave fields out")
	}
	for _, e := range n.spec.Fields.Entries {
		c := row.Column{Name: e.Key.Value, Type: row.Type(e.Value.Value)}
		if slices.ContainsFunc(cols, func(o row.Column) bool { return o.Name == c.Name }) {
			p.doc.Failf(e.Key.Place(), "field %q is there twice", c.Name)
			continue
		}
		cols = append(cols, c)
	}
	return cols
}

// checkFormat works out the columns that the format gives.
func (n *sourceNode) checkFormat(p *planner, f *sourceFormat, declared []row.Column) {
	n.format = f.Name.Value
	if f.Options != nil {
		n.format = "csv"
	}
	fixed := ""
	switch n.format {
	case "json":
		n.out.schema = row.Schema{Cols: declared, Rest: declared == nil}
	case "avro", "protobuf":
		n.out.schema = row.Schema{Cols: declared, Rest: declared == nil}
		if n.spec.File != nil {
			p.doc.Failf(f.Place(), "a file's lines can't be %s: their schemas would be in a registry", n.format)
		}
	case "csv":
		n.checkCSV(p, f, declared)
	case "text":
		fixed = row.LineColumn
		n.out.schema.Cols = []row.Column{{Name: fixed, Type: row.StringType}}
	case "raw":
		fixed = row.ValueColumn
		n.out.schema.Cols = []row.Column{{Name: fixed, Type: row.BytesType}}
	}
	if fixed != "" && n.spec.Fields != nil {
		p.doc.Failf(n.spec.Fields.Place(), "the format %s has one column, %s: leave fields out", n.format, fixed)
	}
}

func (n *sourceNode) checkCSV(p *planner, f *sourceFormat, declared []row.Column) {
	n.out.schema.Cols = slices.Clone(declared)
	var csv csvRead
	if f.Options != nil && f.Options.CSV != nil {
		csv = *f.Options.CSV
	}
	n.delimiter, n.header = delimiterOf(p.doc, csv.Delimiter), csv.Header.Value
	if n.header && n.spec.File == nil {
		p.doc.Failf(csv.Header.Place(), "only files have a header")
	}
	if csv.Columns == nil {
		if declared == nil {
			p.doc.Failf(f.Place(), "csv needs the names of its columns: list them in fields, or in format: {csv: {columns: […]}}")
			n.out.schema.Rest = true
		}
		for _, c := range declared {
			n.columns = append(n.columns, c.Name)
		}
		return
	}
	for _, c := range csv.Columns {
		n.columns = append(n.columns, c.Value)
		if c.Value == "" || n.out.schema.Index(c.Value) >= 0 {
			continue
		}
		if declared != nil {
			p.doc.Failf(c.Place(), "column %q is not among the fields%s; an empty name leaves a column out", c.Value, strict.Suggest(c.Value, n.out.schema.Names()))
			continue
		}
		n.out.schema.Cols = append(n.out.schema.Cols, row.Column{Name: c.Value, Type: row.StringType})
	}
	for _, c := range declared {
		if !slices.Contains(n.columns, c.Name) {
			p.doc.Failf(n.spec.Fields.Place(), "field %q is not among the columns of the csv", c.Name)
		}
	}
}

// delimiterOf returns the delimiter of a CSV, 0 for the default.
func delimiterOf(doc *strict.Document, s strict.String) byte {
	if !s.IsSet() {
		return 0
	}
	if len(s.Value) != 1 || s.Value == "\"" || s.Value == "\n" || s.Value == "\r" {
		doc.Failf(s.Place(), "delimiter needs one ASCII character, such as \";\" or \"\\t\"")
		return 0
	}
	return s.Value[0]
}

// generatorScope is what a generator's expressions see.
var generatorScope = row.Schema{Cols: []row.Column{{Name: "n", Type: row.IntType}}}

func (n *sourceNode) checkGenerator(p *planner) {
	g := n.spec.Generator
	n.generated = p.compileAll(scope{schema: generatorScope, zone: p.zone}, &g.Record)
	n.out.schema = withColumns(row.Schema{}, &g.Record, n.generated)
	n.out.timed = true
}

// checkEventTime checks the column that gives the stream event times.
func (n *sourceNode) checkEventTime(p *planner) {
	for _, d := range []struct {
		name string
		d    strict.Duration
	}{{"max_delay", n.spec.MaxDelay}, {"idle_after", n.spec.IdleAfter}, {"max_drift", n.spec.MaxDrift}} {
		if d.d.IsSet() && n.spec.EventTime == nil && !n.out.timed {
			p.doc.Failf(d.d.Place(), "%s needs event_time", d.name)
		}
	}
	switch a := n.spec.Align; {
	case a.IsSet() && a.Value == "":
		p.doc.Failf(a.Place(), "the group's name is empty")
	case a.IsSet() && !n.spec.MaxDrift.IsSet():
		p.doc.Failf(a.Place(), "align needs max_drift: how far a partition may be ahead of the slowest of the group")
	}
	if n.spec.EventTime == nil {
		return
	}
	if d := n.spec.MaxDrift; d.IsSet() && n.spec.Generator != nil {
		p.doc.Failf(d.Place(), "max_drift does not go with the event_time of a generator, which is known only behind it: leave one out")
	}
	col, unit := n.spec.EventTime.parts()
	if !col.IsSet() || !p.columns(n.out, col) {
		return
	}
	n.out.timed = true
	i := n.out.schema.Index(col.Value)
	if i < 0 {
		return
	}
	switch t := n.out.schema.Cols[i].Type; t {
	case row.AnyType, row.StringType, row.IntType, row.FloatType:
	case row.TimeType:
		if unit.IsSet() {
			p.doc.Failf(unit.Place(), "column %s is a time, which has no unit", col.Value)
		}
	default:
		p.doc.Failf(col.Place(), "event_time needs a time, a string or a number, but column %s is %s", col.Value, article(t))
	}
}

func (e *eventTime) parts() (col, unit strict.String) {
	if e.Detail != nil {
		return e.Detail.Column, e.Detail.Unit
	}
	return e.Column, strict.String{}
}

// kafka makes the connector.
func (n *sourceNode) kafka(p *planner, k *kafkaSource) heddle.MessageSource {
	var s *kafkasource.Source
	switch {
	case k.Pattern.IsSet():
		s = kafkasource.Pattern(k.Pattern.Value)
	case k.Partitions != nil:
		s = kafkasource.Partitions(p.partitions(k.Partitions))
	default:
		s = kafkasource.Topics(values(k.Topics)...)
	}
	for _, re := range []strict.String{k.Pattern, k.Exclude} {
		if _, err := regexp.Compile(re.Value); err != nil {
			p.doc.Failf(re.Place(), "bad regular expression: %v", err)
		}
	}
	if k.Exclude.IsSet() {
		if !k.Pattern.IsSet() {
			p.doc.Failf(k.Exclude.Place(), "exclude goes with pattern only")
		}
		s.Exclude(k.Exclude.Value)
	}
	for _, t := range k.Topics {
		if t.IsSet() && t.Value == "" {
			p.doc.Failf(t.Place(), "a topic's name is empty")
		}
	}
	if len(k.Brokers) > 0 {
		s.Brokers(values(k.Brokers)...)
	}
	if k.Discovery.IsSet() {
		s.DiscoveryInterval(k.Discovery.Value)
	}
	n.kafkaOptions(p, s, k)
	if k.Start != nil {
		switch {
		case k.Start.Point != nil:
			s.Start(p.kafkaPoint(k.Start.Point))
		case k.Start.Symbol.Value == "latest":
			s.Start(kafkasource.Latest())
		}
	}
	if k.Stop != nil {
		switch {
		case k.Stop.Point != nil:
			s.Stop(p.kafkaPoint(k.Stop.Point))
		case k.Stop.Symbol.Value == "latest":
			s.Stop(kafkasource.Latest())
		}
	}
	return s
}

// kafkaOptions sets what is neither topics nor positions.
func (n *sourceNode) kafkaOptions(p *planner, s *kafkasource.Source, k *kafkaSource) {
	if k.Assign.Value == "global" {
		s.AssignGlobal()
	}
	if k.Isolation.Value == "uncommitted" {
		s.ReadUncommitted()
	}
	if k.OnDataLoss.IsSet() {
		s.OnDataLoss(k.OnDataLoss.Value)
	}
	if k.RateLimit.IsSet() {
		s.RateLimit(float64(k.RateLimit.Value))
	}
	if k.CommitTo.IsSet() {
		if k.CommitTo.Value == "" {
			p.doc.Failf(k.CommitTo.Place(), "the group's name is empty")
		}
		s.CommitTo(k.CommitTo.Value)
	}
	if k.CommitInterval.IsSet() {
		if !k.CommitTo.IsSet() {
			p.doc.Failf(k.CommitInterval.Place(), "commit_interval needs commit_to, the group to commit to")
		}
		s.CommitInterval(k.CommitInterval.Value)
	}
}

// partitions reads lists of partitions.
func (p *planner) partitions(m *strict.Map[partitionList]) map[string][]int32 {
	out := map[string][]int32{}
	for _, e := range m.Entries {
		for _, n := range e.Value.Numbers {
			if n.Value < 0 || n.Value > math.MaxInt32 {
				p.doc.Failf(n.Place(), "%d is no number of a partition", n.Value)
			}
			out[e.Key.Value] = append(out[e.Key.Value], int32(n.Value))
		}
		if len(e.Value.Numbers) == 0 {
			p.doc.Failf(e.Key.Place(), "no partition of topic %s is named", e.Key.Value)
		}
	}
	return out
}

func (p *planner) kafkaPoint(k *kafkaPoint) kafkasource.Position {
	if k.Otherwise.IsSet() && !k.Committed.IsSet() {
		p.doc.Failf(k.Otherwise.Place(), "otherwise goes with committed only")
	}
	if k.Committed.IsSet() {
		if k.Committed.Value == "" {
			p.doc.Failf(k.Committed.Place(), "the group's name is empty")
		}
		otherwise := map[string]kafkasource.Position{"earliest": kafkasource.Earliest(), "latest": kafkasource.Latest()}
		return kafkasource.Committed(k.Committed.Value, otherwise[k.Otherwise.Value])
	}
	if k.Offsets == nil {
		at, err := row.ParseTime(k.Timestamp.Value, p.zone)
		if err != nil && k.Timestamp.IsSet() {
			p.doc.Failf(k.Timestamp.Place(), "%v", err)
		}
		return kafkasource.Timestamp(at)
	}
	offsets := map[string]map[int32]int64{}
	for _, t := range k.Offsets.Entries {
		parts := map[int32]int64{}
		for _, e := range t.Value.Entries {
			part, err := strconv.ParseInt(e.Key.Value, 10, 32)
			if err != nil || part < 0 {
				p.doc.Failf(e.Key.Place(), "%q is no number of a partition", e.Key.Value)
			}
			if e.Value.IsSet() && e.Value.Value < 0 {
				p.doc.Failf(e.Value.Place(), "an offset can't be negative")
			}
			parts[int32(part)] = int64(e.Value.Value)
		}
		offsets[t.Key.Value] = parts
	}
	return kafkasource.Offsets(offsets)
}

func values(list []strict.String) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.Value
	}
	return out
}

// line implements node.
func (n *sourceNode) line() int { return n.out.place.Line }

// slotGroup implements node.
func (n *sourceNode) slotGroup() string { return n.spec.SlotGroup.Value }

// does implements node.
func (n *sourceNode) does(string) (kind, detail string) { return "map", "" }

func (n *sourceNode) needed() {}

func (n *sourceNode) build(b *builder) {
	eventCol := ""
	if n.spec.EventTime != nil {
		col, _ := n.spec.EventTime.parts()
		eventCol = col.Value
	}
	if n.spec.Generator != nil {
		n.buildGenerator(b, eventCol)
		return
	}
	if eventCol != "" && eventCol != kafkaTime {
		n.out.need.add(eventCol)
	}
	have := n.out.need.prune(n.out.schema)
	n.out.have = have
	s := heddle.From(b.job, n.from, n.messageFormat(have, eventCol))
	s = n.named(s)
	if n.out.timed {
		w := heddle.BoundedDelay[row.Row](n.spec.MaxDelay.Value, nil)
		w.Idle = n.spec.IdleAfter.Value
		s = s.Watermark(n.aligned(w))
	}
	s = policy(s, n.out.name, n.spec.OnError, n.letters)
	if n.header { // after the policy, which is the source's
		s = heddle.Filter(s, func(r row.Row) bool { return r != row.Header }).Name(n.out.name + " header")
	}
	n.out.rows = s
}

// messageFormat makes the format of messages.
func (n *sourceNode) messageFormat(have row.Schema, eventCol string) heddle.Format[row.Row] {
	if n.format != "avro" && n.format != "protobuf" {
		return n.rowFormat(have, eventCol, nil)
	}
	none := func([]byte) (map[string]any, error) { return nil, errors.New("the schema registry is not open") }
	return documents{Format: n.rowFormat(have, eventCol, none), from: schemaregistry.NewDocuments(n.format), build: func(decode documentDecoder) *row.Format {
		return n.rowFormat(have, eventCol, decode)
	}}
}

type documentDecoder = func(value []byte) (map[string]any, error)

// documents is a format whose messages can be decoded once their schemas can be asked for.
type documents struct {
	*row.Format
	from  *schemaregistry.Documents
	build func(documentDecoder) *row.Format
}

// Needs implements flow.Needing.
func (d documents) Needs() []flow.Need { return d.from.Needs() }

// Open implements flow.Opener.
func (d documents) Open(ctx context.Context, option func(string) (string, bool)) (heddle.Format[row.Row], error) {
	decode, err := d.from.Open(ctx, option)
	if err != nil {
		return nil, err
	}
	return d.build(decode), nil
}

// rowFormat makes the format of the rows that are needed. decode is for documents.
func (n *sourceNode) rowFormat(have row.Schema, eventCol string, decode documentDecoder) *row.Format {
	var f *row.Format
	switch n.format {
	case "avro", "protobuf":
		f = row.NewDocument(n.format, have, n.zone, decode)
	case "json":
		f = row.NewJSON(have, n.zone)
	case "csv":
		opt := row.CSVOptions{Delimiter: n.delimiter, Header: n.header}
		for _, name := range n.columns {
			opt.Columns = append(opt.Columns, have.Index(name))
		}
		f = row.NewCSV(have, n.zone, opt)
	case "text":
		f = row.NewText(have, n.zone, have.Index(row.LineColumn), row.Template{})
	default:
		f = row.NewRaw(have, have.Index(row.ValueColumn))
	}
	f = f.WithHeaders(parseHeaders)
	if i := have.Index(eventCol); i >= 0 && eventCol != kafkaTime {
		_, unit := n.spec.EventTime.parts()
		f = f.WithEventTime(i, units[unit.Value])
	}
	return f
}

// parseHeaders is a row.ParseHeaders for Kafka's.
func parseHeaders(b []byte, each func(name string, value []byte)) error {
	hs, err := batch.Headers(nil, b)
	for _, h := range hs {
		each(h.Key, h.Value)
	}
	return err
}

// units are the units of numbers as times.
var units = map[string]time.Duration{"": time.Millisecond, "s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}

// named gives the source's operator its name, uid and parallelism.
func (n *sourceNode) named(s heddle.Stream[row.Row]) heddle.Stream[row.Row] {
	s = s.Name(n.out.name)
	if n.spec.UID.IsSet() {
		s = s.UID(n.spec.UID.Value)
	}
	if n.spec.Parallelism.IsSet() {
		s = s.Parallelism(n.spec.Parallelism.Value)
	}
	return s
}

// aligned makes partitions wait for each other, and for those of other sources of the same group.
func (n *sourceNode) aligned(w heddle.Watermarks[row.Row]) heddle.Watermarks[row.Row] {
	if !n.spec.MaxDrift.IsSet() {
		return w
	}
	group := n.spec.Align.Value
	if group == "" {
		group = "source " + n.out.name // no name that a file gives can be mistaken for it: two sources have two names
	}
	return w.WithAlignment(group, n.spec.MaxDrift.Value)
}

// buildGenerator numbers records and projects the numbers to what the expressions say.
func (n *sourceNode) buildGenerator(b *builder, eventCol string) {
	g := n.spec.Generator
	count := int64(-1)
	if g.Count.IsSet() {
		count = int64(g.Count.Value)
	}
	numbers := heddle.FromSource(b.job, heddle.Generate(count, func(i int64) row.Row {
		return row.Row(row.IntValue(i).Append(nil))
	}).Rate(float64(g.Rate.Value)))
	s := n.named(numbers)
	w := heddle.BoundedDelay[row.Row](n.spec.MaxDelay.Value, nil)
	w.Idle = n.spec.IdleAfter.Value
	if eventCol == "" {
		s = s.Watermark(n.aligned(w))
	} else {
		n.out.need.add(eventCol)
	}
	have := n.out.need.prune(n.out.schema)
	made, _ := projectRows(s, project(generatorScope, have, n.generated, nil))
	n.out.have = have
	s = policy(made.Name(n.out.name+" record"), n.out.name, n.spec.OnError, n.letters)
	if eventCol != "" {
		_, unit := n.spec.EventTime.parts()
		i, zone := have.Index(eventCol), n.zone
		w.Time = func(r row.Row) time.Time {
			at, err := row.EventTime(r.At(i), units[unit.Value], zone)
			if err != nil {
				panic(fmt.Errorf("event_time %s: %w", eventCol, err))
			}
			return at
		}
		s = s.Watermark(w)
	}
	n.out.rows = s
}
