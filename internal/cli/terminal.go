package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminal writes results: with colour and tables where a person looks on, plain where a program reads.
type terminal struct {
	w      io.Writer
	tty    bool // a person looks on
	colour bool
	width  int
	height int
	file   *os.File // of a tty, for its size
}

func newTerminal(env Env, w io.Writer) *terminal {
	t := &terminal{w: w, width: 100, height: 1000}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || env.Getenv("TERM") == "dumb" {
		return t
	}
	t.tty, t.colour, t.file = true, env.Getenv("NO_COLOR") == "", f
	t.measure()
	return t
}

// measure asks for the size of the terminal, which changes as people please.
func (t *terminal) measure() {
	if t.file == nil {
		return
	}
	if width, height, err := term.GetSize(int(t.file.Fd())); err == nil && width > 0 && height > 0 {
		t.width, t.height = width, height
	}
}

// cut is text as far as it fits into width columns; SGR sequences take none, and what they set ends with the text.
func cut(text string, width int) string {
	var b strings.Builder
	coloured := false
	for i := 0; i < len(text); {
		if n := sgr(text[i:]); n > 0 {
			b.WriteString(text[i : i+n])
			coloured = text[i:i+n] != "\x1b[0m"
			i += n
			continue
		}
		if width == 0 {
			break
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		b.WriteString(text[i : i+n])
		i, width = i+n, width-1
	}
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// columns is how many columns a text takes.
func columns(text string) (n int) {
	for i := 0; i < len(text); {
		if m := sgr(text[i:]); m > 0 {
			i += m
			continue
		}
		_, m := utf8.DecodeRuneInString(text[i:])
		i, n = i+m, n+1
	}
	return n
}

// sgr is the length of the SGR sequence that text begins with, 0 if it begins with none.
func sgr(text string) int {
	if !strings.HasPrefix(text, "\x1b[") {
		return 0
	}
	return strings.IndexByte(text, 'm') + 1
}

// fill puts parts into as few lines of width columns as they fit into.
func fill(parts []string, between string, width int) (lines []string) {
	for _, p := range parts {
		if last := len(lines) - 1; last >= 0 && columns(lines[last])+columns(between)+columns(p) <= width {
			lines[last] += between + p
		} else {
			lines = append(lines, p)
		}
	}
	return lines
}

// The colours used, as SGR parameters.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (t *terminal) paint(sgr, text string) string {
	if !t.colour || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// table writes rows with aligned columns under bold headings; in a pipe without headings and with
// tabs between cells. Control characters in cells are replaced, so that no value can draw on the screen.
func (t *terminal) table(head []string, rows [][]string) error {
	if !t.tty {
		for _, row := range rows {
			if _, err := fmt.Fprintln(t.w, strings.Join(clean(row), "\t")); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := io.WriteString(t.w, strings.Join(t.tableLines(head, rows), "\n")+"\n")
	return err
}

func (t *terminal) tableLines(head []string, rows [][]string) []string {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, 0, 1+len(rows))
	for n, row := range append([][]string{head}, rows...) {
		var b strings.Builder
		for i, cell := range clean(row) {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if n == 0 {
				cell = t.paint(bold, cell)
			}
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(pad + "  ")
			}
		}
		lines = append(lines, b.String())
	}
	return lines
}

func clean(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = printable(c)
	}
	return out
}

// printable is text without control characters, which could move a terminal's cursor, forge lines, or have text run the other way. Tabs become spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029', r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
			return '�'
		}
		return r
	}, strings.ReplaceAll(text, "\t", "    "))
}

// printableLines is printable for text of several lines, which stay apart.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

// json writes v for programs, indented.
func (t *terminal) json(v any) error {
	enc := json.NewEncoder(t.w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
