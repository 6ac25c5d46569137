package lint

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"testing"
)

// exporters follow the environment's proxies, as OpenTelemetry says they do.
var exporters = []string{"internal/telemetry"}

// TestNoProxy finds clients of HTTP and gRPC that would follow HTTP_PROXY, which gateways set and clusters do not mean. (A test that sets the
// variable would prove little: Go's clients never use a proxy for addresses of the own host.)
func TestNoProxy(t *testing.T) {
	pkgs := load(t)
	for _, dir := range slices.Sorted(maps.Keys(pkgs)) {
		if slices.Contains(exporters, dir) || match("itest/...", dir) || match("packaging/...", dir) || match("bench/...", dir) {
			continue
		}
		p := pkgs[dir]
		for _, f := range p.files {
			for _, fn := range f.Decls {
				for _, fault := range proxied(fn) {
					t.Errorf("%s: %s", p.fset.Position(fault.pos), fault.text)
				}
			}
		}
	}
}

type fault struct {
	pos  token.Pos
	text string
}

// proxied returns what in a declaration would follow the environment's proxies.
func proxied(decl ast.Decl) (faults []fault) {
	direct := false // the declaration takes the proxy out of a transport
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if sel, ok := n.Lhs[0].(*ast.SelectorExpr); ok && sel.Sel.Name == "Proxy" {
				if id, ok := n.Rhs[0].(*ast.Ident); ok && id.Name == "nil" {
					direct = true
				}
			}
		}
		return true
	})
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			switch name := qualified(n); {
			case name == "http.DefaultTransport" && direct:
			case slices.Contains([]string{"http.DefaultTransport", "http.DefaultClient", "http.ProxyFromEnvironment", "retryablehttp.NewClient"}, name):
				faults = append(faults, fault{n.Pos(), name + " follows HTTP_PROXY: use a transport whose Proxy is nil"})
			}
		case *ast.CompositeLit:
			if sel, ok := n.Type.(*ast.SelectorExpr); ok && qualified(sel) == "http.Client" && !hasField(n, "Transport") {
				faults = append(faults, fault{n.Pos(), "an http.Client without Transport follows HTTP_PROXY"})
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			switch name := qualified(sel); {
			case slices.Contains([]string{"http.Get", "http.Head", "http.Post", "http.PostForm"}, name):
				faults = append(faults, fault{n.Pos(), name + " follows HTTP_PROXY"})
			case name == "grpc.NewClient" && !slices.ContainsFunc(n.Args, isNoProxy):
				faults = append(faults, fault{n.Pos(), "grpc.NewClient follows HTTPS_PROXY without grpc.WithNoProxy"})
			}
		}
		return true
	})
	return faults
}

func qualified(sel *ast.SelectorExpr) string {
	if id, ok := sel.X.(*ast.Ident); ok {
		return id.Name + "." + sel.Sel.Name
	}
	return ""
}

func hasField(lit *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		id, ok := kv.Key.(*ast.Ident)
		return ok && id.Name == name
	})
}

func isNoProxy(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && qualified(sel) == "grpc.WithNoProxy"
}
