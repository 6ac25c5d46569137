package schemaregistry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"github.com/hamba/avro/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	// What schemas import of Protobuf's own.
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// Documents reads messages whose types are known from their schemas alone, as jobs in YAML do.
type Documents struct {
	kind     string
	registry registry
}

// NewDocuments makes the reader of a kind: avro or protobuf.
func NewDocuments(kind string) *Documents { return &Documents{kind: kind} }

// Open connects to the registry, and returns what decodes a value into its fields by name.
func (d *Documents) Open(ctx context.Context, option func(string) (string, bool)) (func([]byte) (map[string]any, error), error) {
	c, err := d.registry.open(option)
	if err != nil {
		return nil, err
	}
	if d.kind == "avro" {
		return avroDocument(ctx, newCompiled(c, parseAvro)), nil
	}
	return protoDocument(ctx, newCompiled(c, parseProto)), nil
}

func avroDocument(ctx context.Context, schemas *compiled[avro.Schema]) func([]byte) (map[string]any, error) {
	reader := newAvroReader(avroLimits.Freeze())
	return func(v []byte) (map[string]any, error) {
		if v == nil {
			return nil, errNull
		}
		id, payload, err := parseFrame(v)
		if err != nil {
			return nil, err
		}
		s, err := schemas.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if s.Type() != avro.Record {
			return nil, fmt.Errorf("its schema is a %s, not a record", s.Type())
		}
		var out map[string]any
		if err := readAvro(reader, s, payload, &out); err != nil {
			return nil, err
		}
		plain(s, out)
		return out, nil
	}
}

func protoDocument(ctx context.Context, schemas *compiled[protoreflect.FileDescriptor]) func([]byte) (map[string]any, error) {
	return func(v []byte) (map[string]any, error) {
		if v == nil {
			return nil, errNull
		}
		id, payload, err := parseFrame(v)
		if err != nil {
			return nil, err
		}
		path, payload, err := parsePath(payload)
		if err != nil {
			return nil, err
		}
		file, err := schemas.get(ctx, id)
		if err != nil {
			return nil, err
		}
		var desc protoreflect.MessageDescriptor
		in := file.Messages()
		for _, i := range path {
			if i >= in.Len() {
				return nil, errors.New("its schema does not have the message that it names")
			}
			desc = in.Get(i)
			in = desc.Messages()
		}
		m := dynamicpb.NewMessage(desc)
		if err := proto.Unmarshal(payload, m); err != nil {
			return nil, err
		}
		return fieldsOf(m), nil
	}
}

// parseProto compiles a file with those that it imports.
func parseProto(s *schema) (protoreflect.FileDescriptor, error) {
	if s.kind != "PROTOBUF" {
		return nil, fmt.Errorf("it is of kind %s, not PROTOBUF", s.kind)
	}
	const main = "heddle-main.proto"
	files := maps.Clone(s.references)
	if files == nil {
		files = map[string]string{}
	}
	files[main] = s.text
	return (&protoCompiler{files: files, done: map[string]linker.File{}}).compile(main)
}

// protoCompiler compiles files that import each other. It uses parts of protocompile alone: with the whole, every process would set up all of
// Protobuf's own files when it starts, whatever it does.
type protoCompiler struct {
	files map[string]string
	done  map[string]linker.File // nil: under way
}

func (c *protoCompiler) compile(name string) (linker.File, error) {
	if f, ok := c.done[name]; ok {
		if f == nil {
			return nil, fmt.Errorf("%s imports itself", name)
		}
		return f, nil
	}
	text, ok := c.files[name]
	if !ok {
		known, err := protoregistry.GlobalFiles.FindFileByPath(name) // Protobuf's own, such as google/protobuf/timestamp.proto
		if err != nil {
			return nil, fmt.Errorf("the registry does not have %s, which it imports", name)
		}
		return linker.NewFileRecursive(known)
	}
	c.done[name] = nil
	h := reporter.NewHandler(nil)
	tree, err := parser.Parse(name, strings.NewReader(text), h)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ResultFromAST(tree, true, h)
	if err != nil {
		return nil, err
	}
	var deps linker.Files
	for _, d := range parsed.FileDescriptorProto().GetDependency() {
		f, err := c.compile(d)
		if err != nil {
			return nil, err
		}
		deps = append(deps, f)
	}
	f, err := linker.Link(parsed, deps, nil, h)
	if err != nil {
		return nil, err
	}
	c.done[name] = f
	return f, nil
}

// fieldsOf is a message as a document: every field by its name, those of no presence with their defaults, absent ones left out.
func fieldsOf(m protoreflect.Message) map[string]any {
	out := map[string]any{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !m.Has(f) {
			continue
		}
		out[string(f.Name())] = valueOf(f, m.Get(f))
	}
	return out
}

func valueOf(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch {
	case f.IsMap():
		out := map[string]any{}
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			out[k.String()] = scalarOf(f.MapValue(), v)
			return true
		})
		return out
	case f.IsList():
		out := make([]any, v.List().Len())
		for i := range out {
			out[i] = scalarOf(f, v.List().Get(i))
		}
		return out
	}
	return scalarOf(f, v)
}

func scalarOf(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return messageOf(v.Message())
	case protoreflect.EnumKind:
		if e := f.Enum().Values().ByNumber(v.Enum()); e != nil {
			return string(e.Name())
		}
		return int64(v.Enum())
	}
	return v.Interface()
}

// messageOf is a message within another: well-known types are what they stand for.
func messageOf(m protoreflect.Message) any {
	d := m.Descriptor()
	field := func(name protoreflect.Name) protoreflect.Value { return m.Get(d.Fields().ByName(name)) }
	switch d.FullName() {
	case "google.protobuf.Timestamp":
		return unixTime(field("seconds").Int(), field("nanos").Int())
	case "google.protobuf.StringValue", "google.protobuf.BytesValue", "google.protobuf.BoolValue", "google.protobuf.Int32Value", "google.protobuf.Int64Value",
		"google.protobuf.UInt32Value", "google.protobuf.UInt64Value", "google.protobuf.FloatValue", "google.protobuf.DoubleValue":
		return field("value").Interface()
	}
	return fieldsOf(m)
}

func unixTime(seconds, nanos int64) time.Time { return time.Unix(seconds, nanos).UTC() }
