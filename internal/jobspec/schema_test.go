package jobspec

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// validator checks values by the part of JSON Schema that Schema uses; a keyword that it does not know is an error.
type validator struct{ defs map[string]any }

func (v validator) check(schema map[string]any, x any, at string) (errs []string) {
	fail := func(format string, args ...any) { errs = append(errs, at+": "+fmt.Sprintf(format, args...)) }
	for key, arg := range schema {
		switch key {
		case "$schema", "$defs", "title", "description", "default":
		case "$ref":
			name := strings.TrimPrefix(arg.(string), "#/$defs/")
			errs = append(errs, v.check(v.defs[name].(map[string]any), x, at)...)
		case "type":
			if !isType(arg, x) {
				fail("%v is no %v", x, arg)
			}
		case "enum":
			if !slices.Contains(arg.([]any), x) {
				fail("%v is not one of %v", x, arg)
			}
		case "pattern":
			if s, ok := x.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(s) {
				fail("%q does not match %v", s, arg)
			}
		case "minimum":
			if n, ok := x.(float64); ok && n < arg.(float64) {
				fail("%v is less than %v", n, arg)
			}
		case "minLength":
			if s, ok := x.(string); ok && len(s) < int(arg.(float64)) {
				fail("%q is too short", s)
			}
		case "minItems":
			if l, ok := x.([]any); ok && len(l) < int(arg.(float64)) {
				fail("too few elements")
			}
		case "minProperties":
			if m, ok := x.(map[string]any); ok && len(m) < int(arg.(float64)) {
				fail("too few fields")
			}
		case "items":
			l, _ := x.([]any)
			for i, e := range l {
				errs = append(errs, v.check(arg.(map[string]any), e, fmt.Sprintf("%s[%d]", at, i))...)
			}
		case "required":
			for _, name := range arg.([]any) {
				if m, ok := x.(map[string]any); ok && m[name.(string)] == nil {
					fail("%v is missing", name)
				}
			}
		case "properties":
			m, _ := x.(map[string]any)
			for name, p := range arg.(map[string]any) {
				if e, ok := m[name]; ok {
					errs = append(errs, v.check(p.(map[string]any), e, at+"."+name)...)
				}
			}
		case "additionalProperties":
			props, _ := schema["properties"].(map[string]any)
			m, _ := x.(map[string]any)
			for name, e := range m {
				if props[name] != nil {
					continue
				}
				if s, ok := arg.(map[string]any); ok {
					errs = append(errs, v.check(s, e, at+"."+name)...)
				} else {
					fail("unknown field %s", name)
				}
			}
		case "allOf":
			for _, s := range arg.([]any) {
				errs = append(errs, v.check(s.(map[string]any), x, at)...)
			}
		case "oneOf", "anyOf":
			n := 0
			for _, s := range arg.([]any) {
				if len(v.check(s.(map[string]any), x, at)) == 0 {
					n++
				}
			}
			if n == 0 || key == "oneOf" && n > 1 {
				fail("%d of %s fit", n, key)
			}
		default:
			fail("the test does not know the keyword %s", key)
		}
	}
	return errs
}

func isType(arg, x any) bool {
	if list, ok := arg.([]any); ok {
		return slices.ContainsFunc(list, func(a any) bool { return isType(a, x) })
	}
	switch arg {
	case "string":
		_, ok := x.(string)
		return ok
	case "boolean":
		_, ok := x.(bool)
		return ok
	case "integer":
		n, ok := x.(float64)
		return ok && n == float64(int64(n))
	case "number":
		_, ok := x.(float64)
		return ok
	case "array":
		_, ok := x.([]any)
		return ok
	case "object":
		_, ok := x.(map[string]any)
		return ok
	}
	return false
}

// jsonOf is a YAML file as JSON values.
func jsonOf(t *testing.T, data []byte) any {
	t.Helper()
	b, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	var x any
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	return x
}

func loadSchema(t *testing.T) (validator, map[string]any) {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	return validator{s["$defs"].(map[string]any)}, s
}

func TestSchemaAcceptsGoodFiles(t *testing.T) {
	v, s := loadSchema(t)
	for _, name := range files(t, "testdata/good/*.yaml") {
		if errs := v.check(s, jsonOf(t, read(t, name)), filepath.Base(name)); len(errs) > 0 {
			t.Errorf("%s is refused:\n%s", name, strings.Join(errs, "\n"))
		}
	}
}

// TestSchemaRefusesBadFiles holds for what the shape of a file shows; the rest is beyond a schema.
func TestSchemaRefusesBadFiles(t *testing.T) {
	v, s := loadSchema(t)
	for _, name := range []string{"unknown-fields", "wrong-types", "missing", "units"} {
		if errs := v.check(s, jsonOf(t, read(t, "testdata/bad/"+name+".yaml")), name); len(errs) == 0 {
			t.Errorf("the schema accepts %s", name)
		}
	}
}

// TestSchemaIsWhole compares with the definitions: every field, with its description.
func TestSchemaIsWhole(t *testing.T) {
	v, _ := loadSchema(t)
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ.PkgPath() != reflect.TypeFor[jobFile]().PkgPath() || seen[typ] {
			return
		}
		seen[typ] = true
		def, ok := v.defs[typ.Name()].(map[string]any)
		if !ok {
			t.Errorf("%s has no definition", typ.Name())
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			walk(f.Type)
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if name == "" {
				continue
			}
			p, _ := def["properties"].(map[string]any)[name].(map[string]any)
			if p["description"] != f.Tag.Get("doc") {
				t.Errorf("%s.%s is described as %v", typ.Name(), name, p["description"])
			}
		}
	}
	walk(reflect.TypeFor[jobFile]())
	if len(seen) < 15 {
		t.Errorf("only %d definitions were compared", len(seen))
	}
}
