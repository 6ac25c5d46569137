package schemaregistry

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// appendProto appends an object as a message. A field that the message has not, or whose value it can't hold, is an error which names it.
func appendProto(b []byte, d protoreflect.MessageDescriptor, doc map[string]any) ([]byte, error) {
	m := dynamicpb.NewMessage(d)
	if err := fillMessage(m, doc); err != nil {
		return b, err
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
}

func fillMessage(m protoreflect.Message, doc map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		if f == nil {
			return within(name, &fieldError{why: fmt.Sprintf("the message %s does not have it", m.Descriptor().FullName())})
		}
		if doc[name] == nil {
			continue
		}
		if err := fillField(m, f, doc[name]); err != nil {
			return within(name, err)
		}
	}
	return nil
}

func fillField(m protoreflect.Message, f protoreflect.FieldDescriptor, v any) error {
	switch {
	case f.IsMap():
		doc, ok := v.(map[string]any)
		if !ok {
			return misfit(v, "an object")
		}
		to := m.Mutable(f).Map()
		for _, name := range slices.Sorted(maps.Keys(doc)) {
			key, err := mapKey(f.MapKey(), name)
			if err != nil {
				return within(name, err)
			}
			x, err := protoValue(f.MapValue(), to.NewValue, doc[name])
			if err != nil {
				return within(name, err)
			}
			to.Set(key, x)
		}
		return nil
	case f.IsList():
		list, ok := v.([]any)
		if !ok {
			return misfit(v, "a list")
		}
		to := m.Mutable(f).List()
		for i, e := range list {
			x, err := protoValue(f, to.NewElement, e)
			if err != nil {
				return within(fmt.Sprintf("[%d]", i), err)
			}
			to.Append(x)
		}
		return nil
	}
	x, err := protoValue(f, func() protoreflect.Value { return m.NewField(f) }, v)
	if err == nil {
		m.Set(f, x)
	}
	return err
}

func mapKey(f protoreflect.FieldDescriptor, name string) (protoreflect.MapKey, error) {
	if f.Kind() == protoreflect.StringKind {
		return protoreflect.ValueOfString(name).MapKey(), nil
	}
	return protoreflect.MapKey{}, fmt.Errorf("only keys that are strings can be written, not %s", f.Kind())
}

// protoValue converts a value to what the field, or an element of it, holds. empty makes a message.
func protoValue(f protoreflect.FieldDescriptor, empty func() protoreflect.Value, v any) (protoreflect.Value, error) {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		x := empty()
		return x, fillNested(x.Message(), v)
	case protoreflect.BoolKind:
		if t, ok := v.(bool); ok {
			return protoreflect.ValueOfBool(t), nil
		}
		return protoreflect.Value{}, misfit(v, "a bool")
	case protoreflect.StringKind:
		switch t := v.(type) {
		case string:
			return protoreflect.ValueOfString(t), nil
		case time.Time:
			return protoreflect.ValueOfString(t.Format(time.RFC3339Nano)), nil
		}
		return protoreflect.Value{}, misfit(v, "a string")
	case protoreflect.BytesKind:
		if raw, ok := bytesOf(v); ok {
			return protoreflect.ValueOfBytes(raw), nil
		}
		return protoreflect.Value{}, misfit(v, "bytes")
	case protoreflect.EnumKind:
		return enumValue(f.Enum(), v)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		x, ok := realNumber(v)
		if !ok {
			return protoreflect.Value{}, misfit(v, "a number")
		}
		if f.Kind() == protoreflect.FloatKind {
			return protoreflect.ValueOfFloat32(float32(x)), nil
		}
		return protoreflect.ValueOfFloat64(x), nil
	}
	return protoInteger(f, v)
}

func enumValue(e protoreflect.EnumDescriptor, v any) (protoreflect.Value, error) {
	if name, ok := v.(string); ok {
		if x := e.Values().ByName(protoreflect.Name(name)); x != nil {
			return protoreflect.ValueOfEnum(x.Number()), nil
		}
	}
	if i, ok := wholeNumber(v); ok && i == int64(int32(i)) {
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(i)), nil
	}
	return protoreflect.Value{}, misfit(v, fmt.Sprintf("a value of the enum %s", e.FullName()))
}

func protoInteger(f protoreflect.FieldDescriptor, v any) (protoreflect.Value, error) {
	i, ok := wholeNumber(v)
	if !ok {
		return protoreflect.Value{}, misfit(v, "a whole number")
	}
	switch f.Kind() {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		if i == int64(int32(i)) {
			return protoreflect.ValueOfInt32(int32(i)), nil
		}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(i), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		if i >= 0 && i <= math.MaxUint32 {
			return protoreflect.ValueOfUint32(uint32(i)), nil
		}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if i >= 0 {
			return protoreflect.ValueOfUint64(uint64(i)), nil
		}
	}
	return protoreflect.Value{}, misfit(v, "a number of the kind "+f.Kind().String())
}

// fillNested fills a message within another: well-known types take what they stand for.
func fillNested(m protoreflect.Message, v any) error {
	d := m.Descriptor()
	if d.FullName() == "google.protobuf.Timestamp" {
		at, ok := v.(time.Time)
		if text, is := v.(string); is {
			var err error
			at, err = time.Parse(time.RFC3339Nano, text)
			ok = err == nil
		}
		if !ok {
			return misfit(v, "a time")
		}
		m.Set(d.Fields().ByName("seconds"), protoreflect.ValueOfInt64(at.Unix()))
		m.Set(d.Fields().ByName("nanos"), protoreflect.ValueOfInt32(int32(at.Nanosecond())))
		return nil
	}
	doc, ok := v.(map[string]any)
	if !ok && d.ParentFile().Path() == "google/protobuf/wrappers.proto" {
		return fillField(m, d.Fields().ByName("value"), v)
	}
	if !ok {
		return misfit(v, "an object")
	}
	return fillMessage(m, doc)
}
