package jobspec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/builtin"

	"github.com/heddle-stream/heddle/internal/jobspec/row"
)

// function is a function of expressions that the library does not have, or has otherwise.
type function struct {
	name, doc string
	call      func(sc scope, args []any) (any, error)
	sig       any // new(func(…) …), for the checker
}

// ownFunctions are the functions of this package, in the order of the reference.
var ownFunctions = []function{
	{"words", "words(s): the list of the words of s, which white space parts", func(_ scope, a []any) (any, error) {
		s, err := text(a, 0)
		return strings.Fields(s), err
	}, new(func(string) []string)},
	{"find_all", "find_all(s, pattern): the list of all matches of a regular expression", func(_ scope, a []any) (any, error) {
		s, re, err := textAndPattern(a)
		if err != nil {
			return nil, err
		}
		if found := re.FindAllString(s, -1); found != nil {
			return found, nil
		}
		return []string{}, nil
	}, new(func(string, string) []string)},
	{"replace_all", "replace_all(s, pattern, by): s with each match of a regular expression replaced; $1 stands for the first group", func(_ scope, a []any) (any, error) {
		s, re, err := textAndPattern(a)
		if err != nil {
			return nil, err
		}
		by, err := text(a, 2)
		return re.ReplaceAllString(s, by), err
	}, new(func(string, string, string) string)},
	{"string", "string(x): x as text; null stays null", func(sc scope, a []any) (any, error) {
		if a[0] == nil {
			return nil, nil
		}
		b, err := row.AppendAny(nil, a[0])
		if err != nil {
			return nil, err
		}
		v, _, _ := row.Next(string(b))
		return v.Text(sc.location()), nil
	}, new(func(any) string)},
	{"parse_time", "parse_time(s): the time of a string such as 2026-03-01T12:00:00Z; without a zone, in the job's timezone", func(sc scope, a []any) (any, error) {
		s, err := text(a, 0)
		if err != nil {
			return nil, err
		}
		return row.ParseTime(s, sc.zone)
	}, new(func(string) time.Time)},
	{"from_millis", "from_millis(n): the time n milliseconds after the Unix epoch", func(_ scope, a []any) (any, error) {
		n, ok := a[0].(int)
		if !ok {
			return nil, fmt.Errorf("%s where there must be an int", nameOf(a[0]))
		}
		return time.UnixMilli(int64(n)).UTC(), nil
	}, new(func(int) time.Time)},
	{"millis", "millis(t): milliseconds from the Unix epoch to the time t", func(_ scope, a []any) (any, error) {
		t, ok := a[0].(time.Time)
		if !ok {
			return nil, fmt.Errorf("%s where there must be a time", nameOf(a[0]))
		}
		return int(t.UnixMilli()), nil
	}, new(func(time.Time) int)},
}

// patternFunctions take a pattern as second argument, which must be constant.
var patternFunctions = []string{"find_all", "replace_all"}

// libraryFunctions are the functions of the expression library that are there.
var libraryFunctions = func() (names []string) {
	for _, f := range builtin.Builtins {
		if f.Name != "now" && f.Name != "string" {
			names = append(names, f.Name)
		}
	}
	return names
}()

func (sc scope) location() *time.Location {
	if sc.zone == nil {
		return time.UTC
	}
	return sc.zone
}

// functions are ownFunctions as options of a compilation.
func functions(sc scope) []expr.Option {
	opts := make([]expr.Option, len(ownFunctions))
	for i, f := range ownFunctions {
		opts[i] = expr.Function(f.name, func(args ...any) (any, error) { return f.call(sc, args) }, f.sig)
	}
	return opts
}

// functionNames are the names of functions that are called like any other.
func functionNames() []string {
	names := slices.Clone(libraryFunctions)
	for _, f := range ownFunctions {
		names = append(names, f.name)
	}
	return names
}

// text returns argument i, which must be a string.
func text(args []any, i int) (string, error) {
	if s, ok := args[i].(string); ok {
		return s, nil
	}
	return "", fmt.Errorf("%s where there must be a string", nameOf(args[i]))
}

func nameOf(x any) string {
	if x == nil {
		return "null"
	}
	return fmt.Sprintf("a value of type %T", x)
}

func textAndPattern(args []any) (string, *regexp.Regexp, error) {
	s, err := text(args, 0)
	if err != nil {
		return "", nil, err
	}
	p, err := text(args, 1)
	if err != nil {
		return "", nil, err
	}
	re, err := pattern(p)
	return s, re, err
}

// patterns are the compiled patterns; they are constants of job files, so they are few.
var patterns sync.Map

func pattern(s string) (*regexp.Regexp, error) {
	if re, ok := patterns.Load(s); ok {
		return re.(*regexp.Regexp), nil
	}
	re, err := regexp.Compile(s)
	if err == nil {
		patterns.Store(s, re)
	}
	return re, err
}
