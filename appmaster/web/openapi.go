package web

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// openapi serves the description of the API (OpenAPI 3.1), made from the routes and the types of their answers.
func (s *Server) openapi(w http.ResponseWriter, _ *http.Request) {
	types := map[string]any{}
	paths := map[string]map[string]any{}
	for _, r := range s.routes() {
		if paths[r.path] == nil {
			paths[r.path] = map[string]any{}
		}
		paths[r.path][strings.ToLower(r.method)] = operation(r, types)
	}
	reply(w, http.StatusOK, map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "Heddle", "version": "1",
			"description": "The REST API of an application's ApplicationMaster. An answer with an error is {\"error\": \"…\"}."},
		"servers":    []any{map[string]any{"url": ".."}}, // relative to this document, as it has to be behind a proxy
		"paths":      paths,
		"components": map[string]any{"schemas": types, "securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}}},
		"security":   []any{map[string]any{}, map[string]any{"token": []any{}}},
	})
}

func operation(r route, types map[string]any) map[string]any {
	op := map[string]any{"summary": r.summary, "responses": map[string]any{
		strconv.Itoa(r.code): map[string]any{"description": http.StatusText(r.code),
			"content": map[string]any{"application/json": map[string]any{"schema": schema(reflect.TypeOf(r.answer), types)}}},
	}}
	var params []any
	for part := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, map[string]any{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
	}
	for _, p := range r.query {
		of := map[string]any{"type": "string"}
		if p.values != nil {
			of["enum"] = p.values
		}
		params = append(params, map[string]any{"name": p.name, "in": "query", "description": p.doc, "required": p.needed, "schema": of})
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.method == http.MethodPut {
		op["requestBody"] = map[string]any{"description": "The token of /api/session; not needed with the application's.", "content": map[string]any{"application/json": map[string]any{
			"schema": map[string]any{"type": "object", "properties": map[string]any{"token": map[string]any{"type": "string"}}}}}}
	}
	op["responses"].(map[string]any)["default"] = map[string]any{"description": "Why not.",
		"content": map[string]any{"application/json": map[string]any{"schema": schema(reflect.TypeFor[refused](), types)}}}
	return op
}

// refused is an answer with an error.
type refused struct {
	Error string `json:"error"`
}

// schema is the JSON Schema of what encoding/json makes of a type. Structs go into types, under their names.
func schema(t reflect.Type, types map[string]any) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return schema(t.Elem(), types)
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": []any{"array", "null"}, "items": schema(t.Elem(), types)}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": []any{"object", "null"}, "additionalProperties": schema(t.Elem(), types)}
	case t.Kind() == reflect.Struct:
		if _, ok := types[t.Name()]; !ok {
			types[t.Name()] = nil // it may contain itself
			types[t.Name()] = object(t, types)
		}
		return map[string]any{"$ref": "#/components/schemas/" + t.Name()}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case t.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return map[string]any{"type": "number"}
	case t.Kind() == reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}

func object(t reflect.Type, types map[string]any) map[string]any {
	props, required := map[string]any{}, []any{}
	for _, f := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		props[name] = schema(f.Type, types)
		if !strings.Contains(opts, "omitempty") && !strings.Contains(opts, "omitzero") {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}
