// Package protocodec lets jobs use protobuf messages: between processes by [Use], in topics and files by [Format].
package protocodec

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/flow"
)

// Use lets records of the job be, or hold, messages of type M, a generated pointer type such as *pb.Click.
func Use[M proto.Message](j *heddle.Job) { heddle.UseCodec(j, codec[M]{}) }

// codec implements heddle.Codec. A message is encoded as a byte 1 and its wire form, nil as nothing.
type codec[M proto.Message] struct{}

// marshal is not deterministic: no key or hash is made of these bytes.
var marshal = proto.MarshalOptions{AllowPartial: true}

func (codec[M]) Append(b []byte, v *M) ([]byte, error) {
	m := (*v).ProtoReflect()
	if !m.IsValid() {
		return b, nil
	}
	return marshal.MarshalAppend(append(b, 1), *v)
}

func (codec[M]) Decode(b []byte, v *M) error {
	if len(b) == 0 {
		return nil
	}
	if b[0] != 1 {
		return errors.New("not an encoded protobuf message")
	}
	m := newMessage[M]()
	if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(b[1:], m); err != nil {
		return err
	}
	*v = m
	return nil
}

// newMessage makes an empty message.
func newMessage[M proto.Message]() M {
	var none M
	return none.ProtoReflect().New().Interface().(M)
}

// Format is the format of messages whose values are protobuf messages of type M in wire form.
func Format[M proto.Message]() heddle.Format[M] { return format[M]{} }

type format[M proto.Message] struct{}

func (format[M]) Name() string               { return "protobuf" }
func (format[M]) Fields() flow.MessageFields { return 0 }

func (format[M]) Decode(dst []M, m *heddle.Messages, from int) ([]M, error) {
	for i := from; i < m.Len(); i++ {
		v := m.Value(i)
		if v == nil {
			return dst, errors.New("the message has no value")
		}
		rec := newMessage[M]()
		if err := proto.Unmarshal(v, rec); err != nil {
			return dst, err
		}
		dst = append(dst, rec)
	}
	return dst, nil
}

func (format[M]) Encode(m *heddle.Messages, recs []M) error {
	for _, rec := range recs {
		at := len(m.Buf)
		b, err := proto.MarshalOptions{}.MarshalAppend(m.Buf, rec)
		if err != nil {
			return fmt.Errorf("cannot encode %s: %w", rec.ProtoReflect().Descriptor().FullName(), err)
		}
		m.Buf = b
		m.Values = append(m.Values, flow.Span{Off: int32(at), Len: int32(len(b) - at)})
	}
	return nil
}
