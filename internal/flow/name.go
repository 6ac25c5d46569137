package flow

import (
	"fmt"
	"unicode/utf8"
)

// MaxName is the most bytes of the name of a job or an operator: names stand in each of their metrics, log lines and spans, over and over.
const MaxName = 256

// CheckName reports a name that is too long.
func CheckName(name string) error {
	if len(name) <= MaxName {
		return nil
	}
	return TooLong(name, MaxName)
}

// TooLong is the error of a name of which at most so many bytes are taken.
func TooLong(name string, most int) error {
	return fmt.Errorf("the name %q has %d bytes, of which metrics and logs would be full; at most %d are taken", Cut(name, 40), len(name), most)
}

// Cut is text in at most so many bytes, with … where something is left out.
func Cut(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	end := max(0, most-len(mark))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
