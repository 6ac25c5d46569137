package flow

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxShown bounds how much of a record an error shows.
const maxShown = 200

// maxDeep bounds how many pointers are followed one in the other: values may lead to themselves.
const maxDeep = 6

// printed is a record that has been printed already.
type printed string

// show prints a record for an error or a dead letter.
func show(rec any, limit int) string {
	var s string
	switch v := rec.(type) {
	case printed:
		s = string(v)
	case string:
		s = strconv.Quote(v[:min(len(v), limit)])
	case []byte:
		s = strconv.Quote(string(v[:min(len(v), limit)]))
	default:
		s = safePrint(rec, limit)
	}
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// safePrint prints v; a String or Error method that panics is no reason to.
func safePrint(v any, limit int) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("(%T that can't be printed)", v)
		}
	}()
	p := shower{limit: limit}
	p.value(reflect.ValueOf(v), 0)
	return string(p.b)
}

// shower prints like the verb %+v of package fmt, but follows pointers: where they lead says something, the address nothing.
// It stops soon after limit bytes.
type shower struct {
	b     []byte
	limit int
}

func (p *shower) add(s string) { p.b = append(p.b, s...) }

// value prints v, which was found behind deep pointers.
func (p *shower) value(v reflect.Value, deep int) {
	if len(p.b) > p.limit {
		return
	}
	if !v.IsValid() {
		p.add("<nil>")
		return
	}
	if p.byMethod(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		p.pointer(v, deep)
	case reflect.Interface:
		p.value(v.Elem(), deep)
	case reflect.Struct:
		p.structure(v, deep)
	case reflect.Map:
		p.mapping(v, deep)
	case reflect.Slice, reflect.Array:
		p.list(v, deep)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		p.add("(" + v.Type().String() + ")")
	default:
		p.b = fmt.Appendf(p.b, "%+v", v)
	}
}

// byMethod prints v by a method of its own that package fmt would use.
func (p *shower) byMethod(v reflect.Value) bool {
	if !v.CanInterface() || v.Kind() == reflect.Pointer && v.IsNil() {
		return false
	}
	switch own := v.Interface().(type) {
	case fmt.Formatter, error, fmt.Stringer:
		p.b = fmt.Appendf(p.b, "%+v", own)
		return true
	}
	return false
}

func (p *shower) pointer(v reflect.Value, deep int) {
	switch {
	case v.IsNil():
		p.add("<nil>")
	case deep == maxDeep:
		p.add("&…")
	default:
		p.add("&")
		p.value(v.Elem(), deep+1)
	}
}

func (p *shower) structure(v reflect.Value, deep int) {
	if !v.CanAddr() { // else unexported fields would be out of reach
		c := reflect.New(v.Type()).Elem()
		if v.CanInterface() {
			c.Set(v)
			v = c
		}
	}
	p.add("{")
	for i := range v.NumField() {
		if i > 0 {
			p.add(" ")
		}
		p.add(v.Type().Field(i).Name + ":")
		f := v.Field(i)
		if !f.CanInterface() && f.CanAddr() {
			f = reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
		}
		p.value(f, deep)
	}
	p.add("}")
}

func (p *shower) list(v reflect.Value, deep int) {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		if b := v.Bytes(); len(b) > 0 && utf8.Valid(b) {
			p.add(strconv.Quote(string(b[:min(len(b), p.limit)])))
			return
		}
	}
	p.add("[")
	for i := range v.Len() {
		if len(p.b) > p.limit {
			return
		}
		if i > 0 {
			p.add(" ")
		}
		p.value(v.Index(i), deep)
	}
	p.add("]")
}

// mapping prints a map in order of what its keys print as.
func (p *shower) mapping(v reflect.Value, deep int) {
	if deep == maxDeep {
		p.add("map[…]")
		return
	}
	type entry struct {
		key string
		val reflect.Value
	}
	var all []entry
	for it := v.MapRange(); it.Next(); {
		k := shower{limit: p.limit}
		k.value(it.Key(), deep+1)
		all = append(all, entry{string(k.b), it.Value()})
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	p.add("map[")
	for i, e := range all {
		if i > 0 {
			p.add(" ")
		}
		p.add(e.key + ":")
		p.value(e.val, deep+1)
	}
	p.add("]")
}
