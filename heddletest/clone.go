package heddletest

import "reflect"

// clone copies what a record borrows: the []byte, and other slices, in its exported fields. Results outlive the call that brings them.
func clone[T any](rec T) T {
	v := reflect.ValueOf(&rec).Elem()
	if borrows(v.Type()) {
		detach(v)
	}
	return rec
}

// borrows reports whether values of type t can hold a slice.
func borrows(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice:
		return true
	case reflect.Array:
		return borrows(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && borrows(f.Type) {
				return true
			}
		}
	}
	return false
}

// detach replaces the slices in v by copies.
func detach(v reflect.Value) {
	if !borrows(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		for i := range c.Len() {
			detach(c.Index(i))
		}
		v.Set(c)
	case reflect.Array:
		for i := range v.Len() {
			detach(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				detach(v.Field(i))
			}
		}
	}
}
