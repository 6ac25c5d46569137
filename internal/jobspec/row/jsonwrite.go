package row

import (
	"encoding/base64"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendJSON appends v as JSON; times in the zone, bytes as base64, absent, NaN and infinities as null.
func AppendJSON(b []byte, v Value, zone *time.Location) []byte {
	switch v.Kind {
	case False:
		return append(b, "false"...)
	case True:
		return append(b, "true"...)
	case Int:
		return strconv.AppendInt(b, int64(v.num), 10)
	case Float:
		return appendFloat(b, v.Float())
	case Number:
		return append(b, v.str...)
	case String:
		return appendJSONString(b, v.str)
	case Bytes:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, []byte(v.str))
		return append(b, '"')
	case Time:
		b = append(b, '"')
		b = v.Time().In(zone).AppendFormat(b, time.RFC3339Nano)
		return append(b, '"')
	case List:
		b = append(b, '[')
		for s := v.str; s != ""; {
			e, rest, ok := Next(s)
			if !ok {
				break
			}
			if len(s) != len(v.str) {
				b = append(b, ',')
			}
			b, s = AppendJSON(b, e, zone), rest
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		b = appendJSONFields(b, v.str, zone)
		return append(b, '}')
	}
	return append(b, "null"...)
}

// appendJSONFields appends an object's fields, with a comma first unless b ends with the object's brace.
func appendJSONFields(b []byte, s string, zone *time.Location) []byte {
	for s != "" {
		n, e, rest, ok := nextField(s)
		if !ok {
			break
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = appendJSONString(b, n)
		b = append(b, ':')
		b, s = AppendJSON(b, e, zone), rest
	}
	return b
}

// appendFloat writes the shortest form that reads back as f, with a fraction or an exponent only where needed.
func appendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		b = strconv.AppendFloat(b, f, 'e', -1, 64)
		if n := len(b); n >= 4 && b[n-4] == 'e' && b[n-2] == '0' { // e-09 is written e-9
			b = append(b[:n-2], b[n-1])
		}
		return b
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

const hexDigits = "0123456789abcdef"

// appendJSONString appends s in quotes; what is not UTF-8 becomes U+FFFD.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
