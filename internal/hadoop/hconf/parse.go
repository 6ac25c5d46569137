package hconf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// maxInclude bounds how deep files include each other; files that include themselves end there.
const maxInclude = 16

// entry is one <property> as written.
type entry struct {
	name, value string
	hasValue    bool
	final       bool
	file        string
}

// parser reads a file and those that it includes.
type parser struct {
	read    func(path string) ([]byte, error)
	dir     string // where included files are looked for, beside the folder of the file that includes them
	entries []entry
}

// parse appends the properties of data, which is file's content.
func (p *parser) parse(file string, data []byte, depth int) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	root, err := firstElement(d)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", file, err)
	}
	if root.Name.Local != "configuration" {
		return fmt.Errorf("cannot read %s: its top element is <%s>, not <configuration>", file, root.Name.Local)
	}
	if err := p.configuration(d, file, depth); err != nil {
		return err
	}
	for {
		t, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", file, err)
		}
		if e, ok := t.(xml.StartElement); ok {
			return fmt.Errorf("cannot read %s: element <%s> follows the end of <configuration>", file, e.Name.Local)
		}
	}
}

func firstElement(d *xml.Decoder) (xml.StartElement, error) {
	for {
		t, err := d.Token()
		if err == io.EOF {
			return xml.StartElement{}, errors.New("there is no <configuration> in it")
		}
		if err != nil {
			return xml.StartElement{}, err
		}
		if e, ok := t.(xml.StartElement); ok {
			return e, nil
		}
	}
}

// configuration reads up to the end of the element that was just begun: properties, includes and nested configurations.
func (p *parser) configuration(d *xml.Decoder, file string, depth int) error {
	for {
		t, err := d.Token()
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", file, err)
		}
		switch e := t.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			switch e.Name.Local {
			case "property":
				err = p.property(d, file, e)
			case "include":
				err = p.include(d, file, e, depth)
			case "configuration":
				// It nests no deeper than the decoder's stack of open elements, which the file's size bounds.
				if depth >= maxInclude {
					return fmt.Errorf("cannot read %s: more than %d levels of nested elements or includes", file, maxInclude)
				}
				depth++
				err = p.configuration(d, file, depth)
				depth--
			default:
				err = d.Skip()
				if err != nil {
					err = fmt.Errorf("cannot read %s: %w", file, err)
				}
			}
			if err != nil {
				return err
			}
		}
	}
}

// property reads one <property>. Its parts may be attributes or elements.
func (p *parser) property(d *xml.Decoder, file string, start xml.StartElement) error {
	n := entry{file: file}
	for _, a := range start.Attr {
		n.set(a.Name.Local, a.Value)
	}
	for {
		t, err := d.Token()
		if err != nil {
			return fmt.Errorf("cannot read %s%s: %w", file, n.where(), err)
		}
		switch e := t.(type) {
		case xml.EndElement:
			if n.name != "" {
				p.entries = append(p.entries, n)
			}
			return nil
		case xml.StartElement:
			text, err := textOf(d)
			if err != nil {
				return fmt.Errorf("cannot read %s%s: %w", file, n.where(), err)
			}
			n.set(e.Name.Local, text)
		}
	}
}

// textOf returns the text of the element just begun, without that of elements inside it.
func textOf(d *xml.Decoder) (string, error) {
	var b strings.Builder
	for {
		t, err := d.Token()
		if err != nil {
			return "", err
		}
		switch e := t.(type) {
		case xml.CharData:
			b.Write(e)
		case xml.StartElement:
			if err := d.Skip(); err != nil {
				return "", err
			}
		case xml.EndElement:
			return b.String(), nil
		}
	}
}

func (n *entry) where() string {
	if n.name == "" {
		return ""
	}
	return ", property " + n.name
}

func (n *entry) set(part, text string) {
	switch part {
	case "name":
		n.name = strings.TrimSpace(text)
	case "value":
		n.value, n.hasValue = text, text != ""
	case "final":
		n.final = text == "true"
	}
}

// include reads the file that an XInclude element names or, if there is none, its fallback.
func (p *parser) include(d *xml.Decoder, file string, start xml.StartElement, depth int) error {
	href := ""
	for _, a := range start.Attr {
		if a.Name.Local == "href" {
			href = strings.TrimSpace(a.Value)
		}
	}
	if depth >= maxInclude {
		return fmt.Errorf("cannot read %s: files include each other more than %d levels deep", file, maxInclude)
	}
	target, data, err := p.find(file, href)
	missing := err != nil
	if !missing {
		if err := p.parse(target, data, depth+1); err != nil {
			return fmt.Errorf("%w (included by %s)", err, file)
		}
	}
	fellBack := false
	for {
		t, terr := d.Token()
		if terr != nil {
			return fmt.Errorf("cannot read %s: %w", file, terr)
		}
		switch e := t.(type) {
		case xml.EndElement:
			if missing && !fellBack {
				return fmt.Errorf("cannot read %q, which %s includes: %w", href, file, err)
			}
			return nil
		case xml.StartElement:
			if e.Name.Local == "fallback" && missing {
				fellBack = true
				if err := p.configuration(d, file, depth+1); err != nil {
					return err
				}
			} else if err := d.Skip(); err != nil {
				return fmt.Errorf("cannot read %s: %w", file, err)
			}
		}
	}
}

// find looks for an included file: in the configuration folder, then relative to the file that includes it.
func (p *parser) find(from, href string) (string, []byte, error) {
	name := href
	if u, err := url.Parse(href); err == nil && u.Scheme != "" {
		if u.Scheme != "file" {
			return "", nil, fmt.Errorf("only files are read, not %s: URLs", u.Scheme)
		}
		name = u.Path
	}
	if name == "" {
		return "", nil, errors.New("it has no href")
	}
	if path.IsAbs(name) {
		data, err := p.read(name)
		return name, data, err
	}
	first := filepath.Join(p.dir, name)
	data, err := p.read(first)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return first, data, err
	}
	second := filepath.Join(filepath.Dir(from), name)
	data, err = p.read(second)
	return second, data, err
}
