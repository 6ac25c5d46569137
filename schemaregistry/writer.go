package schemaregistry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/hamba/avro/v2"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Writing says by which schema documents are written to a topic.
type Writing struct {
	Kind     string // avro or protobuf
	Topic    string
	Subject  string // ""; by the strategy
	Strategy string // topic (or ""), record, topic-record
	Schema   string // its text; "": the newest of the subject
	Message  string // protobuf: full name of the message; "": the first of the schema
	// Existing says that the registry must have the schema already; otherwise it is registered.
	Existing bool
}

// Writer writes documents by a schema, which it registers or looks up when a job opens it.
type Writer struct {
	w        Writing
	registry registry
	given    documentSchema // nil: the newest of the subject

	mu   sync.Mutex
	open *openWriter // guarded by mu; nil: it is not open yet
}

// documentSchema is a schema to write by.
type documentSchema interface {
	// record is the full name of what is written.
	record() string
	// names are the fields, and of those the ones that no record may lack.
	names() (all, required []string)
	// frame is what comes between the frame of the registry and the document.
	frame() []byte
	append(b []byte, doc map[string]any) ([]byte, error)
}

// NewWriter checks the schema, if one is given.
func NewWriter(w Writing) (*Writer, error) {
	out := &Writer{w: w}
	if w.Schema == "" {
		if w.Existing {
			return nil, errors.New("no schema is given that must exist")
		}
		return out, nil
	}
	var err error
	out.given, err = w.compile(&schema{text: w.Schema, kind: w.registryKind()})
	return out, err
}

func (w *Writing) registryKind() string {
	if w.Kind == "avro" {
		return "AVRO"
	}
	return "PROTOBUF"
}

// compile makes what writes by a schema.
func (w *Writing) compile(s *schema) (documentSchema, error) {
	if w.Kind == "avro" {
		parsed, err := parseAvro(s)
		if err != nil {
			return nil, err
		}
		r, ok := parsed.(*avro.RecordSchema)
		if !ok {
			return nil, fmt.Errorf("the schema is a %s, not a record", parsed.Type())
		}
		return avroWriter{r}, nil
	}
	file, err := parseProto(s)
	if err != nil {
		return nil, err
	}
	if file.Messages().Len() == 0 {
		return nil, errors.New("the schema has no message")
	}
	path := []int{0}
	if w.Message != "" {
		var ok bool
		if path, ok = pathOf(file.Messages(), protoreflect.FullName(w.Message)); !ok {
			return nil, fmt.Errorf("the schema has no message %s; its first is %s", w.Message, file.Messages().Get(0).FullName())
		}
	}
	in, d := file.Messages(), protoreflect.MessageDescriptor(nil)
	for _, i := range path {
		d = in.Get(i)
		in = d.Messages()
	}
	return protoWriter{d, path}, nil
}

// Fields returns the names of the fields that the given schema has, and of those the ones that no record may lack. ok is false if none is given.
func (w *Writer) Fields() (all, required []string, ok bool) {
	if w.given == nil {
		return nil, nil, false
	}
	all, required = w.given.names()
	return all, required, true
}

// Open registers or looks up the schema, once in a process, and returns what appends a document, framed, to a buffer.
func (w *Writer) Open(ctx context.Context, option func(string) (string, bool)) (func(b []byte, doc map[string]any) ([]byte, error), error) {
	w.mu.Lock()
	defer w.mu.Unlock() // others want the same, and wait for it
	if w.open == nil {
		c, err := w.registry.open(option)
		if err != nil {
			return nil, err
		}
		if w.open, err = w.connect(ctx, c); err != nil {
			return nil, err
		}
	}
	return w.open.append, nil
}

// connect finds the schema's id.
func (w *Writer) connect(ctx context.Context, c *client) (*openWriter, error) {
	if c.cloudera && w.w.Kind != "avro" {
		return nil, fmt.Errorf("a registry of Cloudera's has no schemas of %s: write avro, or set %s to confluent", w.w.Kind, optKind)
	}
	record := w.w.Message
	if w.given != nil {
		record = w.given.record()
	}
	name := w.w.Subject
	if name == "" {
		var err error
		if name, err = subject(w.w.Strategy, w.w.Topic, record, c.cloudera); err != nil {
			return nil, err
		}
	}
	o := &openWriter{schema: w.given}
	id, err := int64(0), error(nil)
	switch {
	case w.given == nil:
		var s *schema
		if s, err = c.newest(ctx, name); err == nil {
			id = s.id
			o.schema, err = w.w.compile(s)
		}
	case w.w.Existing:
		id, err = c.existing(ctx, name, &w.w)
	default:
		id, err = c.registerAny(ctx, name, &w.w)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write by the schema of subject %s: %w", name, err)
	}
	o.frame = appendFrame(nil, id)
	if c.cloudera {
		o.frame = appendClouderaFrame(nil, id)
	}
	o.frame = append(o.frame, o.schema.frame()...)
	return o, nil
}

// newest returns the newest schema of a subject.
func (c *client) newest(ctx context.Context, name string) (*schema, error) {
	if c.cloudera {
		return c.latestCloudera(ctx, name)
	}
	return c.latest(ctx, name)
}

// existing returns the id that a subject's schema has.
func (c *client) existing(ctx context.Context, name string, w *Writing) (int64, error) {
	if c.cloudera {
		want, err := avro.ParseBytesWithCache([]byte(w.Schema), "", new(avro.SchemaCache))
		if err != nil {
			return 0, err
		}
		return c.existingCloudera(ctx, name, func(text string) bool {
			s, err := avro.ParseBytesWithCache([]byte(text), "", new(avro.SchemaCache))
			return err == nil && s.Fingerprint() == want.Fingerprint()
		})
	}
	body, err := json.Marshal(confluentSchema{Schema: w.Schema, Kind: w.registryKind()})
	if err != nil {
		return 0, err
	}
	var a confluentSchema
	err = c.ask(ctx, http.MethodPost, "/subjects/"+url.PathEscape(name), body, &a)
	return a.ID, err
}

func (c *client) registerAny(ctx context.Context, name string, w *Writing) (int64, error) {
	if c.cloudera {
		return c.registerCloudera(ctx, name, w.Schema)
	}
	return c.register(ctx, name, w.registryKind(), w.Schema)
}

// openWriter is a Writer whose schema has an id.
type openWriter struct {
	schema documentSchema
	frame  []byte
}

func (o *openWriter) append(b []byte, doc map[string]any) ([]byte, error) {
	return o.schema.append(append(b, o.frame...), doc)
}

type avroWriter struct{ schema *avro.RecordSchema }

func (w avroWriter) record() string { return w.schema.FullName() }
func (w avroWriter) frame() []byte  { return nil }
func (w avroWriter) append(b []byte, doc map[string]any) ([]byte, error) {
	return appendRecord(b, w.schema, doc)
}

func (w avroWriter) names() (all, required []string) {
	for _, f := range w.schema.Fields() {
		all = append(all, f.Name())
		if !f.HasDefault() && !nullable(f.Type()) {
			required = append(required, f.Name())
		}
	}
	return all, required
}

type protoWriter struct {
	message protoreflect.MessageDescriptor
	path    []int
}

func (w protoWriter) record() string { return string(w.message.FullName()) }
func (w protoWriter) frame() []byte  { return appendPath(nil, w.path) }
func (w protoWriter) append(b []byte, doc map[string]any) ([]byte, error) {
	return appendProto(b, w.message, doc)
}

func (w protoWriter) names() (all, required []string) {
	fields := w.message.Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		all = append(all, string(f.Name()))
		if f.Cardinality() == protoreflect.Required {
			required = append(required, string(f.Name()))
		}
	}
	return slices.Clip(all), required
}
