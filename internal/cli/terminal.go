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
}

func newTerminal(env Env, w io.Writer) *terminal {
	t := &terminal{w: w, width: 100}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || env.Getenv("TERM") == "dumb" {
		return t
	}
	t.tty, t.colour = true, env.Getenv("NO_COLOR") == ""
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		t.width = width
	}
	return t
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

// printable is text without control characters, which could move a terminal's cursor or forge lines.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '�'
		}
		return r
	}, text)
}

// json writes v for programs, indented.
func (t *terminal) json(v any) error {
	enc := json.NewEncoder(t.w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
