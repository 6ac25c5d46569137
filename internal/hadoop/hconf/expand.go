package hconf

import (
	"errors"
	"strings"
)

// maxSubstitutions is Hadoop's own bound.
const maxSubstitutions = 20

// Lookup returns a key's value, untrimmed, with its variables replaced as Hadoop does: ${env.NAME}, ${env.NAME-default},
// ${env.NAME:-default}, the usual Java properties, and other keys. From the first variable that has no value on, the text stays as it is.
func (c *Conf) Lookup(key string) (string, bool, error) {
	if now, ok := deprecated[key]; ok {
		key = now
	}
	p, ok := c.props[key]
	if !ok {
		return "", false, nil
	}
	v, err := c.expand(key, p.raw)
	if err != nil {
		return "", false, c.bad(key, p.raw, err)
	}
	return v, true, nil
}

func (c *Conf) expand(key, text string) (string, error) {
	orig := text
	seen := map[string]bool{}
	for range maxSubstitutions {
		from, to, name := variable(text)
		if name == "" {
			return text, nil
		}
		if seen[text] {
			return orig, nil
		}
		seen[text] = true
		v, ok := c.variable(name)
		if !ok {
			return text, nil
		}
		if name == key || strings.Contains(v, "${"+name+"}") {
			return orig, nil // it means itself
		}
		text = text[:from] + v + text[to:]
		if len(text) > 1<<20 {
			return "", errors.New("its variables make it longer than 1 MiB")
		}
	}
	if _, _, name := variable(text); name == "" {
		return text, nil
	}
	return "", errors.New("more than 20 variables follow from each other: does one contain itself?")
}

// variable finds the first innermost ${name}: no name contains '}', '$' or a space.
func variable(s string) (from, to int, name string) {
	for i := 0; i+2 < len(s); i++ {
		if s[i] != '$' || s[i+1] != '{' {
			continue
		}
		for j := i + 2; j < len(s); j++ {
			switch s[j] {
			case '}':
				if j > i+2 {
					return i, j + 1, s[i+2 : j]
				}
			case '$', ' ':
			default:
				continue
			}
			break
		}
	}
	return 0, 0, ""
}

func (c *Conf) variable(name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, "env."); ok {
		return c.environment(rest)
	}
	switch name {
	case "user.name":
		if c.user != "" {
			return c.user, true
		}
		return c.env("USER")
	case "user.home":
		return c.env("HOME")
	case "java.io.tmpdir":
		return "/tmp", true
	}
	if now, ok := deprecated[name]; ok {
		name = now
	}
	p, ok := c.props[name]
	return p.raw, ok
}

func (c *Conf) environment(s string) (string, bool) {
	i := strings.IndexByte(s, '-')
	if i < 0 {
		return c.env(s)
	}
	name, def := s[:i], s[i+1:]
	name, orEmpty := strings.CutSuffix(name, ":")
	v, ok := c.env(name)
	if !ok || (orEmpty && v == "") {
		return def, true
	}
	return v, true
}
