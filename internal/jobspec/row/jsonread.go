package row

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// jsonReader reads one JSON text into encoded values.
type jsonReader struct {
	in  []byte
	pos int
}

// AppendFromJSON appends the encoding of the JSON text in; it accepts what encoding/json does.
func AppendFromJSON(b, in []byte) ([]byte, error) {
	p := jsonReader{in: in}
	b, err := p.value(b, 0)
	if err == nil {
		err = p.end()
	}
	return b, err
}

func (p *jsonReader) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %s", p.pos, fmt.Sprintf(format, args...))
}

// found says what is at the reader's position.
func (p *jsonReader) found() string {
	if p.pos >= len(p.in) {
		return "the end"
	}
	r, _ := utf8.DecodeRune(p.in[p.pos:])
	return strconv.QuoteRune(r)
}

// space skips white space and returns the next byte, 0 at the end.
func (p *jsonReader) space() byte {
	for p.pos < len(p.in) {
		switch c := p.in[p.pos]; c {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return c
		}
	}
	return 0
}

// end reports anything but white space that is left.
func (p *jsonReader) end() error {
	if p.space(); p.pos < len(p.in) {
		return p.errorf("%s after the JSON value", p.found())
	}
	return nil
}

func (p *jsonReader) value(b []byte, depth int) ([]byte, error) {
	switch c := p.space(); {
	case c == '"':
		p.pos++
		return p.str(append(b, byte(String)))
	case c == '{':
		return p.nested(b, Object, depth)
	case c == '[':
		return p.nested(b, List, depth)
	case c == '-' || c >= '0' && c <= '9':
		return p.number(b)
	case c == 't':
		return p.word(b, "true", True)
	case c == 'f':
		return p.word(b, "false", False)
	case c == 'n':
		return p.word(b, "null", Null)
	}
	return nil, p.errorf("no JSON value begins with %s", p.found())
}

func (p *jsonReader) word(b []byte, word string, k Kind) ([]byte, error) {
	if len(p.in)-p.pos < len(word) || string(p.in[p.pos:p.pos+len(word)]) != word {
		return nil, p.errorf("want %s", word)
	}
	p.pos += len(word)
	return append(b, byte(k)), nil
}

// nested reads a list or an object; its length is put in front of its elements when they are known.
func (p *jsonReader) nested(b []byte, k Kind, depth int) ([]byte, error) {
	if depth >= maxDepth {
		return nil, p.errorf("nested deeper than %d", maxDepth)
	}
	closing := byte(']')
	if k == Object {
		closing = '}'
	}
	p.pos++
	b = append(b, byte(k))
	start := len(b)
	if p.space() == closing {
		p.pos++
		return append(b, 0), nil
	}
	for {
		var err error
		if k == Object {
			if b, err = p.name(b); err != nil {
				return nil, err
			}
		}
		if b, err = p.value(b, depth+1); err != nil {
			return nil, err
		}
		switch c := p.space(); c {
		case ',':
			p.pos++
		case closing:
			p.pos++
			return insertLength(b, start), nil
		default:
			return nil, p.errorf("want ',' or '%c', not %s", closing, p.found())
		}
	}
}

// name reads a field's name and the colon.
func (p *jsonReader) name(b []byte) ([]byte, error) {
	if p.space() != '"' {
		return nil, p.errorf("want a field's name in quotes, not %s", p.found())
	}
	p.pos++
	b, err := p.str(b)
	if err != nil {
		return nil, err
	}
	if p.space() != ':' {
		return nil, p.errorf("want ':' after a field's name, not %s", p.found())
	}
	p.pos++
	return b, nil
}

// insertLength puts the length of b[start:] before it.
func insertLength(b []byte, start int) []byte {
	var l [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(l[:], uint64(len(b)-start))
	b = append(b, l[:n]...)
	copy(b[start+n:], b[start:len(b)-n])
	copy(b[start:], l[:n])
	return b
}

// number reads a number: an Int where it is written as an integer that fits, a Number where a float would lose digits of an integer.
func (p *jsonReader) number(b []byte) ([]byte, error) {
	start, integral := p.pos, true
	if p.in[p.pos] == '-' {
		p.pos++
	}
	if p.pos < len(p.in) && p.in[p.pos] == '0' {
		p.pos++
	} else if !p.digits() {
		return nil, p.errorf("want a digit, not %s", p.found())
	}
	if p.pos < len(p.in) && p.in[p.pos] == '.' {
		p.pos++
		if integral = false; !p.digits() {
			return nil, p.errorf("want a digit after the point, not %s", p.found())
		}
	}
	if p.pos < len(p.in) && (p.in[p.pos] == 'e' || p.in[p.pos] == 'E') {
		p.pos++
		if p.pos < len(p.in) && (p.in[p.pos] == '+' || p.in[p.pos] == '-') {
			p.pos++
		}
		if integral = false; !p.digits() {
			return nil, p.errorf("want a digit in the exponent, not %s", p.found())
		}
	}
	return appendNumber(b, unsafe.String(&p.in[start], p.pos-start), integral), nil
}

// appendNumber appends the value of a well-formed number; text is borrowed.
func appendNumber(b []byte, text string, integral bool) []byte {
	if integral {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil && text != "-0" {
			return IntValue(i).Append(b)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || integral && text != "-0" {
		b = append(b, byte(Number))
		return appendName(b, text)
	}
	return FloatValue(f).Append(b)
}

func (p *jsonReader) digits() bool {
	start := p.pos
	for p.pos < len(p.in) && p.in[p.pos] >= '0' && p.in[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

// str reads a string after its opening quote and appends its length and bytes. What is not UTF-8 becomes U+FFFD.
func (p *jsonReader) str(b []byte) ([]byte, error) {
	start, ascii := p.pos, true
	for p.pos < len(p.in) {
		switch c := p.in[p.pos]; {
		case c == '"':
			s := p.in[start:p.pos]
			p.pos++
			if !ascii && !utf8.Valid(s) {
				s = []byte(validUTF8(string(s)))
			}
			b = binary.AppendUvarint(b, uint64(len(s)))
			return append(b, s...), nil
		case c == '\\':
			return p.escaped(b, start)
		case c < 0x20:
			return nil, p.errorf("%s in a string must be escaped", p.found())
		case c >= utf8.RuneSelf:
			ascii = false
		}
		p.pos++
	}
	return nil, p.errorf("string without an end")
}

// validUTF8 replaces each bad byte, as encoding/json does (strings.ToValidUTF8 replaces runs of them).
func validUTF8(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		out = append(out, r)
	}
	return string(out)
}

// escaped goes on with a string at its first backslash.
func (p *jsonReader) escaped(b []byte, start int) ([]byte, error) {
	body := len(b)
	b = append(b, p.in[start:p.pos]...)
	for p.pos < len(p.in) {
		c := p.in[p.pos]
		switch {
		case c == '"':
			p.pos++
			if s := b[body:]; !utf8.Valid(s) {
				b = append(b[:body], validUTF8(string(s))...)
			}
			return insertLength(b, body), nil
		case c < 0x20:
			return nil, p.errorf("%s in a string must be escaped", p.found())
		case c == '\\':
			p.pos++
			var err error
			if b, err = p.escape(b); err != nil {
				return nil, err
			}
		default:
			b = append(b, c)
			p.pos++
		}
	}
	return nil, p.errorf("string without an end")
}

// escape reads what follows a backslash.
func (p *jsonReader) escape(b []byte) ([]byte, error) {
	if p.pos >= len(p.in) {
		return nil, p.errorf("string without an end")
	}
	c := p.in[p.pos]
	p.pos++
	switch c {
	case '"', '\\', '/':
		return append(b, c), nil
	case 'b':
		return append(b, '\b'), nil
	case 'f':
		return append(b, '\f'), nil
	case 'n':
		return append(b, '\n'), nil
	case 'r':
		return append(b, '\r'), nil
	case 't':
		return append(b, '\t'), nil
	case 'u':
		r, ok := p.hex4()
		if !ok {
			return nil, p.errorf("\\u wants four hexadecimal digits")
		}
		if utf16.IsSurrogate(r) {
			r = p.lowSurrogate(r)
		}
		return utf8.AppendRune(b, r), nil
	}
	p.pos--
	return nil, p.errorf("unknown escape \\%c", c)
}

// lowSurrogate reads the second half of a pair, if it is there; a half alone becomes U+FFFD.
func (p *jsonReader) lowSurrogate(high rune) rune {
	if p.pos+1 < len(p.in) && p.in[p.pos] == '\\' && p.in[p.pos+1] == 'u' {
		at := p.pos
		p.pos += 2
		if low, ok := p.hex4(); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r
			}
		}
		p.pos = at
	}
	return utf8.RuneError
}

func (p *jsonReader) hex4() (r rune, ok bool) {
	if len(p.in)-p.pos < 4 {
		return 0, false
	}
	for _, c := range p.in[p.pos : p.pos+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	p.pos += 4
	return r, true
}
