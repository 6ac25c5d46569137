package flow

import (
	"reflect"
	"strings"
	"sync"
	"unsafe"
)

// keeper makes values fit to be kept beyond the call they were passed in: a []byte of a record points into a
// segment that is soon overwritten, a string holds on to the copy of a whole segment.
//
// It replaces strings, slices and, if deep, what pointers lead to by copies, also within structs, arrays and slices.
// Maps, interfaces, functions and types with a codec of the author's are left alone: what they lead to was allocated for itself.
// So are time.Time and unique.Handle, whose pointers are identities: a time with a copy of its zone is another time to ==.
type keeper[T any] struct {
	fn  keepFunc // nil: T holds no borrowed memory
	old *T       // scratch, so that replace need not allocate
}

// keepFunc copies in place what v borrows. Where old, the value kept so far or nil, has the same memory, that is ours already.
type keepFunc func(v, old unsafe.Pointer)

// keeperOf compiles the keeper of T. cs are the author's codecs.
func keeperOf[T any](cs *Codecs, deep bool) keeper[T] {
	c := keepCompiler{cs, deep}
	return keeper[T]{fn: c.compile(reflect.TypeFor[T](), nil), old: new(T)}
}

// keepCompiler makes keepFuncs.
type keepCompiler struct {
	codecs *Codecs
	deep   bool
}

// keep copies what *v borrows.
func (k keeper[T]) keep(v *T) {
	if k.fn != nil {
		k.fn(unsafe.Pointer(v), nil)
	}
}

// replace puts v into *dst and copies what v borrows and *dst didn't have.
func (k keeper[T]) replace(dst *T, v T) {
	if k.fn == nil {
		*dst = v
		return
	}
	k.replaceKept(dst, v)
}

// replaceKept is apart so that replace can be inlined.
func (k keeper[T]) replaceKept(dst *T, v T) {
	*k.old = *dst
	*dst = v
	k.fn(unsafe.Pointer(dst), unsafe.Pointer(k.old))
}

// compile returns what copies the borrowed parts of a t, or nil. outer are the types around it, to end recursion:
// a type that contains itself does so by a slice, pointer or map.
func (c keepCompiler) compile(t reflect.Type, outer []reflect.Type) keepFunc {
	if c.codecs.of(t) != nil || t == timeType || isHandle(t) {
		return nil
	}
	for i, o := range outer {
		if o == t {
			return c.recursive(t, outer[:i])
		}
	}
	outer = append(outer[:len(outer):len(outer)], t)
	switch t.Kind() {
	case reflect.String:
		return keepString
	case reflect.Slice:
		return c.slice(t.Elem(), outer)
	case reflect.Array:
		return c.array(t, outer)
	case reflect.Struct:
		return c.structure(t, outer)
	case reflect.Pointer:
		return c.pointer(t.Elem(), outer)
	}
	return nil
}

// isHandle reports whether t is a unique.Handle.
func isHandle(t reflect.Type) bool {
	return t.PkgPath() == "unique" && strings.HasPrefix(t.Name(), "Handle[")
}

// recursive compiles t when it is first needed.
func (c keepCompiler) recursive(t reflect.Type, outer []reflect.Type) keepFunc {
	compiled := sync.OnceValue(func() keepFunc { return c.compile(t, outer) })
	return func(v, old unsafe.Pointer) {
		if fn := compiled(); fn != nil {
			fn(v, old)
		}
	}
}

func keepString(v, old unsafe.Pointer) {
	s := (*string)(v)
	if len(*s) == 0 {
		*s = ""
		return
	}
	if old != nil {
		if o := *(*string)(old); len(o) == len(*s) && (unsafe.StringData(o) == unsafe.StringData(*s) || o == *s) {
			*s = o
			return
		}
	}
	*s = strings.Clone(*s)
}

// slice copies a slice with other memory than the old one; its elements, where the old slice didn't have them.
// The capacity stays, so that appending to a kept slice is cheap.
func (c keepCompiler) slice(elem reflect.Type, outer []reflect.Type) keepFunc {
	each, size, typ := c.compile(elem, outer), elem.Size(), reflect.SliceOf(elem)
	return func(v, old unsafe.Pointer) {
		h := (*sliceWords)(v)
		if h.data == nil {
			return
		}
		var o sliceWords
		if old != nil {
			o = *(*sliceWords)(old)
		}
		same := o.data == h.data && h.cap <= o.cap
		if !same {
			n := reflect.MakeSlice(typ, h.len, h.cap)
			reflect.Copy(n, reflect.NewAt(typ, v).Elem())
			h.data = n.UnsafePointer()
		}
		if each == nil {
			return
		}
		from := 0
		if same {
			from = min(o.len, h.len)
		}
		for i := from; i < h.len; i++ {
			var prev unsafe.Pointer
			if i < o.len {
				prev = unsafe.Add(o.data, uintptr(i)*size)
			}
			each(unsafe.Add(h.data, uintptr(i)*size), prev)
		}
	}
}

func (c keepCompiler) array(t reflect.Type, outer []reflect.Type) keepFunc {
	each, size, n := c.compile(t.Elem(), outer), t.Elem().Size(), t.Len()
	if each == nil || n == 0 {
		return nil
	}
	return func(v, old unsafe.Pointer) {
		for i := range n {
			each(unsafe.Add(v, uintptr(i)*size), within(old, uintptr(i)*size))
		}
	}
}

func (c keepCompiler) structure(t reflect.Type, outer []reflect.Type) keepFunc {
	type field struct {
		off  uintptr
		keep keepFunc
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if fn := c.compile(f.Type, outer); fn != nil {
			fields = append(fields, field{f.Offset, fn})
		}
	}
	switch len(fields) {
	case 0:
		return nil
	case 1:
		if f := fields[0]; f.off == 0 {
			return f.keep
		}
	}
	return func(v, old unsafe.Pointer) {
		for _, f := range fields {
			f.keep(unsafe.Add(v, f.off), within(old, f.off))
		}
	}
}

// pointer copies what a pointer other than the old one leads to, if that borrows anything.
func (c keepCompiler) pointer(elem reflect.Type, outer []reflect.Type) keepFunc {
	if !c.deep {
		return nil
	}
	each := c.compile(elem, outer)
	if each == nil {
		return nil
	}
	return func(v, old unsafe.Pointer) {
		p := (*unsafe.Pointer)(v)
		if *p == nil || old != nil && *(*unsafe.Pointer)(old) == *p {
			return
		}
		n := reflect.New(elem)
		n.Elem().Set(reflect.NewAt(elem, *p).Elem())
		*p = n.UnsafePointer()
		each(*p, nil)
	}
}

// within is p moved by off, nil for nil.
func within(p unsafe.Pointer, off uintptr) unsafe.Pointer {
	if p == nil {
		return nil
	}
	return unsafe.Add(p, off)
}
