package strict

import (
	"fmt"
	"reflect"
	"strings"
)

// Reference describes the fields of t, a struct, and of the structs in it, as tables in Markdown, from the same definitions as Schema.
// title names a struct's section; what it does not know is described in place only.
func Reference(t reflect.Type, title func(name string) string) string {
	var b strings.Builder
	seen := map[reflect.Type]bool{}
	queue := []reflect.Type{t}
	for len(queue) > 0 {
		t, queue = queue[0], queue[1:]
		if seen[t] {
			continue
		}
		seen[t] = true
		inner := structsIn(t)
		queue = append(queue, inner...)
		if isAlternatives(t) || title(t.Name()) == "" {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| field | value | |\n| --- | --- | --- |\n", title(t.Name()))
		for _, f := range fieldsOf(t).list {
			doc := f.doc
			if f.required {
				doc += " Required."
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.name, valueWord(f), strings.ReplaceAll(doc, "|", "\\|"))
		}
	}
	return b.String()
}

// structsIn are the structs that t's fields lead to.
func structsIn(t reflect.Type) (found []reflect.Type) {
	for i := range t.NumField() {
		ft := t.Field(i).Type
		for ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
			ft = ft.Elem()
		}
		if m, ok := reflect.New(ft).Interface().(interface{ element() reflect.Type }); ok {
			ft = m.element()
		}
		if _, own := reflect.New(ft).Interface().(unmarshaler); !own && ft.Kind() == reflect.Struct && ft != reflect.TypeFor[At]() {
			found = append(found, ft)
		}
	}
	return found
}

// valueWord says what kind of value a field takes.
func valueWord(f *field) string {
	t := f.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice {
		return "list"
	}
	if len(f.enum) > 0 {
		return "`" + strings.Join(f.enum, "`, `") + "`"
	}
	switch t {
	case reflect.TypeFor[String]():
		return "string"
	case reflect.TypeFor[Text]():
		return "expression"
	case reflect.TypeFor[Int]():
		return "number"
	case reflect.TypeFor[Bool]():
		return "boolean"
	case reflect.TypeFor[Duration]():
		return "duration"
	}
	if !isAlternatives(t) {
		return "map"
	}
	var words []string
	for i := range t.NumField() {
		switch t.Field(i).Tag.Get("alt") {
		case "scalar":
			if e := t.Field(i).Tag.Get("enum"); e != "" {
				words = append(words, "`"+strings.ReplaceAll(e, "|", "`, `")+"`")
			} else {
				words = append(words, "string")
			}
		case "list":
			words = append(words, "list")
		case "map":
			words = append(words, "map")
		}
	}
	return strings.Join(words, " or ")
}
