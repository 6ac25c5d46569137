package cluster

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text of a job's author goes a long way: through sessions that take only UTF-8, into logs and onto terminals.
const (
	MaxText = 8 << 10 // bytes of a failure's text
	MaxName = 256     // bytes of a name: of a counter or an operator
)

// Clip makes text fit to travel: valid UTF-8, and at most most bytes long. Of what is longer the middle is left out, since
// a chain of errors says at its beginning where, and at its end why.
func Clip(text string, most int) string {
	if len(text) <= most {
		if text = clean(text); len(text) <= most {
			return text
		}
	}
	keep := max(most-len(leftOut)-20, 4) // 20: the digits
	// What is cut is cleaned again, since a byte that is no text takes more room once it is replaced.
	head := before(clean(before(text, keep/4*3)), keep/4*3)
	tail := after(clean(after(text, keep/4)), keep/4)
	return fmt.Sprintf(leftOut, head, len(text)-len(head)-len(tail), tail)
}

const leftOut = "%s … (%d bytes left out) … %s"

func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// before returns the beginning of s, at most most bytes, cut between characters.
func before(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for cut := most; cut > most-utf8.UTFMax && cut > 0; cut-- {
		if utf8.RuneStart(s[cut]) {
			return s[:cut]
		}
	}
	return s[:most]
}

// after returns the end of s, at most most bytes, cut between characters.
func after(s string, most int) string {
	if len(s) <= most {
		return s
	}
	from := len(s) - most
	for cut := from; cut < from+utf8.UTFMax && cut < len(s); cut++ {
		if utf8.RuneStart(s[cut]) {
			return s[cut:]
		}
	}
	return s[from:]
}

// Fit returns f with texts that are fit to travel.
func (f Failure) Fit() Failure {
	f.Message = Clip(f.Message, MaxText)
	f.Operator = Clip(f.Operator, MaxName)
	f.Peer = Clip(f.Peer, MaxName)
	f.Logged = Clip(f.Logged, MaxText)
	return f
}
