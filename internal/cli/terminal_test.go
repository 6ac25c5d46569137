package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/demo"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"äöü▇▇", 4, "äöü▇"},
		{"\x1b[1mab\x1b[0mcd", 3, "\x1b[1mab\x1b[0mc"},
		{"\x1b[1mabcd\x1b[0m", 2, "\x1b[1mab\x1b[0m"},
		{"ab\x1b[1mcd\x1b[0m", 2, "ab\x1b[1m\x1b[0m"},
		{"", 2, ""},
		{"ab", 0, ""},
	} {
		got := cut(c.text, c.width)
		if got != c.want {
			t.Errorf("cut(%q, %d) is %q, want %q", c.text, c.width, got, c.want)
		}
		if columns(got) > c.width {
			t.Errorf("cut(%q, %d) takes %d columns", c.text, c.width, columns(got))
		}
	}
}

func TestFill(t *testing.T) {
	got := fill([]string{"aaa", "bbb", "\x1b[1mcc\x1b[0m", "dddddddddd"}, "; ", 8)
	if want := "aaa; bbb|\x1b[1mcc\x1b[0m|dddddddddd"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "|"), want)
	}
}

// screen is a terminal with as many columns as it is wide, which wraps and scrolls.
type screen struct {
	width, height int
	rows          []string
	row, col      int
}

func (s *screen) Write(p []byte) (int, error) {
	text := string(p)
	for i := 0; i < len(text); {
		switch n, args := 0, ""; {
		case strings.HasPrefix(text[i:], "\x1b["):
			n = strings.IndexAny(text[i:], "AJKm")
			args = text[i+2 : i+n]
			switch text[i+n] {
			case 'A':
				up := 0
				for _, d := range args {
					up = 10*up + int(d-'0')
				}
				s.row = max(max(0, len(s.rows)-s.height), s.row-up)
			case 'J':
				s.rows = append(s.rows[:s.row], s.at()[:s.col])
			case 'K':
				s.rows[s.row] = s.at()[:s.col]
			}
			i += n + 1
			continue
		case text[i] == '\r':
			s.col = 0
		case text[i] == '\n':
			s.row, s.col = s.row+1, 0
		default:
			if s.col == s.width {
				s.row, s.col = s.row+1, 0
			}
			s.rows[s.row] = (s.at() + strings.Repeat(" ", s.width))[:s.col] + "x"
			s.col++
			for i+1 < len(text) && text[i+1]&0xc0 == 0x80 {
				i++
			}
		}
		i++
		s.at()
	}
	return len(p), nil
}

// at is the row of the cursor.
func (s *screen) at() string {
	for len(s.rows) <= s.row {
		s.rows = append(s.rows, "")
	}
	return s.rows[s.row]
}

// TestDemoScreenStaysInPlace draws the block of the demo many times, on screens of which it does not fit.
func TestDemoScreenStaysInPlace(t *testing.T) {
	view := demo.View{Produced: 1234567, Counted: 1200000, Window: time.Unix(1767225600, 0)}
	for range 10 {
		view.Top = append(view.Top, demo.UserCount{User: "somebody", Count: 12345, Total: 1234567})
	}
	snap := &appmaster.Snapshot{State: "running", Agents: make([]appmaster.Agent, 2)}
	for _, size := range [][2]int{{40, 24}, {60, 24}, {80, 24}, {100, 24}, {200, 50}, {80, 10}} {
		sc := &screen{width: size[0], height: size[1]}
		out := &terminal{w: sc, tty: true, colour: true, width: size[0], height: size[1]}
		r := &running{progress: &progress{out: out}, client: &client{web: "http://127.0.0.1:12345"}}
		r.progress.update("heddle-1767225600-1a2b3c4d: waiting for the ApplicationMaster", true)
		var d demoScreen
		for range 5 {
			d.draw(out, view, snap, r)
		}
		if len(sc.rows) > len(d.drawn)+1 || len(sc.rows) > size[1] {
			t.Errorf("%d × %d: %d rows are used for %d lines", size[0], size[1], len(sc.rows), len(d.drawn))
		}
		out.width, sc.width = 30, 30 // the lines are wrapped by the terminal
		var wrapped []string
		for _, row := range sc.rows {
			for ; len(row) > 30; row = row[30:] {
				wrapped = append(wrapped, row[:30])
			}
			wrapped = append(wrapped, row)
		}
		sc.rows, sc.row, sc.height, out.height = wrapped, len(wrapped)-1, 100, 100
		d.draw(out, view, snap, r)
		if len(sc.rows) > len(d.drawn)+1 {
			t.Errorf("%d × %d, then 30: %d rows are used for %d lines", size[0], size[1], len(sc.rows), len(d.drawn))
		}
	}
}

// TestDemoFiguresAgree has no more counted than read, and no empty event time.
func TestDemoFiguresAgree(t *testing.T) {
	r := &running{progress: &progress{out: &terminal{w: &bytes.Buffer{}}, figures: figures{in: 28359}}}
	line := demoLine(demo.View{Produced: 50010, Counted: 31165}, &appmaster.Snapshot{}, r)
	if !strings.Contains(line, "50,010 produced, 31,165 read (0/s), 31,165 counted, lag 18,845") || strings.Contains(line, "event time") {
		t.Error(line)
	}
}
