package jceks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// reader takes things off the front of bytes. After the first that is not there, everything is empty.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)) {
		r.err = io.ErrUnexpectedEOF
	}
	if r.err != nil {
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) text() string { return string(r.take(int(r.u16()))) }

// Marks of Java's serialization (Java Object Serialization Specification, 6.4).
const (
	markNull      = 0x70
	markReference = 0x71
	markClass     = 0x72
	markObject    = 0x73
	markString    = 0x74
	markArray     = 0x75
	markEnd       = 0x78

	firstHandle  = 0x7e0000
	serializable = 0x02 // a class's flags, without data of its own making
	maxClasses   = 8    // above each other
)

// class describes one, from the most derived on.
type class struct {
	name   string
	fields []field
	super  *class
}

type field struct {
	kind byte // B, I, …; L an object, [ an array
	name string
}

// stream is one serialized object, whose parts may refer to earlier ones.
type stream struct {
	*reader
	handles []any // *class, string, []byte or nil
}

// readObject reads an object whose fields are strings, byte arrays and numbers, and returns the former two by name.
func readObject(r *reader) (map[string][]byte, error) {
	if r.u32() != 0xaced0005 {
		return nil, errors.New("it is no serialized Java object")
	}
	s := &stream{reader: r}
	if m := s.u8(); m != markObject {
		return nil, s.unexpected(m)
	}
	c, err := s.class(0)
	if err != nil {
		return nil, err
	}
	s.handles = append(s.handles, nil)
	var chain []*class // the topmost first
	for ; c != nil; c = c.super {
		chain = append([]*class{c}, chain...)
	}
	out := map[string][]byte{}
	for _, c := range chain {
		for _, f := range c.fields {
			if err := s.value(f, out); err != nil {
				return nil, err
			}
		}
	}
	return out, s.err
}

func (s *stream) unexpected(mark byte) error {
	if s.err != nil {
		return s.err
	}
	return fmt.Errorf("a serialized Java object has %#x where it makes no sense", mark)
}

// sizes of numbers by their kind.
var sizes = map[byte]int{'B': 1, 'C': 2, 'D': 8, 'F': 4, 'I': 4, 'J': 8, 'S': 2, 'Z': 1}

func (s *stream) value(f field, out map[string][]byte) error {
	if n, ok := sizes[f.kind]; ok {
		s.take(n)
		return s.err
	}
	v, err := s.content()
	if err == nil && v != nil {
		out[f.name] = v
	}
	return err
}

// content reads a string, an array of bytes, a reference to one, or nothing.
func (s *stream) content() ([]byte, error) {
	switch m := s.u8(); m {
	case markNull:
		return nil, s.err
	case markReference:
		switch v := s.referred().(type) {
		case string:
			return []byte(v), nil
		case []byte:
			return v, nil
		}
		return nil, s.unexpected(m)
	case markString:
		v := s.text()
		s.handles = append(s.handles, v)
		return []byte(v), s.err
	case markArray:
		c, err := s.class(0)
		if err != nil {
			return nil, err
		}
		if c == nil || c.name != "[B" {
			return nil, errors.New("a serialized Java object has an array that is not of bytes")
		}
		at := len(s.handles)
		s.handles = append(s.handles, nil)
		v := s.take(int(s.u32()))
		s.handles[at] = v
		return v, s.err
	default:
		return nil, s.unexpected(m)
	}
}

func (s *stream) referred() any {
	i := int64(s.u32()) - firstHandle
	if s.err != nil || i < 0 || i >= int64(len(s.handles)) {
		return nil
	}
	return s.handles[i]
}

// class reads a class's description and those above it; nil: there is none.
func (s *stream) class(depth int) (*class, error) {
	switch m := s.u8(); m {
	case markNull:
		return nil, s.err
	case markReference:
		if c, ok := s.referred().(*class); ok {
			return c, nil
		}
		return nil, s.unexpected(m)
	case markClass:
	default:
		return nil, s.unexpected(m)
	}
	if depth == maxClasses {
		return nil, errors.New("a serialized Java object has too many classes")
	}
	c := &class{name: s.text()}
	s.take(8) // version
	s.handles = append(s.handles, c)
	if flags := s.u8(); flags != serializable {
		return nil, s.unexpected(flags)
	}
	for n := s.u16(); n > 0 && s.err == nil; n-- {
		f := field{kind: s.u8(), name: s.text()}
		switch f.kind {
		case 'L', '[':
			if _, err := s.content(); err != nil { // its class's name
				return nil, err
			}
		default:
			if sizes[f.kind] == 0 {
				return nil, s.unexpected(f.kind)
			}
		}
		c.fields = append(c.fields, f)
	}
	if m := s.u8(); m != markEnd {
		return nil, s.unexpected(m)
	}
	var err error
	c.super, err = s.class(depth + 1)
	return c, err
}
