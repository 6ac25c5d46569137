package flow

import (
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"unsafe"
)

// layout is how values of one type are encoded: worked out once by reflection, then executed with offsets alone.
//
// A type without pointers is fixed: its memory is its encoding, padding included. Of any other type the fields follow
// each other in order: runs of memory without pointers as they are; a string as its length (uvarint) and bytes; a slice or []byte
// as its length plus one (uvarint; 0 is nil) and elements; a pointer as one byte, 0 for nil or 1, and what it points to; a time.Time as Unix seconds
// (8 bytes) and nanoseconds (4 bytes); a type with a Codec as its length (uvarint) and bytes. Numbers are little-endian.
type layout struct {
	typ   reflect.Type
	size  uintptr // of a value in memory
	fixed bool
	bools []uintptr // offsets of bools in a fixed type: a byte from the wire may be neither 0 nor 1
	ops   []op      // of a type that is not fixed

	least   int    // no value is encoded in fewer bytes
	slabs   int    // ops of kind opSlice, nested ones included: what a decoder keeps an arena for
	strings bool   // holds strings
	plain   opKind // opString or opBytes: that and nothing else; else 0
	custom  bool   // holds types with a Codec: the size of a value is not known before it is encoded
	print   uint16 // tells layouts apart, so that a reader of another type notices
}

// op is one step of encoding or decoding a value.
type op struct {
	kind opKind
	off  uintptr      // in the value
	n    uintptr      // opRaw: bytes; opArray: elements
	elem *layout      // opSlice, opArray, opPointer
	typ  reflect.Type // opSlice: the slice's; opPointer: what it points to
	slab int          // opSlice: the arena's number
	code *customCodec // opCustom
}

type opKind uint8

const (
	opRaw     opKind = iota // n bytes of memory without pointers
	opWord                  // 8 of them
	opString                // a string
	opBytes                 // a []byte: borrowed when decoded
	opTime                  // a time.Time
	opSlice                 // another slice
	opArray                 // an array whose elements are not fixed
	opPointer               // a pointer
	opCustom                // a type with a Codec
)

const wordBits = 32 << (^uint(0) >> 63)

// layoutOf works out the layout of t. The error names the field that can't be encoded.
func layoutOf(t reflect.Type, cs *Codecs) (*layout, error) {
	if one := uint16(1); *(*byte)(unsafe.Pointer(&one)) != 1 || wordBits != 64 {
		return nil, errors.New("records can be sent between processes on 64-bit little-endian machines only")
	}
	b := layoutBuilder{codecs: cs, root: t}
	l, err := b.layout(t, "")
	if err != nil {
		return nil, err
	}
	l.slabs = b.slabs
	if len(l.ops) == 1 && (t.Kind() == reflect.String || t.Kind() == reflect.Slice) {
		if k := l.ops[0].kind; k == opString || k == opBytes {
			l.plain = k
		}
	}
	h := fnv.New32a()
	h.Write([]byte(b.desc.String()))
	l.print = uint16(h.Sum32() ^ h.Sum32()>>16)
	return l, nil
}

// layoutBuilder builds one layout.
type layoutBuilder struct {
	codecs *Codecs
	root   reflect.Type
	within []reflect.Type // what is being built, outermost first: finds recursion
	slabs  int
	desc   strings.Builder // of everything met, for layout.print
}

func (b *layoutBuilder) refuse(t reflect.Type, at, why string) error {
	where := "it"
	if at != "" {
		where = "field " + at
	}
	return fmt.Errorf("records of type %s can't be sent between processes: %s is a %s%s; give the type a codec (heddle.UseCodec)", b.root, where, t, why)
}

// layout builds the layout of t, met at path at.
func (b *layoutBuilder) layout(t reflect.Type, at string) (*layout, error) {
	for _, w := range b.within {
		if w == t {
			return nil, b.refuse(t, at, ", which contains itself")
		}
	}
	b.within = append(b.within, t)
	defer func() { b.within = b.within[:len(b.within)-1] }()
	l := &layout{typ: t, size: t.Size()}
	if b.fixed(t) {
		l.fixed = true
		l.bools = boolOffsets(nil, t, 0)
		l.least = int(t.Size())
		l.ops = appendRaw(nil, 0, t.Size())
		fmt.Fprintf(&b.desc, "fixed %d;", t.Size())
		return l, nil
	}
	if err := b.add(l, t, 0, at); err != nil {
		return nil, err
	}
	return l, nil
}

// fixed reports whether t has neither pointers nor codecs.
func (b *layoutBuilder) fixed(t reflect.Type) bool {
	if b.codecs.of(t) != nil {
		return false
	}
	switch k := t.Kind(); k {
	case reflect.Struct:
		for i := range t.NumField() {
			if !b.fixed(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return b.fixed(t.Elem())
	default:
		return k >= reflect.Bool && k <= reflect.Complex128
	}
}

// add appends the ops of a part of l: a value of type t at offset off.
func (b *layoutBuilder) add(l *layout, t reflect.Type, off uintptr, at string) error {
	if c := b.codecs.of(t); c != nil {
		l.ops = append(l.ops, op{kind: opCustom, off: off, code: c})
		l.custom = true
		l.least++
		b.desc.WriteString("codec;")
		return nil
	}
	if b.fixed(t) {
		l.ops = appendRaw(l.ops, off, t.Size())
		l.bools = boolOffsets(l.bools, t, off)
		l.least += int(t.Size())
		fmt.Fprintf(&b.desc, "raw %d;", t.Size())
		return nil
	}
	if t == timeType {
		l.ops = append(l.ops, op{kind: opTime, off: off})
		l.least += timeBytes
		b.desc.WriteString("time;")
		return nil
	}
	if isHandle(t) {
		return b.refuse(t, at, ", which means nothing in another process (netip.Addr holds one)")
	}
	switch t.Kind() {
	case reflect.String:
		l.ops = append(l.ops, op{kind: opString, off: off})
		l.strings = true
		l.least++
		b.desc.WriteString("string;")
		return nil
	case reflect.Struct:
		return b.addStruct(l, t, off, at)
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return b.addElems(l, t, off, at)
	}
	return b.refuse(t, at, "")
}

func (b *layoutBuilder) addStruct(l *layout, t reflect.Type, off uintptr, at string) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if err := b.add(l, f.Type, off+f.Offset, joinPath(at, f.Name)); err != nil {
			return err
		}
	}
	return nil
}

// addElems adds a slice, an array or a pointer.
func (b *layoutBuilder) addElems(l *layout, t reflect.Type, off uintptr, at string) error {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && b.codecs.of(t.Elem()) == nil {
		l.ops = append(l.ops, op{kind: opBytes, off: off})
		l.least++
		b.desc.WriteString("bytes;")
		return nil
	}
	o := op{kind: opPointer, off: off, typ: t.Elem()}
	switch t.Kind() {
	case reflect.Slice:
		o.kind, o.typ, o.slab = opSlice, t, b.slabs
		b.slabs++
	case reflect.Array:
		o.kind, o.n = opArray, uintptr(t.Len())
	}
	fmt.Fprintf(&b.desc, "%s %d(", t.Kind(), o.n)
	elem, err := b.layout(t.Elem(), at+map[opKind]string{opSlice: "[]", opArray: "[]"}[o.kind])
	if err != nil {
		return err
	}
	b.desc.WriteString(");")
	o.elem = elem
	l.strings, l.custom = l.strings || elem.strings, l.custom || elem.custom
	if o.kind == opArray {
		l.least += int(o.n) * elem.least
	} else {
		l.least++
	}
	l.ops = append(l.ops, o)
	return nil
}

// appendRaw adds n bytes at off, joined to the run before where that ends there.
func appendRaw(ops []op, off, n uintptr) []op {
	if n == 0 {
		return ops
	}
	if i := len(ops) - 1; i >= 0 && (ops[i].kind == opRaw || ops[i].kind == opWord) && ops[i].off+ops[i].n == off {
		ops[i].kind, ops[i].n = opRaw, ops[i].n+n
		return ops
	}
	kind := opRaw
	if n == 8 {
		kind = opWord
	}
	return append(ops, op{kind: kind, off: off, n: n})
}

// boolOffsets appends the offsets of the bools in a fixed type.
func boolOffsets(offs []uintptr, t reflect.Type, off uintptr) []uintptr {
	switch t.Kind() {
	case reflect.Bool:
		return append(offs, off)
	case reflect.Array:
		for i := range t.Len() {
			n := len(offs)
			if offs = boolOffsets(offs, t.Elem(), off+uintptr(i)*t.Elem().Size()); len(offs) == n {
				return offs // no bools in there
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			offs = boolOffsets(offs, t.Field(i).Type, off+t.Field(i).Offset)
		}
	}
	return offs
}
