package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/heddle-stream/heddle"

// pkg is one package of the module, test files left out.
type pkg struct {
	dir     string // relative to the module's root, "." for the root
	name    string
	doc     bool
	imports []string // all import paths
	local   []string // those of this module, as dirs
	files   map[string]*ast.File
	fset    *token.FileSet
}

func load(t *testing.T) map[string]*pkg {
	t.Helper()
	root := "../.."
	pkgs := map[string]*pkg{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); p != root && (strings.HasPrefix(n, ".") || n == "testdata" || n == "bin" || n == "out") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		return add(pkgs, root, p)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 5 {
		t.Fatalf("found only %d packages: is this the module's root?", len(pkgs))
	}
	return pkgs
}

func add(pkgs map[string]*pkg, root, file string) error {
	rel, err := filepath.Rel(root, filepath.Dir(file))
	if err != nil {
		return err
	}
	dir := filepath.ToSlash(rel)
	p := pkgs[dir]
	if p == nil {
		p = &pkg{dir: dir, files: map[string]*ast.File{}, fset: token.NewFileSet()}
		pkgs[dir] = p
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(p.fset, file, src, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("cannot parse %s: %w", file, err)
	}
	p.name, p.files[file] = f.Name.Name, f
	p.doc = p.doc || f.Doc != nil && len(f.Doc.Text()) > 20
	for _, im := range f.Imports {
		s, err := strconv.Unquote(im.Path.Value)
		if err != nil {
			return err
		}
		if !slices.Contains(p.imports, s) {
			p.imports = append(p.imports, s)
		}
		local := ""
		if s == module {
			local = "."
		} else if r, ok := strings.CutPrefix(s, module+"/"); ok {
			local = r
		}
		if local != "" && !slices.Contains(p.local, local) {
			p.local = append(p.local, local)
		}
	}
	return nil
}

func match(pattern, dir string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == base || strings.HasPrefix(dir, base+"/")
	}
	return pattern == dir
}

// layerOf returns the layer of dir, an exact entry before a folder's; -1 if it has none.
func layerOf(dir string) int {
	wild := -1
	for i, l := range layers {
		for _, p := range l {
			if p == dir {
				return i
			}
			if match(p, dir) {
				wild = i
			}
		}
	}
	return wild
}

func TestLayers(t *testing.T) {
	for dir, p := range load(t) {
		l := layerOf(dir)
		if l < 0 {
			t.Errorf("package %s has no layer: give it one in internal/lint/lint.go", dir)
			continue
		}
		for _, im := range p.local {
			if li := layerOf(im); li <= l && !within(im, dir) {
				t.Errorf("%s (layer %d) may not import %s (layer %d): a package imports only lower layers", dir, l, im, li)
			}
		}
	}
}

// within reports whether both are in one folder tree of one layer entry that ends in "/...": such packages may import each other.
func within(a, b string) bool {
	for _, l := range layers {
		for _, p := range l {
			if strings.HasSuffix(p, "/...") && match(p, a) && match(p, b) {
				return true
			}
		}
	}
	return false
}

func TestForbiddenDependencies(t *testing.T) {
	pkgs := load(t)
	for dir := range pkgs {
		deps := closure(pkgs, dir)
		for _, f := range forbidden {
			if !match(f.from, dir) {
				continue
			}
			for d, via := range deps {
				if match(f.to, d) && d != dir {
					t.Errorf("%s depends on %s (by %s): %s", dir, d, via, f.why)
				}
			}
		}
	}
}

// closure maps every local package that dir depends on to the path that leads there.
func closure(pkgs map[string]*pkg, dir string) map[string]string {
	seen := map[string]string{}
	var walk func(d, via string)
	walk = func(d, via string) {
		p := pkgs[d]
		if p == nil {
			return
		}
		for _, im := range p.local {
			if _, ok := seen[im]; !ok {
				seen[im] = via + " → " + im
				walk(im, seen[im])
			}
		}
	}
	walk(dir, dir)
	return seen
}

func TestPurity(t *testing.T) {
	pkgs := load(t)
	for _, dir := range pure {
		p := pkgs[dir]
		if p == nil {
			continue // not built yet
		}
		for _, im := range p.imports {
			if slices.Contains(impureImports, im) {
				t.Errorf("pure package %s imports %q", dir, im)
			}
		}
		for name, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: pure package %s starts a goroutine", p.fset.Position(n.Pos()), dir)
				case *ast.ChanType:
					t.Errorf("%s: pure package %s uses a channel", p.fset.Position(n.Pos()), dir)
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && slices.Contains(impureCalls, x.Name+"."+n.Sel.Name) {
						t.Errorf("%s: pure package %s calls %s.%s", p.fset.Position(n.Pos()), dir, x.Name, n.Sel.Name)
					}
				}
				return true
			})
			_ = name
		}
	}
}

func TestPackageDocsAndNames(t *testing.T) {
	for dir, p := range load(t) {
		if !p.doc {
			t.Errorf("package %s has no doc comment", dir)
		}
		if slices.Contains(badNames, path.Base(dir)) {
			t.Errorf("package %s: its name says nothing; name it by what it is for", dir)
		}
	}
}

func TestExportedDocs(t *testing.T) {
	for dir, p := range load(t) {
		if p.name == "main" || path.Base(dir) == "ctlpb" {
			continue
		}
		for file, f := range p.files {
			if ast.IsGenerated(f) {
				continue
			}
			for _, d := range f.Decls {
				for _, name := range undocumented(d) {
					t.Errorf("%s: exported %s has no doc comment", file, name)
				}
			}
		}
	}
}

// undocumented returns the exported names of d that neither it nor its group documents.
func undocumented(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && exportedRecv(d) && !wellKnown(d) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || d.Doc != nil {
			return nil
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Doc == nil && s.Comment == nil && s.Name.IsExported() {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if s.Doc == nil && s.Comment == nil && n.IsExported() {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

func exportedRecv(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	ty := d.Recv.List[0].Type
	for {
		switch x := ty.(type) {
		case *ast.StarExpr:
			ty = x.X
		case *ast.IndexExpr:
			ty = x.X
		case *ast.IndexListExpr:
			ty = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// wellKnown methods are documented by the interface of the standard library they implement.
func wellKnown(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"String", "Error", "Unwrap", "Is", "As", "Len", "Less", "Swap", "Push", "Pop", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "ServeHTTP", "Write", "Read", "Close", "LogValue", "Set", "Type", "GoString"}, d.Name.Name)
}

// TestProjectSpeaksOfItself keeps machine paths and registry hosts out of the tree.
func TestProjectSpeaksOfItself(t *testing.T) {
	words := []string{"/work" + "/main", "/work" + "/shared", "/work" + "/.library", "proxy." + "golang.org", "repo1." + "maven.org", "repo." + "maven.apache.org"}
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "bin" || d.Name() == "out" {
				return fs.SkipDir
			}
			return nil
		}
		if d.Name() == ".git" { // of a second work tree: it names the first
			return nil
		}
		fi, err := d.Info()
		if err != nil || fi.Size() > 1<<20 {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, w := range words {
			if i := strings.Index(string(b), w); i >= 0 {
				t.Errorf("%s: names %q", p, w)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
