package row

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// NewDocument is the format of messages that decode turns into fields by name, as those of Avro and Protobuf are. It can't be written.
func NewDocument(name string, s Schema, zone *time.Location, decode func(value []byte) (map[string]any, error)) *Format {
	f := newFormat(name, s, zone)
	index := map[string]int{}
	for i, c := range s.Cols {
		if !c.Meta {
			index[c.Name] = i
		}
	}
	f.decode = func(f *Format, sc *scratch, value []byte) error {
		doc, err := decode(value)
		if err != nil {
			return err
		}
		if f.schema.Rest { // in the order of names: every process must come to the same row
			for _, field := range slices.Sorted(maps.Keys(doc)) {
				if _, ok := index[field]; ok {
					continue
				}
				if sc.rest, err = AppendAny(appendName(sc.rest, field), doc[field]); err != nil {
					return fmt.Errorf("field %q: %w", field, err)
				}
			}
		}
		for field, i := range index {
			x, ok := doc[field]
			if !ok {
				continue
			}
			b, err := AppendAny(nil, x)
			if err != nil {
				return fmt.Errorf("field %q: %w", field, err)
			}
			v, _, _ := Next(string(b))
			if err := f.put(sc, i, v); err != nil {
				return err
			}
		}
		return nil
	}
	f.encode = func(*Format, *scratch, []byte, Row) ([]byte, bool, error) {
		return nil, false, fmt.Errorf("the format %s can only be read", name)
	}
	return f
}
