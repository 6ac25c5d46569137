package strict

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxProblems is how many problems an Error shows; it counts the others.
const MaxProblems = 10

// Place is where something stands in a file: its line and column, from 1 and in characters, and its width in characters.
type Place struct{ Line, Column, Width int }

// Problem is one thing wrong with a file.
type Problem struct {
	Place
	Message string // what is wrong, and how to fix it where that is known
}

// Error is everything wrong with a file, in the order of the file.
type Error struct {
	File     string
	Problems []Problem
	lines    []string
}

// Error shows each problem as file:line:column and message, then the line and a caret below it.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == MaxProblems {
			fmt.Fprintf(&b, "\nand %d more", len(e.Problems)-MaxProblems)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", e.File, p.Line, p.Column, p.Message)
		if p.Line >= 1 && p.Line <= len(e.lines) {
			b.WriteString(excerpt(e.lines[p.Line-1], p.Place))
		}
	}
	return b.String()
}

// excerptWidth is how much of a long line is shown.
const excerptWidth = 120

// excerpt is the line with a caret under the place, each on a line of its own that begins with a newline.
func excerpt(line string, at Place) string {
	runes := []rune(strings.TrimRight(strings.ToValidUTF8(line, "\uFFFD"), "\r"))
	start := min(max(at.Column-1, 0), len(runes))
	width := min(max(at.Width, 1), max(len(runes)-start, 1))
	before := ""
	if len(runes) > excerptWidth {
		from := max(0, min(start-excerptWidth/3, len(runes)-excerptWidth))
		if from > 0 {
			before = "…"
		}
		after := ""
		if from+excerptWidth < len(runes) {
			after = "…"
		}
		runes, start = runes[from:min(from+excerptWidth, len(runes))], start-from
		width = min(width, max(len(runes)-start, 1))
		runes = append(runes[:len(runes):len(runes)], []rune(after)...)
	}
	var b strings.Builder
	number := fmt.Sprintf("%5d", at.Line)
	fmt.Fprintf(&b, "\n%s | %s%s\n%s | ", number, before, string(runes), strings.Repeat(" ", len(number)))
	b.WriteString(strings.Repeat(" ", utf8.RuneCountInString(before)))
	for _, r := range runes[:start] {
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	b.WriteString(strings.Repeat("^", width))
	return b.String()
}

// Nearest returns the name closest to s that a slip of the fingers would explain, or "".
func Nearest(s string, names []string) string {
	n := utf8.RuneCountInString(s)
	best, bestDistance := "", min(n, 1+(n+2)/3)
	for _, n := range names {
		if d := distance([]rune(strings.ToLower(s)), []rune(strings.ToLower(n)), bestDistance); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	return best
}

// Suggest ends a message about an unknown name: with the nearest valid one, else with all of them if they are few, else with nothing.
func Suggest(s string, names []string) string {
	if n := Nearest(s, names); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	if len(names) == 0 || len(names) > 24 {
		return ""
	}
	return "; valid: " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// distance is the number of insertions, deletions, replacements and swaps of neighbours that make b of a, or at least limit.
func distance(a, b []rune, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
