package web

import (
	"encoding/json"
	"net/netip"
	"os"
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
	asked := map[string]string{"/api/vertices/{id}": "api/vertices/0", "/api/logs/{name}": "api/logs/appmaster"}
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
