package flow

import (
	"reflect"
	"slices"
	"sort"
)

// Collect gathers what of takes from each record.
func Collect[T, V any](of func(T) V) Aggregator[T, []V, []V] { return collectAgg[T, V]{of} }

type collectAgg[T, V any] struct{ of func(T) V }

func (c collectAgg[T, V]) Zero() []V                { return nil }
func (c collectAgg[T, V]) Add(acc []V, rec T) []V   { return append(acc, c.of(rec)) }
func (c collectAgg[T, V]) Merge(into, from []V) []V { return append(into, from...) }
func (c collectAgg[T, V]) Result(acc []V) []V       { return slices.Clip(acc) }

// Top keeps the n greatest of what of takes from each record, the greatest first.
func Top[T, V any](n int, of func(T) V, less func(a, b V) bool) Aggregator[T, []V, []V] {
	return topAgg[T, V]{n, of, less, keeperOf[V](nil, false)}
}

type topAgg[T, V any] struct {
	n    int
	of   func(T) V
	less func(a, b V) bool
	keep keeper[V]
}

func (t topAgg[T, V]) Zero() []V { return nil }

func (t topAgg[T, V]) Add(acc []V, rec T) []V { return t.insert(acc, t.of(rec)) }

func (t topAgg[T, V]) insert(acc []V, v V) []V {
	i := sort.Search(len(acc), func(i int) bool { return t.less(acc[i], v) })
	if i >= t.n {
		return acc
	}
	t.keep.keep(&v)
	if len(acc) >= t.n {
		acc = acc[:t.n-1]
	}
	return slices.Insert(acc, i, v)
}

func (t topAgg[T, V]) Merge(into, from []V) []V {
	for _, v := range from {
		into = t.insert(into, v)
	}
	return into
}

// Result copies: values move when others are added.
func (t topAgg[T, V]) Result(acc []V) []V { return slices.Clone(acc) }

// Set is the accumulator of Distinct.
type Set[V comparable] struct {
	m   map[V]struct{}
	odd []V // at most one: stands for all values that are not equal to themselves, as NaN is
}

// add puts in v, which is the set's to keep.
func (s *Set[V]) add(v V) {
	switch {
	case v == v:
		s.m[v] = struct{}{}
	case s.odd == nil:
		s.odd = []V{v}
	}
}

func (s *Set[V]) len() int { return len(s.m) + len(s.odd) }

// Distinct counts the different values that of takes from records. Those that are not equal to themselves, such as NaN, count as one.
func Distinct[T any, V comparable](of func(T) V) Aggregator[T, *Set[V], int64] {
	return distinctAgg[T, V]{normalKey(of), keeperOf[V](nil, false)}
}

type distinctAgg[T any, V comparable] struct {
	of   func(T) V
	keep keeper[V]
}

func (d distinctAgg[T, V]) Zero() *Set[V] { return &Set[V]{m: make(map[V]struct{})} }

func (d distinctAgg[T, V]) Add(acc *Set[V], rec T) *Set[V] {
	v := d.of(rec)
	if _, ok := acc.m[v]; !ok {
		d.insert(acc, v)
	}
	return acc
}

func (d distinctAgg[T, V]) insert(acc *Set[V], v V) {
	d.keep.keep(&v)
	acc.add(v)
}

func (d distinctAgg[T, V]) Merge(into, from *Set[V]) *Set[V] {
	for v := range from.m {
		into.m[v] = struct{}{}
	}
	if into.odd == nil {
		into.odd = from.odd
	}
	return into
}

func (d distinctAgg[T, V]) Result(acc *Set[V]) int64 { return int64(acc.len()) }

// Codec implements AccumulatorCodec.
func (d distinctAgg[T, V]) Codec(cs *Codecs) (Codec[*Set[V]], error) {
	if err := checkMapKey(reflect.TypeFor[V](), cs); err != nil {
		return nil, err
	}
	list, err := newStateCodec[[]V](cs)
	if err != nil {
		return nil, err
	}
	return setCodec[V]{list}, nil
}

// setCodec encodes a set as a list.
type setCodec[V comparable] struct{ list *stateCodec[[]V] }

func (c setCodec[V]) Append(b []byte, s **Set[V]) ([]byte, error) {
	vs := make([]V, 0, (*s).len())
	for v := range (*s).m {
		vs = append(vs, v)
	}
	vs = append(vs, (*s).odd...)
	return c.list.Append(b, &vs)
}

func (c setCodec[V]) Decode(b []byte, s **Set[V]) error {
	var vs []V
	if err := c.list.Decode(b, &vs); err != nil {
		return err
	}
	*s = &Set[V]{m: make(map[V]struct{}, len(vs))}
	for _, v := range vs {
		(*s).add(v)
	}
	return nil
}
