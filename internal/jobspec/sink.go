package jobspec

import (
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/schemaregistry"
)

// sinkNode writes records.
type sinkNode struct {
	name  string
	place strict.Place
	spec  sink
	in    *stream // nil if it only takes what steps send it
	fed   bool    // steps send it late records or dead letters

	// Set while the plan is built.
	feeds []feed
	have  row.Schema

	writer *schemaregistry.Writer // avro and protobuf
}

// feed is a stream that a sink is sent.
type feed struct {
	rows   heddle.Stream[row.Row]
	schema row.Schema
}

func (n *sinkNode) feed(rows heddle.Stream[row.Row], s row.Schema) {
	n.feeds = append(n.feeds, feed{rows, s})
}

// format returns the sink's format; nil for one that has none.
func (n *sinkNode) format() *sinkFormat {
	switch s := n.spec; {
	case s.Kafka != nil:
		return &s.Kafka.Format
	case s.File != nil:
		return &s.File.Format
	case s.Stdout != nil && s.Stdout.Format != nil:
		return s.Stdout.Format
	case s.Stdout != nil:
		return &sinkFormat{Name: strict.String{Value: "json"}}
	}
	return nil
}

// kind is the name of the format.
func (f *sinkFormat) kind() string {
	switch {
	case f.Options == nil:
		return f.Name.Value
	case f.Options.CSV != nil:
		return "csv"
	case f.Options.Avro != nil:
		return "avro"
	case f.Options.Protobuf != nil:
		return "protobuf"
	}
	return "text"
}

func (n *sinkNode) check(p *planner) {
	if n.in == nil {
		return // what it is sent is known when the job is built
	}
	if n.in.key != nil {
		p.doc.Failf(n.place, "sink %s can't read key_by: key_by must be followed by window or dedupe", n.name)
		return
	}
	if k := n.spec.Kafka; k != nil && k.Key.IsSet() {
		p.columns(n.in, k.Key)
	}
	if k := n.spec.Kafka; k != nil && k.Headers != nil {
		for _, e := range k.Headers.Entries {
			p.columns(n.in, e.Value)
		}
	}
	if k := n.spec.Kafka; k != nil && k.Topic.IsSet() && k.Topic.Value == "" {
		p.doc.Failf(k.Topic.Place(), "the topic's name is empty")
	}
	if f := n.format(); f != nil {
		n.checkFormat(p, f)
	}
}

// checkFormat checks that the stream has the columns that the format writes.
func (n *sinkNode) checkFormat(p *planner, f *sinkFormat) {
	cols := written(n.in.schema)
	switch f.kind() {
	case "csv":
		if f.Options != nil {
			delimiterOf(p.doc, f.Options.CSV.Delimiter)
			p.columns(n.in, f.Options.CSV.Columns...)
		}
		if n.in.schema.Rest && (f.Options == nil || len(f.Options.CSV.Columns) == 0) {
			p.doc.Failf(f.Place(), "csv needs the names of its columns, since the columns of %s are not known: format: {csv: {columns: […]}}", n.in.title)
		}
	case "text":
		if f.Options != nil {
			n.checkTemplate(p, f.Options.Text)
			break
		}
		if len(cols) != 1 || n.in.schema.Rest {
			p.doc.Failf(f.Place(), "text writes one column, but the records have %s: say which by format: {text: \"{column}\"}", columnCount(n.in.schema))
		}
	case "avro", "protobuf":
		n.checkSchema(p, f, n.in.schema)
	case "raw":
		if len(cols) != 1 || n.in.schema.Rest {
			if !slices.Contains(cols, row.ValueColumn) {
				p.doc.Failf(f.Place(), "raw writes one column, or the one called value, but the records have %s", columnCount(n.in.schema))
			}
		}
	}
}

func columnCount(s row.Schema) string {
	if s.Rest {
		return "fields that are not known"
	}
	return fmt.Sprintf("%d: %s", len(written(s)), s)
}

func (n *sinkNode) checkTemplate(p *planner, t strict.String) {
	names, off, err := row.TemplateNames(t.Value)
	if err != nil {
		p.doc.Failf(t.PlaceAt(off, 1), "%v", err)
		return
	}
	for _, name := range names {
		if n.in.schema.Index(name) < 0 && !n.in.schema.Rest {
			p.doc.Failf(t.Place(), "unknown column %q%s", name, strict.Suggest(name, n.in.schema.Names()))
		}
	}
}

// written are the columns that a sink writes by default.
func written(s row.Schema) (names []string) {
	for _, c := range s.Cols {
		if !c.Meta {
			names = append(names, c.Name)
		}
	}
	return names
}

// line implements node.
func (n *sinkNode) line() int { return n.place.Line }

// slotGroup implements node.
func (n *sinkNode) slotGroup() string { return n.spec.SlotGroup.Value }

// does implements node.
func (n *sinkNode) does(string) (kind, detail string) { return "map", "" }

func (n *sinkNode) needed() {
	if n.in == nil {
		return
	}
	need := &n.in.need
	if k := n.spec.Kafka; k != nil {
		if k.Key.IsSet() {
			need.add(k.Key.Value)
		}
		need.add(k.headerColumns()...)
	}
	f := n.format()
	switch {
	case f == nil:
	case f.kind() == "csv" && f.Options != nil && len(f.Options.CSV.Columns) > 0:
		need.add(values(f.Options.CSV.Columns)...)
	case f.kind() == "text" && f.Options != nil:
		names, _, _ := row.TemplateNames(f.Options.Text.Value)
		need.add(names...)
	case f.kind() == "raw" && n.in.schema.Index(row.ValueColumn) >= 0:
		need.add(row.ValueColumn)
	default:
		need.all = true
	}
}

func (n *sinkNode) build(b *builder) {
	if n.in != nil {
		n.feeds = slices.Insert(n.feeds, 0, feed{n.in.rows, n.in.have})
	}
	if len(n.feeds) == 0 {
		return
	}
	var schemas []row.Schema
	for _, f := range n.feeds {
		schemas = append(schemas, f.schema)
	}
	have := unite(schemas)
	n.have = have
	var rows []heddle.Stream[row.Row]
	for _, f := range n.feeds {
		s, made := projectRows(f.rows, project(f.schema, have, nil, nil))
		if made {
			s = s.Name(n.name + " input")
		}
		rows = append(rows, s)
	}
	all := heddle.Union(rows[0], rows[1:]...)
	t := n.terminal(b, all, have)
	t = t.Name(n.name)
	if n.spec.UID.IsSet() {
		t = t.UID(n.spec.UID.Value)
	}
	if n.spec.Parallelism.IsSet() {
		t.Parallelism(n.spec.Parallelism.Value)
	}
}

// terminal adds the sink's operator.
func (n *sinkNode) terminal(b *builder, s heddle.Stream[row.Row], have row.Schema) heddle.Terminal {
	f := n.format()
	if f == nil {
		return heddle.ToSink(s, heddle.Discard[row.Row]())
	}
	rf := n.rowFormat(b.plan, f, have)
	switch k := n.spec; {
	case k.Kafka != nil:
		if k.Kafka.Key.IsSet() {
			if i := have.Index(k.Kafka.Key.Value); i >= 0 {
				rf = rf.WithKey(i)
			} else {
				b.plan.doc.Failf(k.Kafka.Key.Place(), "unknown column %q%s", k.Kafka.Key.Value, strict.Suggest(k.Kafka.Key.Value, have.Names()))
			}
		}
		to := kafkasink.Topic(k.Kafka.Topic.Value)
		if len(k.Kafka.Brokers) > 0 {
			to = to.Brokers(values(k.Kafka.Brokers)...)
		}
		k.Kafka.options(to)
		var format heddle.Format[row.Row] = rf
		if k.Kafka.Headers != nil {
			format = n.headed(b, rf, have)
		}
		if kind := f.kind(); kind == "avro" || kind == "protobuf" {
			format = n.framed(b, f, have, format)
		}
		return heddle.To(s, to, format)
	case k.File != nil:
		to := heddle.ToFiles(k.File.Path.Value)
		if k.File.Overwrite.Value {
			to = to.Overwrite()
		}
		return heddle.To[row.Row](s, to, rf)
	}
	return heddle.To[row.Row](s, heddle.Stdout(), rf)
}

// options sets how batches are made.
func (k *kafkaSink) options(to *kafkasink.Sink) {
	if k.Compression.IsSet() {
		to.Compression(k.Compression.Value)
	}
	if k.BatchBytes.IsSet() {
		to.BatchBytes(k.BatchBytes.Value)
	}
	if k.Linger.IsSet() {
		to.Linger(k.Linger.Value)
	}
	if k.MaxMessageBytes.IsSet() {
		to.MaxMessageBytes(k.MaxMessageBytes.Value)
	}
}

// rowFormat makes the format of the rows. A sink that is only sent late records or dead letters has its columns checked here.
func (n *sinkNode) rowFormat(p *planner, f *sinkFormat, have row.Schema) *row.Format {
	unknown := func(name string, at strict.Place) {
		p.doc.Failf(at, "unknown column %q%s", name, strict.Suggest(name, have.Names()))
	}
	switch f.kind() {
	case "csv":
		var opt row.CSVOptions
		names := written(have)
		if f.Options != nil {
			opt.Delimiter = delimiterOf(p.doc, f.Options.CSV.Delimiter)
			if len(f.Options.CSV.Columns) > 0 {
				names = values(f.Options.CSV.Columns)
			}
		}
		for _, name := range names {
			i := have.Index(name)
			if i < 0 {
				unknown(name, f.Place())
				continue
			}
			opt.Columns = append(opt.Columns, i)
		}
		return row.NewCSV(have, p.zone, opt)
	case "text":
		if f.Options == nil {
			return row.NewText(have, p.zone, -1, row.ColumnTemplate(n.only(p, f, have)))
		}
		t, err := row.NewTemplate(f.Options.Text.Value, have)
		if err != nil {
			p.doc.Failf(f.Options.Text.Place(), "%v", err)
		}
		return row.NewText(have, p.zone, -1, t)
	case "raw":
		if i := have.Index(row.ValueColumn); i >= 0 {
			return row.NewRaw(have, i)
		}
		return row.NewRaw(have, n.only(p, f, have))
	}
	if kind := f.kind(); kind == "avro" || kind == "protobuf" {
		return row.NewDocumentOut(kind, have, p.zone, notOpen)
	}
	return row.NewJSON(have, p.zone)
}

// only is the index of the one column that is written.
func (n *sinkNode) only(p *planner, f *sinkFormat, have row.Schema) int {
	cols := written(have)
	if len(cols) != 1 || have.Rest {
		p.doc.Failf(f.Place(), "%s writes one column, but the records have %s", f.kind(), columnCount(have))
		return 0
	}
	return have.Index(cols[0])
}
