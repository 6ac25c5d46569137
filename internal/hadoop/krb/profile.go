package krb

import (
	"fmt"
	"path/filepath"
	"strings"
)

// entry is a relation of a krb5.conf, or a section.
type entry struct {
	name  string
	value string  // of a relation
	kids  []entry // of a section or a braced value
}

// files is how a profile gets at what it includes.
type files struct {
	read func(name string) ([]byte, error)
	list func(dir string) ([]string, error) // names, sorted
}

// profile is what krb5.conf and the files it includes say. The first value of a name counts.
type profile struct {
	top   []entry  // sections; the same may occur again
	notes []string // what was passed over, for diagnosis
}

const (
	maxIncludes = 16
	maxDepth    = 32
)

// parse adds a file. Lines that make no sense are noted and passed over, since libkrb5's own releases differ in what they know.
func (p *profile) parse(name string, data []byte, fs files, level int) {
	var open []*entry // the section and the braces that are open
	var late []entry  // sections of files included within one
	section := -1
	note := func(n int, format string, args ...any) {
		if len(p.notes) < 100 {
			p.notes = append(p.notes, fmt.Sprintf("%s:%d: ", name, n)+fmt.Sprintf(format, args...))
		}
	}
	for i, line := range strings.Split(string(data), "\n") {
		n := i + 1
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if word, rest, ok := directive(line); ok {
			sub := profile{}
			sub.include(word, rest, fs, level, func(format string, args ...any) { note(n, format, args...) })
			p.notes = append(p.notes, sub.notes...)
			if section < 0 {
				p.top = append(p.top, sub.top...)
			} else {
				late = append(late, sub.top...) // the open section goes on after it
			}
			continue
		}
		switch {
		case line[0] == '[':
			end := strings.IndexByte(line, ']')
			if end < 0 {
				note(n, "section without ]")
				continue
			}
			p.top = append(p.top, entry{name: strings.TrimSpace(line[1:end])})
			section = len(p.top) - 1
			open = []*entry{&p.top[section]}
		case strings.HasPrefix(line, "}"):
			if len(open) < 2 {
				note(n, "} without {")
				continue
			}
			open = open[:len(open)-1]
		case section < 0:
			note(n, "outside of any section")
		default:
			key, value, ok := strings.Cut(line, "=")
			key, value = strings.TrimSuffix(strings.TrimSpace(key), "*"), strings.TrimSpace(value)
			if !ok || key == "" {
				note(n, "neither a section nor name = value")
				continue
			}
			at := open[len(open)-1]
			if value == "{" {
				if len(open) >= maxDepth {
					note(n, "too many { within each other")
					continue
				}
				at.kids = append(at.kids, entry{name: key})
				open = append(open, &at.kids[len(at.kids)-1])
				continue
			}
			at.kids = append(at.kids, entry{name: key, value: unquote(value)})
		}
	}
	p.top = append(p.top, late...)
}

// directive recognises include, includedir and module lines.
func directive(line string) (word, rest string, ok bool) {
	word, rest, ok = strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	if !ok || strings.HasPrefix(strings.TrimSpace(rest), "=") {
		return "", "", false
	}
	switch word {
	case "include", "includedir", "module":
		return word, strings.TrimSpace(rest), true
	}
	return "", "", false
}

func (p *profile) include(word, path string, fs files, level int, note func(string, ...any)) {
	if level >= maxIncludes {
		note("too many files include each other")
		return
	}
	switch word {
	case "module":
		note("module %s: plug-ins of libkrb5 cannot be used", path)
	case "include":
		data, err := fs.read(path)
		if err != nil {
			note("%v", err)
			return
		}
		p.parse(path, data, fs, level+1)
	case "includedir":
		names, err := fs.list(path)
		if err != nil {
			note("%v", err)
			return
		}
		for _, n := range names {
			if !includable(n) {
				continue
			}
			f := filepath.Join(path, n)
			data, err := fs.read(f)
			if err != nil {
				note("%v", err)
				continue
			}
			p.parse(f, data, fs, level+1)
		}
	}
}

// includable reports whether includedir takes a file of this name: letters, digits, - and _ only, or ending in .conf.
func includable(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	if strings.HasSuffix(name, ".conf") {
		return true
	}
	for _, c := range name {
		if !(c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
			return false
		}
	}
	return name != ""
}

func unquote(v string) string {
	if len(v) < 2 || v[0] != '"' {
		return v
	}
	var b strings.Builder
	for i := 1; i < len(v); i++ {
		switch {
		case v[i] == '"':
			return b.String()
		case v[i] == '\\' && i+1 < len(v):
			i++
			switch v[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(v[i])
			}
		default:
			b.WriteByte(v[i])
		}
	}
	return b.String()
}

// all returns the entries at a path of names, in order.
func (p *profile) all(path ...string) []entry {
	at := p.top
	for i, name := range path {
		var next []entry
		for _, e := range at {
			if e.name != name {
				continue
			}
			if i == len(path)-1 {
				next = append(next, e)
			} else {
				next = append(next, e.kids...)
			}
		}
		at = next
	}
	return at
}

// get returns the first value at a path, "" if there is none.
func (p *profile) get(path ...string) string {
	for _, e := range p.all(path...) {
		if e.kids == nil {
			return e.value
		}
	}
	return ""
}
