package conf

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// AppendYAML appends the options of c that are not at their default, with their origins as comments:
// the conf.yaml of an application. Secrets are left out; see [Config.Secrets].
func (c *Config) AppendYAML(b []byte) []byte {
	for _, v := range c.Values() {
		if v.Layer == FromDefault || v.Option.Secret {
			continue
		}
		b = fmt.Appendf(b, "%s: %s # %s\n", v.Option.Name, quote(v.Text), strings.Map(printable, v.Origin()))
	}
	return b
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}

// quote is text as a YAML scalar that reads back as the same text.
func quote(text string) string {
	b, err := yaml.MarshalWithOptions(text, yaml.JSON())
	if err != nil { // a string has a JSON form, always
		panic(err)
	}
	return string(bytes.TrimSpace(b))
}

// Secrets returns the values of the options marked secret that are set, by name.
func (c *Config) Secrets() map[string]string {
	secrets := map[string]string{}
	for _, v := range c.Values() {
		if v.Option.Secret && v.Text != "" {
			secrets[v.Option.Name] = v.Text
		}
	}
	return secrets
}

// Restore reads what [Config.AppendYAML] wrote and the secrets that belong to it.
// file names the source in errors.
func Restore(r *Registry, file string, data []byte, secrets map[string]string) (*Config, error) {
	c := New(r)
	if err := c.SetYAML(file, data); err != nil {
		return nil, err
	}
	c.restoreOrigins(string(data))
	for name, text := range secrets {
		if err := c.Set(name, text, FromFile, "secrets"); err != nil {
			return nil, fmt.Errorf("cannot restore secrets: %w", err)
		}
	}
	return c, nil
}

// restoreOrigins takes the origins of values from the comments that [Config.AppendYAML] wrote.
func (c *Config) restoreOrigins(text string) {
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		v, ok := c.values[name]
		if !ok {
			continue
		}
		for _, layer := range []Layer{FromFile, FromEnvironment, FromFlag} {
			if i := strings.LastIndex(rest, " # "+layer.String()+" "); i >= 0 {
				v.Layer, v.Where = layer, rest[i+len(" # ")+len(layer.String())+1:]
				c.values[name] = v
				break
			}
		}
	}
}
