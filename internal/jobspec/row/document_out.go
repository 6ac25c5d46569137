package row

import (
	"encoding/json"
	"errors"
	"time"
)

// NewDocumentOut is the format of messages that encode makes of fields by name, as those of Avro and Protobuf are. It can't be read. Values are nil, bool,
// int64, float64, json.Number, string, []byte, time.Time, []any and map[string]any.
func NewDocumentOut(name string, s Schema, zone *time.Location, encode func(b []byte, doc map[string]any) ([]byte, error)) *Format {
	f := newFormat(name, s, zone)
	f.decode = func(*Format, *scratch, []byte) error { return errors.New("a sink's format can't read") }
	f.encode = func(f *Format, sc *scratch, b []byte, r Row) ([]byte, bool, error) {
		b, err := encode(b, f.document(sc, r))
		return b, false, err
	}
	return f
}

// document is a row as fields by name: those that are absent are left out, and those about the message.
func (f *Format) document(sc *scratch, r Row) map[string]any {
	doc := make(map[string]any, len(f.schema.Cols))
	for i, enc := range sc.spans.Split(r, f.schema.Width()) {
		v, _, _ := Next(enc)
		switch {
		case v.Kind == Absent:
		case i == len(f.schema.Cols):
			for s := v.str; s != ""; {
				name, e, rest, ok := nextField(s)
				if !ok {
					break
				}
				if e.Kind != Absent {
					doc[name] = e.document(f.out)
				}
				s = rest
			}
		case !f.schema.Cols[i].Meta:
			doc[f.schema.Cols[i].Name] = v.document(f.out)
		}
	}
	return doc
}

// document is a value with its exact type.
func (v Value) document(zone *time.Location) any {
	switch v.Kind {
	case Int:
		return v.Int()
	case Number:
		return json.Number(v.str)
	case Bytes:
		return []byte(v.str)
	case Time:
		return v.Time().In(zone)
	case List:
		list := []any{}
		for e := range v.Elements() {
			list = append(list, e.document(zone))
		}
		return list
	case Object:
		doc := map[string]any{}
		for s := v.str; s != ""; {
			name, e, rest, ok := nextField(s)
			if !ok {
				break
			}
			doc[name], s = e.document(zone), rest
		}
		return doc
	}
	return v.Any()
}
