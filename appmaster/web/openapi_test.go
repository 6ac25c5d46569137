package web

import (
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestOpenAPI: the document describes each request, and each answer is as it says.
func TestOpenAPI(t *testing.T) {
	url, _ := serveTo(t, func(_, _ netip.AddrPort) (int, bool) { return os.Getuid() + 1, true })
	code, text := do(t, client(t), "GET", url+"api/openapi.json", token)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if code != 200 || err != nil {
		t.Fatalf("%d, %v", code, err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	paths := doc.(map[string]any)["paths"].(map[string]any)
	asked := map[string]string{"/api/vertices/{id}": "api/vertices/0", "/api/logs/{name}": "api/logs/appmaster", "/api/log-level": "api/log-level?level=default"}
	for path, methods := range paths {
		for method := range methods.(map[string]any) {
			code := "200"
			if method == "put" {
				code = "202"
			}
			escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
			schema, err := c.Compile("openapi.json#/paths/" + escaped + "/" + method + "/responses/" + code + "/content/application~1json/schema")
			if err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			to := asked[path]
			if to == "" {
				to = strings.TrimPrefix(path, "/")
			}
			got, body := do(t, client(t), strings.ToUpper(method), url+to, token)
			var v any
			if err := json.Unmarshal([]byte(body), &v); err != nil || (got != 200 && got != 202) {
				t.Fatalf("%s %s: %d %v", method, path, got, err)
			}
			if err := schema.Validate(v); err != nil {
				t.Errorf("%s %s answers otherwise than described: %v", method, path, err)
			}
		}
	}
	if len(paths) < 13 {
		t.Errorf("the document describes %d paths", len(paths))
	}
}

// TestOpenAPIQuery: who makes a client of the document knows what an action takes: each value that the document names is taken, and others are refused.
func TestOpenAPIQuery(t *testing.T) {
	url, _ := serve(t)
	_, text := do(t, client(t), "GET", url+"api/openapi.json", token)
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Required bool
				Schema   struct{ Enum []string }
			}
			RequestBody *struct{}
			Responses   map[string]any
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{"/api/log-level": {"component", "level", "for"}, "/api/profiles": {"of", "kind", "for"}} {
		op := doc.Paths[path]["put"]
		if op.RequestBody == nil || op.Responses["default"] == nil {
			t.Errorf("%s has no body, or no answer with an error", path)
		}
		for _, p := range op.Parameters {
			if p.In != "query" || !slices.Contains(want, p.Name) || p.Required && p.Name == "for" {
				t.Errorf("%s: %+v", path, p)
			}
		}
		if len(op.Parameters) != len(want) {
			t.Errorf("%s has %d parameters, want %v", path, len(op.Parameters), want)
		}
	}
	for _, p := range doc.Paths["/api/log-level"]["put"].Parameters {
		for _, value := range p.Schema.Enum {
			if code, body := do(t, client(t), "PUT", url+"api/log-level?"+p.Name+"="+value+"&level=debug", token); code != 202 {
				t.Errorf("%s=%s: %d %s", p.Name, value, code, body)
			}
		}
		if code, _ := do(t, client(t), "PUT", url+"api/log-level?"+p.Name+"=nonsense&level=debug", token); len(p.Schema.Enum) > 0 && code != 400 {
			t.Errorf("%s=nonsense: %d", p.Name, code)
		}
	}
}
