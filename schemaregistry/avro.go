package schemaregistry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/hamba/avro/v2"

	"github.com/heddle-stream/heddle/internal/flow"
)

// avroLimits bound what a malformed message may make us allocate.
var avroLimits = avro.Config{MaxByteSliceSize: 64 << 20, MaxSliceAllocSize: 16 << 20}

// AvroFormat is the format of Avro messages; see Avro.
type AvroFormat[T any] struct {
	unopened[T]
	registry      *registry
	subject, text string
}

// Avro is the format of messages in Avro. Fields of T, a struct, have the names of the schema's fields, or say theirs by a tag: `avro:"user_id"`. Fields that the
// writer's schema lacks stay as they are. To write, give it a schema.
func Avro[T any]() *AvroFormat[T] {
	return &AvroFormat[T]{unopened: unopened[T]{"avro"}, registry: new(registry)}
}

// Schema says by which schema to write, and registers it under a subject, by convention that of the topic: clicks-value.
func (f *AvroFormat[T]) Schema(subject, text string) *AvroFormat[T] {
	f.subject, f.text = subject, text
	return f
}

// Open implements flow.Opener.
func (f *AvroFormat[T]) Open(ctx context.Context, option func(string) (string, bool)) (flow.Format[T], error) {
	c, err := f.registry.open(option)
	if err != nil {
		return nil, err
	}
	api := avroLimits.Freeze()
	o := &avroOpen[T]{unopened: f.unopened, ctx: ctx, api: api, reader: newAvroReader(api), schemas: newCompiled(c, parseAvro)}
	if f.text == "" {
		return o, nil
	}
	if o.schema, err = parseAvro(&schema{text: f.text, kind: "AVRO"}); err != nil {
		return nil, fmt.Errorf("cannot use the schema given for subject %s: %w", f.subject, err)
	}
	o.id, err = c.register(ctx, f.subject, "AVRO", f.text)
	return o, err
}

// avroOpen is the format in a task, whose end ends ctx.
type avroOpen[T any] struct {
	unopened[T]
	ctx     context.Context
	api     avro.API
	reader  *avro.Reader
	schemas *compiled[avro.Schema]
	schema  avro.Schema // to write by; nil: none
	id      int64
}

// Decode implements flow.Format.
func (o *avroOpen[T]) Decode(dst []T, m *flow.Messages, from int) ([]T, error) {
	return decodeEach(dst, m, from, func(v []byte, rec *T) error {
		id, payload, err := parseFrame(v)
		if err != nil {
			return err
		}
		s, err := o.schemas.get(o.ctx, id)
		if err != nil {
			return err
		}
		return readAvro(o.reader, s, payload, rec)
	})
}

// Encode implements flow.Format.
func (o *avroOpen[T]) Encode(m *flow.Messages, recs []T) error {
	if o.schema == nil {
		return fmt.Errorf("no schema is given to write by: use schemaregistry.Avro[…]().Schema(subject, text)")
	}
	for i := range recs {
		b, err := o.api.Marshal(o.schema, &recs[i])
		if err != nil {
			return err
		}
		at := len(m.Buf)
		m.Buf = append(appendFrame(m.Buf, o.id), b...)
		m.Values = append(m.Values, flow.Span{Off: int32(at), Len: int32(len(m.Buf) - at)})
	}
	return nil
}

func newAvroReader(api avro.API) *avro.Reader {
	return avro.NewReader(nil, 0, avro.WithReaderConfig(api))
}

// readAvro decodes a value. (avro.Unmarshal takes one that is cut short for a whole one.)
func readAvro(r *avro.Reader, s avro.Schema, payload []byte, v any) error {
	if err := checkShape(r, s, payload); err != nil {
		return err
	}
	r.Error = nil
	r.Reset(payload)
	r.ReadVal(s, v)
	if r.Error == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return r.Error
}

// parseAvro compiles a schema with those that it refers to.
func parseAvro(s *schema) (avro.Schema, error) {
	if s.kind != "AVRO" {
		return nil, fmt.Errorf("it is of kind %s, not AVRO", s.kind)
	}
	cache := new(avro.SchemaCache)
	// What refers to what is not said: those that parse make others parse.
	left := slices.Sorted(maps.Keys(s.references))
	for len(left) > 0 {
		n := len(left)
		var why error
		left = slices.DeleteFunc(left, func(name string) bool {
			_, err := avro.ParseWithCache(s.references[name], "", cache)
			if err != nil {
				why = fmt.Errorf("cannot parse %s, which it refers to: %w", name, err)
			}
			return err == nil
		})
		if len(left) == n {
			return nil, why
		}
	}
	parsed, err := avro.ParseWithCache(s.text, "", cache)
	if err == nil && endless(parsed) {
		return nil, errors.New("a record of it holds itself in any case, so that no value would end")
	}
	return parsed, err
}
