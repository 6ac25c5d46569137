package heddle

import (
	"fmt"
	"slices"
	"sync"
)

// OptionType is the form of an option's value.
type OptionType string

// The types of options.
const (
	StringOption   OptionType = "string"
	BoolOption     OptionType = "bool"
	IntOption      OptionType = "int"
	DurationOption OptionType = "duration"
	BytesOption    OptionType = "bytes"
	ListOption     OptionType = "list"
)

// Option is a setting that a connector declares. It is then set like every other: in the configuration file, by
// the environment variable HEDDLE_NAME, or by --name; a connector reads it with Env.Option.
type Option struct {
	Name    string     // lower-case words joined by dots and hyphens: "pulsar.service-url"
	Type    OptionType // "" is a string
	Default string     // "" for none
	Unit    string     // what a number counts
	Doc     string     // one or more sentences, the first a summary
	Secret  bool       // never shown, never on a command line
}

var declared struct {
	mu      sync.Mutex
	options []Option // guarded by mu
}

// DeclareOption makes an option of a connector known. It is called from init. A name declared twice is a mistake of the program's and panics.
func DeclareOption(o Option) {
	declared.mu.Lock()
	defer declared.mu.Unlock()
	if o.Name == "" || slices.ContainsFunc(declared.options, func(d Option) bool { return d.Name == o.Name }) {
		panic(fmt.Sprintf("heddle: option %q has no name or is declared twice", o.Name))
	}
	if o.Type == "" {
		o.Type = StringOption
	}
	declared.options = append(declared.options, o)
}

// DeclaredOptions returns the options declared so far, by name. It is for the engine.
func DeclaredOptions() []Option {
	declared.mu.Lock()
	defer declared.mu.Unlock()
	return slices.SortedFunc(slices.Values(declared.options), func(a, b Option) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}
