package ctl

import (
	"strings"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that mending extends
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// mending is gRPC's codec for messages of which a string may be no UTF-8. Such strings come out of a job's functions,
// from places that nobody foresees, and the plain codec would end the whole session because of one: with it the agent and
// the news of what really happened. They are replaced where marshalling has failed, so that it costs nothing else.
type mending struct{ encoding.CodecV2 }

func newCodec() mending { return mending{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c mending) Marshal(v any) (mem.BufferSlice, error) {
	data, err := c.CodecV2.Marshal(v)
	m, ok := v.(proto.Message)
	if err == nil || !ok {
		return data, err
	}
	m = proto.Clone(m) // parts of it may be shared with other messages
	mend(m.ProtoReflect())
	return c.CodecV2.Marshal(m)
}

// mend makes every string in m valid UTF-8.
func mend(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			mendMap(fd, v.Map())
		case fd.IsList():
			list := v.List()
			for i := range list.Len() {
				list.Set(i, mended(fd, list.Get(i)))
			}
		default:
			m.Set(fd, mended(fd, v))
		}
		return true
	})
}

func mendMap(fd protoreflect.FieldDescriptor, m protoreflect.Map) {
	type entry struct{ from, to, value protoreflect.Value }
	var entries []entry
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		entries = append(entries, entry{k.Value(), mended(fd.MapKey(), k.Value()), mended(fd.MapValue(), v)})
		return true
	})
	for _, e := range entries {
		m.Clear(e.from.MapKey())
	}
	for _, e := range entries {
		m.Set(e.to.MapKey(), e.value)
	}
}

// mended returns the mended form of one value of a field.
func mended(fd protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(strings.ToValidUTF8(v.String(), "\uFFFD"))
	case protoreflect.MessageKind, protoreflect.GroupKind:
		mend(v.Message())
	}
	return v
}
