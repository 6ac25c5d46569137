package schemaregistry

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/heddle-stream/heddle/internal/flow"
)

// ProtobufFormat is the format of framed Protobuf messages; see Protobuf.
type ProtobufFormat[M proto.Message] struct {
	unopened[M]
	registry *registry
	subject  string
}

// Protobuf is the format of messages in Protobuf of type M, a generated pointer type such as *pb.Click. A message that was written by another version of
// the schema is read as Protobuf has it. To write, name a subject, which must have a schema that holds the message.
func Protobuf[M proto.Message]() *ProtobufFormat[M] {
	return &ProtobufFormat[M]{unopened: unopened[M]{"protobuf"}, registry: new(registry)}
}

// Subject says whose newest schema written messages name, by convention that of the topic: clicks-value.
func (f *ProtobufFormat[M]) Subject(name string) *ProtobufFormat[M] {
	f.subject = name
	return f
}

// Open implements flow.Opener.
func (f *ProtobufFormat[M]) Open(ctx context.Context, option func(string) (string, bool)) (flow.Format[M], error) {
	o := &protoOpen[M]{unopened: f.unopened}
	if f.subject == "" {
		return o, nil // to read, M's own descriptor will do
	}
	c, err := f.registry.open(option)
	if err != nil {
		return nil, err
	}
	s, err := c.latest(ctx, f.subject)
	if err != nil {
		return nil, err
	}
	file, err := parseProto(s)
	if err != nil {
		return nil, fmt.Errorf("cannot use the schema of subject %s: %w", f.subject, err)
	}
	var none M
	name := none.ProtoReflect().Descriptor().FullName()
	path, ok := pathOf(file.Messages(), name)
	if !ok {
		return nil, fmt.Errorf("the schema of subject %s has no message %s", f.subject, name)
	}
	o.frame = appendPath(appendFrame(nil, s.id), path)
	return o, nil
}

// pathOf finds a message by name.
func pathOf(in protoreflect.MessageDescriptors, name protoreflect.FullName) ([]int, bool) {
	for i := range in.Len() {
		if in.Get(i).FullName() == name {
			return []int{i}, true
		}
		if path, ok := pathOf(in.Get(i).Messages(), name); ok {
			return append([]int{i}, path...), true
		}
	}
	return nil, false
}

// protoOpen is the format in a task.
type protoOpen[M proto.Message] struct {
	unopened[M]
	frame []byte // of what is written; nil: none
}

// Decode implements flow.Format.
func (o *protoOpen[M]) Decode(dst []M, m *flow.Messages, from int) ([]M, error) {
	return decodeEach(dst, m, from, func(v []byte, rec *M) error {
		_, payload, err := parseFrame(v)
		if err != nil {
			return err
		}
		if _, payload, err = parsePath(payload); err != nil {
			return err
		}
		var none M
		*rec = none.ProtoReflect().New().Interface().(M)
		return proto.Unmarshal(payload, *rec)
	})
}

// Encode implements flow.Format.
func (o *protoOpen[M]) Encode(m *flow.Messages, recs []M) error {
	if o.frame == nil {
		return fmt.Errorf("no subject is named to write by: use schemaregistry.Protobuf[…]().Subject(name)")
	}
	for _, rec := range recs {
		at := len(m.Buf)
		b, err := proto.MarshalOptions{}.MarshalAppend(append(m.Buf, o.frame...), rec)
		if err != nil {
			return fmt.Errorf("cannot encode %s: %w", rec.ProtoReflect().Descriptor().FullName(), err)
		}
		m.Buf = b
		m.Values = append(m.Values, flow.Span{Off: int32(at), Len: int32(len(b) - at)})
	}
	return nil
}
