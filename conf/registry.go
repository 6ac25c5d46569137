package conf

import (
	"fmt"
	"regexp"
	"strings"
)

// Registry is a set of options. It does not change once it is in use.
type Registry struct {
	options []Option
	index   map[string]int // name → index in options
	envs    map[string]int // environment variable → index in options
}

// NewRegistry returns a registry of the given options, in that order.
// A name declared twice, or a default that its own type refuses, is an error.
func NewRegistry(options ...Option) (*Registry, error) {
	r := &Registry{index: map[string]int{}, envs: map[string]int{}}
	for _, o := range options {
		if err := r.add(o); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Registry) add(o Option) error {
	if o.Any { // found by Lookup: it has no name of its own
		r.options = append(r.options, o)
		return nil
	}
	if err := checkName(o.Name); err != nil {
		return err
	}
	if _, ok := r.index[o.Name]; ok {
		return fmt.Errorf("cannot declare option %s: it is declared already", o.Name)
	}
	if i, ok := r.envs[o.Env()]; ok {
		return fmt.Errorf("cannot declare option %s: its environment variable %s is that of %s", o.Name, o.Env(), r.options[i].Name)
	}
	def, err := o.Canonical(o.Default)
	if err != nil {
		return fmt.Errorf("cannot declare %w", err)
	}
	o.Default = def
	r.index[o.Name], r.envs[o.Env()] = len(r.options), len(r.options)
	r.options = append(r.options, o)
	return nil
}

func checkName(name string) error {
	bad := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")
	if name == "" || bad != "" || strings.Trim(name, ".-") != name || strings.Contains(name, "..") {
		return fmt.Errorf("cannot declare option %q: a name is of lower-case words joined by dots and hyphens", name)
	}
	return nil
}

// Options returns all options in the order of their declaration.
func (r *Registry) Options() []Option { return r.options }

// Lookup returns the option of that name.
func (r *Registry) Lookup(name string) (Option, bool) {
	if i, ok := r.index[name]; ok {
		return r.options[i], true
	}
	o, word, ok := r.family(name)
	if o.Name = name; !ok || !variable.MatchString(word) || strings.HasPrefix(word, "HEDDLE_") {
		return Option{}, false
	}
	return o, true
}

// variable is what names of environment variables are like.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// family returns the family that a name is of, if any, and what stands for its last word.
func (r *Registry) family(name string) (o Option, word string, ok bool) {
	for _, o := range r.options {
		if word, ok := strings.CutPrefix(name, o.stem()); o.Any && ok {
			return o, word, true
		}
	}
	return Option{}, "", false
}

// stem is the name of a family without its last word.
func (o Option) stem() string { return o.Name[:strings.LastIndexByte(o.Name, '.')+1] }

// unknown is the error for a name that is not declared.
func (r *Registry) unknown(name string) error {
	if o, word, ok := r.family(name); ok {
		return fmt.Errorf("option %s: %q is not the name of an environment variable that is free to be set (option %s)", name, word, o.Name)
	}
	names := make([]string, len(r.options))
	for i, o := range r.options {
		names[i] = o.Name
	}
	return &UnknownError{Name: name, Nearest: Nearest(name, names)}
}

// UnknownError is a name that no option has.
type UnknownError struct {
	Name    string
	Nearest string // the declared name that is most like it, "" if none is
}

func (e *UnknownError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("unknown option %q; `heddle config` lists all", e.Name)
	}
	return fmt.Sprintf("unknown option %q; did you mean %q?", e.Name, e.Nearest)
}

// Nearest returns the candidate most like name, or "" if none is near: within two edits,
// or a third of name's length if that is more.
func Nearest(name string, candidates []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, c := range candidates {
		if d := distance(name, c, least); d < least {
			best, least = c, d
		}
	}
	if best != "" {
		return best
	}
	for _, c := range candidates { // the last word alone: "segment-bytes" for "exchange.segment-bytes"
		if strings.HasSuffix(c, "."+name) {
			return c
		}
	}
	return ""
}

// distance is the number of edits (insert, delete, replace, swap of neighbours) from a to b, or limit if it is no less.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return min(last[len(b)], limit)
}
