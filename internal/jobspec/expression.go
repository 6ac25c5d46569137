package jobspec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// expression is a compiled and checked expression on the columns of a stream. It is immutable; an evaluator runs it.
type expression struct {
	field   string // what the expression is for: "filter", or the column that it sets
	text    string
	program *vm.Program
	columns []string // the columns it reads
	typ     row.Type // of its value
	elem    row.Type // of its value's elements, where that is a list
	column  string   // not "" if the expression is just this column
}

// scope is what an expression may refer to.
type scope struct {
	schema row.Schema
	zone   *time.Location // nil: none was set
}

// compileExpr compiles src, reporting what is wrong to doc. field says what the expression is for. It returns nil on error.
func compileExpr(doc *strict.Document, sc scope, field string, src strict.Text) *expression {
	if !src.IsSet() {
		return nil // reported by the decoder
	}
	if strings.TrimSpace(src.Value) == "" {
		doc.Failf(src.Place(), "the expression of %s is empty", field)
		return nil
	}
	tree, err := parser.Parse(src.Value)
	if err != nil {
		failExpr(doc, sc, src, err)
		return nil
	}
	refs := references{sc: sc, doc: doc, src: src, known: functionNames(), callees: map[*ast.IdentifierNode]bool{}}
	ast.Walk(&tree.Node, &refs)
	refs.second = true
	ast.Walk(&tree.Node, &refs)
	if refs.failed {
		return nil
	}
	p, err := expr.Compile(src.Value, exprOptions(sc)...)
	if err != nil {
		failExpr(doc, sc, src, err)
		return nil
	}
	e := &expression{field: field, text: src.Value, program: p, columns: refs.columns}
	e.typ, e.elem = resultType(p)
	if id, ok := tree.Node.(*ast.IdentifierNode); ok {
		e.column = id.Value
		if i := sc.schema.Index(id.Value); i >= 0 {
			e.typ = sc.schema.Cols[i].Type
		}
	}
	return e
}

// wantType reports that an expression is of the wrong type. A value of type any may be right.
func (e *expression) wantType(doc *strict.Document, src strict.Text, want ...row.Type) bool {
	if e == nil {
		return false
	}
	if e.typ == row.AnyType || slices.Contains(want, e.typ) {
		return true
	}
	doc.Failf(src.Place(), "%s needs %s, but %s is %s", e.field, joinTypes(want), src.Value, article(e.typ))
	return false
}

// article is the type with its article.
func article(t row.Type) string {
	if strings.IndexByte("aeiou", t[0]) >= 0 {
		return "an " + string(t)
	}
	return "a " + string(t)
}

func joinTypes(ts []row.Type) string {
	s := make([]string, len(ts))
	for i, t := range ts {
		s[i] = article(t)
	}
	return strings.Join(s, " or ")
}

// exprOptions are the options of a compilation: the columns, their types, and our functions.
func exprOptions(sc scope) []expr.Option {
	env := types.Map{}
	for _, c := range sc.schema.Cols {
		env[c.Name] = columnType(c.Type)
	}
	if sc.schema.Rest {
		env[types.Extra] = types.Any
	}
	zone := sc.zone
	if zone == nil {
		zone = time.UTC
	}
	opts := []expr.Option{expr.Env(env), expr.Timezone(zone.String()), expr.DisableBuiltin("now"), expr.DisableBuiltin("string")}
	return append(opts, functions(sc)...)
}

// columnType is the type that the checker sees. A column may be null, which pointers stand for:
// comparing with null is then allowed, and a type is still known.
func columnType(t row.Type) types.Type {
	switch t {
	case row.StringType, row.BytesType:
		return types.TypeOf((*string)(nil))
	case row.IntType:
		return types.TypeOf((*int)(nil))
	case row.FloatType:
		return types.TypeOf((*float64)(nil))
	case row.BoolType:
		return types.TypeOf((*bool)(nil))
	case row.TimeType:
		return types.TypeOf(time.Time{}) // a pointer has more methods, so that calls would find the wrong ones
	case row.ListType:
		return types.Array(types.Any)
	case row.ObjectType:
		return types.TypeOf(map[string]any(nil))
	}
	return types.Any
}

// resultType is the type of a program's value, and of its elements.
func resultType(p *vm.Program) (t, elem row.Type) {
	n := p.Node().Nature()
	if n.Nil {
		return row.AnyType, row.AnyType
	}
	if t = goType(n.Type); t == row.ListType {
		elem = row.AnyType
		if n.Ref != nil {
			elem = goType(n.Ref.Type)
		} else if k := n.Type.Kind(); k == reflect.Slice || k == reflect.Array {
			elem = goType(n.Type.Elem())
		}
	}
	return t, elem
}

// goType is the row type of values of a Go type.
func goType(t reflect.Type) row.Type {
	if t == nil {
		return row.AnyType
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return row.TimeType
	case reflect.TypeFor[time.Duration]():
		return row.StringType
	}
	switch t.Kind() {
	case reflect.Bool:
		return row.BoolType
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return row.IntType
	case reflect.Float32, reflect.Float64:
		return row.FloatType
	case reflect.String:
		return row.StringType
	case reflect.Slice, reflect.Array:
		return row.ListType
	case reflect.Map:
		return row.ObjectType
	}
	return row.AnyType
}

// failExpr reports an error of the parser or the checker at the place it is about.
func failExpr(doc *strict.Document, sc scope, src strict.Text, err error) {
	var fe *file.Error
	if !errors.As(err, &fe) {
		doc.Failf(src.Place(), "bad expression: %s", plainMessage(err.Error()))
		return
	}
	at, msg := src.PlaceAt(fe.From, max(fe.To-fe.From, 1)), plainMessage(fe.Message)
	if name, ok := strings.CutPrefix(msg, "unknown name "); ok {
		doc.Failf(at, "unknown column %q%s", name, strict.Suggest(name, sc.schema.Names()))
		return
	}
	if msg == `unexpected token Operator("=")` {
		msg = "use == to compare"
	}
	doc.Failf(at, "bad expression: %s", msg)
}

// references finds what an expression refers to, and reports what there isn't. It walks the tree twice: calls and local
// variables come first, then the names that are left are columns.
type references struct {
	doc   *strict.Document
	sc    scope
	src   strict.Text
	known []string // functions

	second  bool
	callees map[*ast.IdentifierNode]bool
	locals  []string
	columns []string
	failed  bool
}

// Visit implements ast.Visitor.
func (r *references) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if r.second {
			r.identifier(n)
		}
	case *ast.VariableDeclaratorNode:
		r.locals = append(r.locals, n.Name)
	case *ast.BuiltinNode:
		if n.Name == "now" && !r.second {
			r.failf(n, "there is no now(): a result must not depend on when a record is processed; use a time in the record")
		}
	case *ast.CallNode:
		if id, ok := n.Callee.(*ast.IdentifierNode); ok && !r.second {
			r.call(id, n.Arguments)
		}
	}
}

func (r *references) call(id *ast.IdentifierNode, args []ast.Node) {
	r.callees[id] = true
	if !slices.Contains(r.known, id.Value) {
		r.failf(id, "unknown function %q%s", id.Value, strict.Suggest(id.Value, r.known))
		return
	}
	r.pattern(id.Value, args)
}

func (r *references) identifier(n *ast.IdentifierNode) {
	switch {
	case n.Value == "$env":
		r.failf(n, "there is no $env: name the columns")
	case r.callees[n], slices.Contains(r.columns, n.Value), slices.Contains(r.locals, n.Value):
	default:
		r.columns = append(r.columns, n.Value)
	}
}

// pattern checks that the pattern of a function on patterns is a constant, and compiles.
func (r *references) pattern(name string, args []ast.Node) {
	if !slices.Contains(patternFunctions, name) || len(args) < 2 {
		return
	}
	s, ok := args[1].(*ast.StringNode)
	if !ok {
		r.failf(args[1], "the pattern of %s must be a constant", name)
		return
	}
	if _, err := pattern(s.Value); err != nil {
		r.failf(args[1], "bad pattern: %v", err)
	}
}

func (r *references) failf(n ast.Node, format string, args ...any) {
	r.failed = true
	l := n.Location()
	r.doc.Failf(r.src.PlaceAt(l.From, max(l.To-l.From, 1)), format, args...)
}

// plainMessage puts a message of the expression library into the words of this language.
func plainMessage(msg string) string { return plainWords.Replace(msg) }

var plainWords = strings.NewReplacer(
	"interface conversion: interface {} is nil, not ", "null where there must be a ",
	"interface conversion: interface {} is ", "a value of type ",
	"map[string]interface {}", "object", "[]interface {}", "list", "[]string", "list", "[]int", "list", "interface {}", "any",
	"<nil>", "null", "float64", "float", "int64", "int", "*string", "string", "*int", "int", "*float", "float", "*bool", "bool", "*time.Time", "time", "time.Time", "time",
	"reflect: call of reflect.Value.Len on zero Value", "null where there must be a list",
	"reflect: call of reflect.Value.Type on zero Value", "null where there must be a value",
)

// evaluator runs an expression on rows of one schema. It belongs to one goroutine.
type evaluator struct {
	e     *expression
	cols  []int    // ascending
	names []string // of cols
	rest  []string // columns that are fields of the rest
	width int      // of the schema, the rest included

	vm  vm.VM
	env map[string]any
}

// evaluator makes the runner of e on rows of the schema, which must have what e reads, or a rest.
func (e *expression) evaluator(s row.Schema) *evaluator {
	v := &evaluator{e: e, width: s.Width(), env: map[string]any{}}
	for i, c := range s.Cols {
		if slices.Contains(e.columns, c.Name) {
			v.cols, v.names = append(v.cols, i), append(v.names, c.Name)
		}
	}
	for _, name := range e.columns {
		if s.Index(name) < 0 && s.Rest {
			v.rest = append(v.rest, name)
		}
	}
	return v
}

// run evaluates the expression on r.
func (v *evaluator) run(r row.Row) (any, error) {
	s, next := string(r), 0
	for i, c := range v.cols {
		var val row.Value
		var ok bool
		for ; next <= c; next++ {
			if val, s, ok = row.Next(s); !ok {
				return nil, fmt.Errorf("malformed record %q", string(r))
			}
		}
		v.env[v.names[i]] = val.Any()
	}
	if len(v.rest) > 0 {
		rest := r.At(v.width - 1)
		for _, name := range v.rest {
			v.env[name] = rest.Field(name).Any()
		}
	}
	x, err := v.vm.Run(v.e.program, v.env)
	if err != nil {
		return nil, fmt.Errorf("%w%s", v.e.failed(err), v.given())
	}
	return x, nil
}

// given says what the columns were that the expression reads.
func (v *evaluator) given() string {
	var b strings.Builder
	for i, name := range v.e.columns {
		b.WriteString([]string{" (", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%s is %s", name, describe(v.env[name]))
	}
	if b.Len() > 0 {
		b.WriteByte(')')
	}
	return b.String()
}

// failed says which expression failed, in one line.
func (e *expression) failed(err error) error {
	msg := err.Error()
	var fe *file.Error
	if errors.As(err, &fe) {
		msg = fe.Message
	}
	return fmt.Errorf("cannot evaluate %s: %s: %s", e.field, e.text, plainMessage(msg))
}

// truth evaluates a condition; null is false.
func (v *evaluator) truth(r row.Row) (bool, error) {
	x, err := v.run(r)
	if err != nil || x == nil {
		return false, err
	}
	if ok, is := x.(bool); is {
		return ok, nil
	}
	return false, fmt.Errorf("cannot evaluate %s: %s is %s, not true or false", v.e.field, v.e.text, describe(x))
}

// describe prints a value for an error.
func describe(x any) string {
	b, err := row.AppendAny(nil, x)
	if err != nil {
		return fmt.Sprintf("a %T", x)
	}
	s := row.Peek(b).String()
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
