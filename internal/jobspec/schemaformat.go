package jobspec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
	"github.com/heddle-stream/heddle/schemaregistry"
)

// spec returns the options of a format with a schema.
func (f *sinkFormat) spec() schemaFormat {
	switch {
	case f.Options == nil:
		return schemaFormat{At: f.At}
	case f.Options.Avro != nil:
		return *f.Options.Avro
	}
	return *f.Options.Protobuf
}

// checkSchema makes what writes by the schema, and compares that with the columns that are known.
func (n *sinkNode) checkSchema(p *planner, f *sinkFormat, cols row.Schema) {
	n.writer = nil
	if n.spec.Kafka == nil {
		p.doc.Failf(f.Place(), "only messages of Kafka can be %s: their schemas are in a registry", f.kind())
		return
	}
	s := f.spec()
	text, at := s.Schema.Value, s.Schema.Place()
	switch {
	case s.Schema.IsSet() && s.SchemaFile.IsSet():
		p.doc.Failf(s.SchemaFile.Place(), "schema and schema_file exclude each other")
		return
	case s.SchemaFile.IsSet():
		data, err := p.readFile(s.SchemaFile.Value)
		if err != nil {
			p.doc.Failf(s.SchemaFile.Place(), "cannot read the schema: %v", err)
			return
		}
		text, at = string(data), s.SchemaFile.Place()
	}
	switch {
	case s.Message.IsSet() && f.kind() == "avro":
		p.doc.Failf(s.Message.Place(), "message goes with protobuf only")
	case s.Subject.IsSet() && s.Strategy.IsSet():
		p.doc.Failf(s.Strategy.Place(), "subject and strategy exclude each other")
	case text == "" && s.Register.IsSet():
		p.doc.Failf(s.Register.Place(), "register needs schema or schema_file")
	case text == "" && !s.Subject.IsSet() && s.Strategy.IsSet() && s.Strategy.Value != "topic" && !s.Message.IsSet():
		p.doc.Failf(s.Strategy.Place(), "the strategy %s needs the record's name: give the schema, or name the subject", s.Strategy.Value)
	}
	w, err := schemaregistry.NewWriter(schemaregistry.Writing{Kind: f.kind(), Topic: n.spec.Kafka.Topic.Value, Subject: s.Subject.Value, Strategy: s.Strategy.Value,
		Schema: text, Message: s.Message.Value, Existing: s.Register.IsSet() && !s.Register.Value && text != ""})
	if err != nil {
		p.doc.Failf(at, "cannot use the schema: %v", err)
		return
	}
	n.writer = w
	n.compareFields(p, at, cols)
}

// compareFields reports columns that the schema lacks, and fields that no record will have.
func (n *sinkNode) compareFields(p *planner, at strict.Place, cols row.Schema) {
	all, required, ok := n.writer.Fields()
	if !ok {
		return
	}
	have := written(cols)
	for _, name := range have {
		if !slices.Contains(all, name) {
			p.doc.Failf(at, "the schema has no field for the column %q%s; leave the column out by keep or drop", name, strict.Suggest(name, all))
		}
	}
	for _, name := range required {
		if !cols.Rest && !slices.Contains(have, name) {
			p.doc.Failf(at, "the records have no column for the field %q, which the schema demands (it is not nullable and has no default)%s", name, strict.Suggest(name, have))
		}
	}
}

// readFile reads a file that the job file names.
func (p *planner) readFile(name string) ([]byte, error) {
	if p.files == nil {
		return nil, errors.New("this job file was read without its files; put the text into schema")
	}
	return p.files(name)
}

// notOpen stands for an encoder until the schema registry is asked.
func notOpen(b []byte, _ map[string]any) ([]byte, error) {
	return b, errors.New("the schema registry is not open")
}

// framed is a format whose messages can be made once the schema is known to the registry.
func (n *sinkNode) framed(b *builder, f *sinkFormat, have row.Schema, format heddle.Format[row.Row]) heddle.Format[row.Row] {
	if n.writer == nil { // a sink that is only sent late records or dead letters
		n.checkSchema(b.plan, f, have)
	}
	return framedFormat{Format: format, writer: n.writer, build: func(encode documentEncoder) heddle.Format[row.Row] {
		rf := row.NewDocumentOut(f.kind(), have, b.plan.zone, encode)
		k := n.spec.Kafka
		if i := have.Index(k.Key.Value); k.Key.IsSet() && i >= 0 {
			rf = rf.WithKey(i)
		}
		if h, ok := format.(headedFormat); ok {
			h.Format = rf
			return h
		}
		return rf
	}}
}

type documentEncoder = func(b []byte, doc map[string]any) ([]byte, error)

type framedFormat struct {
	heddle.Format[row.Row]
	writer *schemaregistry.Writer
	build  func(documentEncoder) heddle.Format[row.Row]
}

// Open implements flow.Opener.
func (f framedFormat) Open(ctx context.Context, option func(string) (string, bool)) (heddle.Format[row.Row], error) {
	encode, err := f.writer.Open(ctx, option)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", f.Name(), err)
	}
	return f.build(encode), nil
}
