package schemaregistry

import (
	"fmt"
	"slices"
	"sync"

	"github.com/hamba/avro/v2"
)

// maxNested is how deep a value may be nested whose schema holds itself, as a tree's does. A byte is enough for a level, and a level takes near to a kilobyte of the stack, or as
// much of an error's text as all those above it: the library has no limit, and a stack that is too large ends the process.
const maxNested = 1000

// maxEmpty is how many items may be in arrays whose items take no bytes: some bytes could say that there are 2^62, and the library counts to that.
const maxEmpty = 1 << 16

// checkShape refuses a value that is nested too deeply, or has too many items that take no bytes. What else may be wrong with it is for the decoder to say.
func checkShape(r *avro.Reader, s avro.Schema, payload []byte) error {
	if is := shapeOf(s); !is.empty && (!is.deep || len(payload) <= maxNested) {
		return nil
	}
	r.Error = nil
	r.Reset(payload)
	w := walk{r: r, left: 64*len(payload) + maxEmpty}
	w.skip(s, 0)
	switch {
	case w.deep:
		return fmt.Errorf("it is nested more than %d levels deep", maxNested)
	case w.empty > maxEmpty:
		return fmt.Errorf("it has more than %d items that take no bytes", maxEmpty)
	}
	return nil
}

// shape is what a schema's values may be like.
type shape struct {
	deep  bool // it holds itself
	empty bool // it has arrays of items that take no bytes
}

// known are the shapes of schemas, of which a process sees few.
var known sync.Map

func shapeOf(s avro.Schema) shape {
	if is, ok := known.Load(s); ok {
		return is.(shape)
	}
	empties := loops{all: true, also: func(s avro.Schema) bool {
		a, ok := s.(*avro.ArraySchema)
		return ok && weightless(a.Items())
	}}
	is := shape{deep: (&loops{all: true}).in(s), empty: empties.in(s)}
	known.Store(s, is)
	return is
}

// weightless reports whether values take no bytes; of a record that does not hold itself in any case, which has none.
func weightless(s avro.Schema) bool {
	switch s := s.(type) {
	case *avro.NullSchema:
		return true
	case *avro.RefSchema:
		return weightless(s.Schema())
	case *avro.FixedSchema:
		return s.Size() == 0
	case *avro.RecordSchema:
		return !slices.ContainsFunc(s.Fields(), func(f *avro.Field) bool { return !weightless(f.Type()) })
	}
	return false
}

// walk goes over a value.
type walk struct {
	r     *avro.Reader
	left  int   // steps
	empty int64 // items that take no bytes
	deep  bool
}

// skip goes over a part and reports whether what follows is to be looked at.
func (w *walk) skip(s avro.Schema, level int) bool {
	if w.left--; level > maxNested || w.left < 0 || w.r.Error != nil {
		w.deep = w.deep || level > maxNested
		return false
	}
	switch s := s.(type) {
	case *avro.RefSchema:
		return w.skip(s.Schema(), level)
	case *avro.RecordSchema:
		for _, f := range s.Fields() {
			if !w.skip(f.Type(), level+1) {
				return false
			}
		}
	case *avro.ArraySchema:
		if weightless(s.Items()) {
			return w.empties()
		}
		return w.blocks(func() bool { return w.skip(s.Items(), level+1) })
	case *avro.MapSchema:
		return w.blocks(func() bool {
			w.r.SkipString()
			return w.skip(s.Values(), level+1)
		})
	case *avro.UnionSchema:
		i := w.r.ReadLong()
		return i >= 0 && i < int64(len(s.Types())) && w.skip(s.Types()[i], level)
	case *avro.FixedSchema:
		w.r.SkipNBytes(s.Size())
	default:
		w.scalar(s.Type())
	}
	return w.r.Error == nil
}

func (w *walk) scalar(t avro.Type) {
	switch t {
	case avro.Boolean:
		w.r.SkipBool()
	case avro.Int, avro.Enum:
		w.r.SkipInt()
	case avro.Long:
		w.r.SkipLong()
	case avro.Float:
		w.r.SkipFloat()
	case avro.Double:
		w.r.SkipDouble()
	case avro.String:
		w.r.SkipString()
	case avro.Bytes:
		w.r.SkipBytes()
	}
}

// blocks goes over the items of an array or a map.
func (w *walk) blocks(item func() bool) bool {
	for {
		n, _ := w.r.ReadBlockHeader()
		if n <= 0 || w.r.Error != nil {
			return w.r.Error == nil
		}
		for range n {
			if !item() {
				return false
			}
		}
	}
}

// empties counts the items of an array that take no bytes.
func (w *walk) empties() bool {
	for {
		n, _ := w.r.ReadBlockHeader()
		if n <= 0 || w.r.Error != nil {
			return w.r.Error == nil
		}
		if w.empty = min(w.empty, maxEmpty) + n; w.empty > maxEmpty {
			return false
		}
	}
}

// endless reports whether a schema has no values: a record that holds itself in any case.
func endless(s avro.Schema) bool { return (&loops{}).in(s) }

// loops looks for a record that holds itself.
type loops struct {
	all         bool                   // also by unions, arrays and maps, which end somewhere
	also        func(avro.Schema) bool // not nil: for a part that this is true of instead
	above, done map[string]bool
}

func (l *loops) in(s avro.Schema) bool {
	if l.also != nil && l.also(s) {
		return true
	}
	switch s := s.(type) {
	case *avro.RefSchema:
		return l.in(s.Schema())
	case *avro.RecordSchema:
		return l.inRecord(s)
	case *avro.ArraySchema:
		return l.all && l.in(s.Items())
	case *avro.MapSchema:
		return l.all && l.in(s.Values())
	case *avro.UnionSchema:
		if !l.all {
			return false
		}
		for _, t := range s.Types() {
			if l.in(t) {
				return true
			}
		}
	}
	return false
}

func (l *loops) inRecord(s *avro.RecordSchema) bool {
	name := s.FullName()
	if l.above[name] || l.done[name] {
		return l.also == nil && l.above[name]
	}
	if l.above == nil {
		l.above, l.done = map[string]bool{}, map[string]bool{}
	}
	l.above[name] = true
	for _, f := range s.Fields() {
		if l.in(f.Type()) {
			return true
		}
	}
	delete(l.above, name)
	l.done[name] = true
	return false
}
