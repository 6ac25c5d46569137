package flow

import (
	"fmt"
	"reflect"
	"sync"
)

// TypeOf describes the record type T, with the author's codecs in c (which may be nil).
// How T is encoded is worked out when it is first asked for.
func TypeOf[T any](c *Codecs) Type {
	t := &recordType[T]{}
	t.layout = sync.OnceValues(func() (*layout, error) { return layoutOf(reflect.TypeFor[T](), c) })
	return t
}

// recordType implements Type.
type recordType[T any] struct {
	layout func() (*layout, error)
}

func (t *recordType[T]) Name() string { return reflect.TypeFor[T]().String() }

func (t *recordType[T]) Err() error {
	_, err := t.layout()
	return err
}

// NewReader implements Type.
func (t *recordType[T]) NewReader(out any) (SegmentReader, error) {
	o, err := outOf[T](out)
	if err != nil {
		return nil, err
	}
	l, err := t.layout()
	if err != nil {
		return nil, err
	}
	return newReader(o, l), nil
}

// NewWriter implements Type.
func (t *recordType[T]) NewWriter(cfg WriterConfig) (any, Writer, error) {
	l, err := t.layout()
	if err != nil {
		return nil, nil, err
	}
	w, err := newWriter[T](cfg, l)
	if err != nil {
		return nil, nil, err
	}
	return Out[T](w), w, nil
}

// Tee implements Type.
func (t *recordType[T]) Tee(outs []any) (any, error) {
	tee := make(tee[T], len(outs))
	for i, o := range outs {
		var err error
		if tee[i], err = outOf[T](o); err != nil {
			return nil, err
		}
	}
	if len(tee) == 1 {
		return tee[0], nil
	}
	return Out[T](tee), nil
}

// Counted implements Type.
func (t *recordType[T]) Counted(out any, records *Counter) (any, error) {
	o, err := outOf[T](out)
	if err != nil {
		return nil, err
	}
	return Out[T](&counted[T]{Out: o, records: records}), nil
}

// outOf asserts that out takes records of type T.
func outOf[T any](out any) (Out[T], error) {
	if o, ok := out.(Out[T]); ok {
		return o, nil
	}
	return nil, fmt.Errorf("%T takes no records of type %s", out, reflect.TypeFor[T]())
}

// tee passes everything to each of several outs; an empty one discards.
type tee[T any] []Out[T]

func (t tee[T]) Push(b Batch[T]) error {
	for _, o := range t {
		if err := o.Push(b); err != nil {
			return err
		}
	}
	return nil
}

func (t tee[T]) Control(c Control) error {
	for _, o := range t {
		if err := o.Control(c); err != nil {
			return err
		}
	}
	return nil
}

// counted counts records on their way.
type counted[T any] struct {
	Out[T]
	records *Counter
}

func (c *counted[T]) Push(b Batch[T]) error {
	c.records.Add(int64(len(b.Recs)))
	return c.Out.Push(b)
}
