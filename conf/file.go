package conf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// SetYAML sets every option that a configuration file names. Names may be dotted
// ("exchange.tls: true"), nested ("exchange: {tls: true}") or both. All that is wrong with the file is
// reported together, each with its line and column.
func (c *Config) SetYAML(file string, data []byte) error {
	doc, err := parser.ParseBytes(data, 0)
	if err != nil {
		return syntaxError(file, err)
	}
	if len(doc.Docs) > 1 && doc.Docs[1].Body != nil {
		return at(file, doc.Docs[1].Body, errors.New("a configuration file is a single document; remove the line ---"))
	}
	f := &fileSetter{config: c, file: file, seen: map[string]string{}}
	for _, d := range doc.Docs {
		if d.Body != nil {
			f.mapping("", d.Body)
		}
	}
	return errors.Join(f.errs...)
}

// fileSetter walks the nodes of one file.
type fileSetter struct {
	config *Config
	file   string
	seen   map[string]string // option → place
	errs   []error
}

func (f *fileSetter) fail(n ast.Node, err error) { f.errs = append(f.errs, at(f.file, n, err)) }

func (f *fileSetter) mapping(prefix string, n ast.Node) {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			f.entry(prefix, v)
		}
	case *ast.MappingValueNode:
		f.entry(prefix, n)
	case *ast.NullNode, *ast.CommentGroupNode:
	default:
		f.fail(n, errors.New("a configuration file is a mapping of option names to values, such as \"agents: 2\""))
	}
}

func (f *fileSetter) entry(prefix string, v *ast.MappingValueNode) {
	key, ok := v.Key.(ast.ScalarNode)
	if !ok || v.Key.IsMergeKey() {
		f.fail(v.Key, errors.New("the name of an option is plain text"))
		return
	}
	name := prefix + key.GetToken().Value
	text, isValue, err := scalar(v.Value)
	_, isOption := f.config.registry.Lookup(name)
	switch {
	case err != nil:
		f.fail(v.Value, fmt.Errorf("option %s: %w", name, err))
	case !isValue && isOption && !f.config.registry.isPrefix(name):
		o, _ := f.config.registry.Lookup(name)
		f.fail(v.Value, fmt.Errorf("option %s has a mapping, but wants %s", name, o.Form()))
	case !isValue:
		f.mapping(name+".", v.Value)
	default:
		f.set(name, text, v.Key)
	}
}

func (f *fileSetter) set(name, text string, key ast.Node) {
	place := position(f.file, key)
	if before, ok := f.seen[name]; ok {
		f.fail(key, fmt.Errorf("option %s is set already at %s", name, before))
		return
	}
	f.seen[name] = place
	if err := f.config.Set(name, text, FromFile, place); err != nil {
		f.fail(key, err)
	}
}

// scalar returns the text of a value, or false for a mapping.
func scalar(n ast.Node) (text string, ok bool, err error) {
	switch n := n.(type) {
	case *ast.NullNode:
		return "", true, nil
	case *ast.StringNode:
		return n.Value, true, nil
	case *ast.LiteralNode:
		return strings.TrimSuffix(n.Value.Value, "\n"), true, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true, nil
	case *ast.SequenceNode:
		items := make([]string, len(n.Values))
		for i, item := range n.Values {
			text, ok, err := scalar(item)
			if err != nil || !ok || strings.Contains(text, ",") {
				return "", false, errors.New("an item of a list is plain text without a comma")
			}
			items[i] = text
		}
		return strings.Join(items, ","), true, nil
	case *ast.MappingNode, *ast.MappingValueNode:
		return "", false, nil
	}
	return "", false, fmt.Errorf("%s is not supported in a configuration file", strings.ToLower(n.Type().String()))
}

// isPrefix reports whether names of options begin with name and a dot.
func (r *Registry) isPrefix(name string) bool {
	for _, o := range r.options {
		if strings.HasPrefix(o.Name, name+".") {
			return true
		}
	}
	return false
}

func position(file string, n ast.Node) string {
	p := n.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Column)
}

func at(file string, n ast.Node, err error) error {
	return fmt.Errorf("%s: %w", position(file, n), err)
}

// syntaxError puts the file's name before the position that the parser found.
func syntaxError(file string, err error) error {
	if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil {
		p := e.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", file, p.Line, p.Column, e.GetMessage())
	}
	return fmt.Errorf("%s: %w", file, err)
}
