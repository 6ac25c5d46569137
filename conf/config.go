package conf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mask stands for a secret wherever values are shown.
const Mask = "********"

// Layer is where a value came from. A later layer wins over an earlier one.
type Layer uint8

// The layers of a configuration.
const (
	FromDefault Layer = iota
	FromFile
	FromEnvironment
	FromFlag
)

func (l Layer) String() string {
	return [...]string{"default", "file", "environment", "flag"}[l]
}

// Value is the value of one option and its origin.
type Value struct {
	Option Option
	Text   string // canonical; "" if unset
	Layer  Layer
	Where  string // file:line:column, variable or flag; "" for a default
}

// Shown is the value as people may see it.
func (v Value) Shown() string {
	if v.Option.Secret && v.Text != "" {
		return Mask
	}
	return v.Text
}

// Origin says in a few words where the value came from.
func (v Value) Origin() string {
	if v.Layer == FromDefault {
		return "default"
	}
	return v.Layer.String() + " " + v.Where
}

// Config is a resolved configuration: a value for every option of its registry.
// It must not be changed by [Config.Set] once it is in use by several goroutines.
type Config struct {
	registry *Registry
	values   map[string]Value // those not at their default
	warnings []string
}

// New returns a configuration with every option at its default.
func New(r *Registry) *Config { return &Config{registry: r, values: map[string]Value{}} }

// Registry returns the options that c has values for.
func (c *Config) Registry() *Registry { return c.registry }

// Set sets an option, unless a later layer has set it already.
func (c *Config) Set(name, text string, layer Layer, where string) error {
	o, ok := c.registry.Lookup(name)
	if !ok {
		return c.registry.unknown(name)
	}
	canonical, err := o.Canonical(text)
	if err != nil {
		return err
	}
	if old, ok := c.values[name]; ok && old.Layer > layer {
		return nil
	}
	c.values[name] = Value{Option: o, Text: canonical, Layer: layer, Where: where}
	return nil
}

// Warnings says what should be mended though it works.
func (c *Config) Warnings() []string { return c.warnings }

// Value returns the value of an option with its origin, and whether there is such an option.
func (c *Config) Value(name string) (Value, bool) {
	o, ok := c.registry.Lookup(name)
	if !ok {
		return Value{}, false
	}
	if v, ok := c.values[name]; ok {
		return v, true
	}
	return Value{Option: o, Text: o.Default, Layer: FromDefault}, true
}

// Values returns the value of every option, in the registry's order.
func (c *Config) Values() []Value {
	all := make([]Value, 0, len(c.registry.options))
	for _, o := range c.registry.options {
		if o.Any {
			all = append(all, c.of(o)...)
			continue
		}
		v, _ := c.Value(o.Name)
		all = append(all, v)
	}
	return all
}

// of returns what is set of a family, in the order of names.
func (c *Config) of(family Option) (set []Value) {
	for _, name := range slices.Sorted(maps.Keys(c.values)) {
		if v := c.values[name]; v.Option.Any && strings.HasPrefix(name, family.stem()) {
			set = append(set, v)
		}
	}
	return set
}

// Variables returns what is set of a family of options, such as env.NAME, by the names of variables.
func (c *Config) Variables(family string) map[string]string {
	set := map[string]string{}
	for _, v := range c.of(Option{Name: family}) {
		set[strings.TrimPrefix(v.Option.Name, v.Option.stem())] = v.Text
	}
	return set
}

// Option returns the text of an option, and whether it is set or has a default.
// It is what connectors see of the configuration.
func (c *Config) Option(name string) (string, bool) {
	v, ok := c.Value(name)
	return v.Text, ok && v.Text != ""
}

// IsSet reports whether an option has a value, its own or a default.
func (c *Config) IsSet(name string) bool { _, ok := c.Option(name); return ok }

// get is the text of an option of type t. To ask for one that is not declared so is a bug.
func (c *Config) get(name string, types ...Type) string {
	v, ok := c.Value(name)
	if !ok {
		panic("conf: option " + name + " is not declared")
	}
	for _, t := range types {
		if v.Option.Type == t {
			return v.Text
		}
	}
	panic(fmt.Sprintf("conf: option %s is a %s, not a %s", name, v.Option.Type, types[0]))
}

// Text returns the value of a String or Enum option.
func (c *Config) Text(name string) string { return c.get(name, String, Enum) }

// Bool returns the value of a Bool option; false if unset.
func (c *Config) Bool(name string) bool { return c.get(name, Bool) == "true" }

// Int returns the value of an Int option; 0 if unset.
func (c *Config) Int(name string) int {
	n, _ := strconv.Atoi(c.get(name, Int)) // canonical already
	return n
}

// Float returns the value of a Float option; 0 if unset.
func (c *Config) Float(name string) float64 {
	v, _ := strconv.ParseFloat(c.get(name, Float), 64) // canonical already
	return v
}

// Duration returns the value of a Duration option; 0 if unset.
func (c *Config) Duration(name string) time.Duration {
	d, _ := ParseDuration(c.get(name, Duration))
	return d
}

// Bytes returns the value of a Bytes option; 0 if unset.
func (c *Config) Bytes(name string) int64 {
	n, _ := ParseBytes(c.get(name, Bytes))
	return n
}

// List returns the value of a List option; nil if unset.
func (c *Config) List(name string) []string { return splitList(c.get(name, List)) }
