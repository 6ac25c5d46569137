package schemaregistry

import (
	"fmt"
	"sync"

	"github.com/hamba/avro/v2"
)

// maxNested is how deep a value may be nested whose schema holds itself, as a tree's does. A byte is enough for a level, and a level takes near to a kilobyte of the stack, or as
// much of an error's text as all those above it: the library has no limit, and a stack that is too large ends the process.
const maxNested = 1000

// checkNested refuses a value that is nested too deeply. What else may be wrong with it is for the decoder to say.
func checkNested(r *avro.Reader, s avro.Schema, payload []byte) error {
	if len(payload) <= maxNested || !holdsItself(s) {
		return nil
	}
	r.Error = nil
	r.Reset(payload)
	w := walk{r: r, left: 64 * len(payload)}
	w.skip(s, 0)
	if w.deep {
		return fmt.Errorf("it is nested more than %d levels deep", maxNested)
	}
	return nil
}

// known are schemas, of which a process sees few, by whether they hold themselves.
var known sync.Map

func holdsItself(s avro.Schema) bool {
	if is, ok := known.Load(s); ok {
		return is.(bool)
	}
	is := (&loops{all: true}).in(s)
	known.Store(s, is)
	return is
}

// walk goes over a value.
type walk struct {
	r    *avro.Reader
	left int // steps: items may take no bytes
	deep bool
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

// endless reports whether a schema has no values: a record that holds itself in any case.
func endless(s avro.Schema) bool { return (&loops{}).in(s) }

// loops looks for a record that holds itself.
type loops struct {
	all         bool // also by unions, arrays and maps, which end somewhere
	above, done map[string]bool
}

func (l *loops) in(s avro.Schema) bool {
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
		return l.above[name]
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
