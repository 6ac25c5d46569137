package cli

import (
	"fmt"
	"strings"
)

// redrawn is a block of lines at the end of a terminal that is drawn anew.
type redrawn struct {
	drawn []int // columns of each line drawn last
}

// redraw writes lines over those drawn before, each cut to one row and all together to the screen: it can go up no
// further. Rows that a terminal made narrower since has wrapped are reckoned with.
func (s *redrawn) redraw(out *terminal, lines []string) {
	lines = lines[:min(len(lines), max(1, out.height-1))]
	var b strings.Builder
	up := 0
	for _, n := range s.drawn {
		up += max(1, (n+out.width-1)/out.width)
	}
	if up = min(up, out.height-1); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	if len(s.drawn) > 0 {
		b.WriteString("\r\x1b[J")
	}
	s.drawn = s.drawn[:0]
	for _, line := range lines {
		line = cut(line, out.width-1)
		b.WriteString(line + "\n")
		s.drawn = append(s.drawn, columns(line))
	}
	fmt.Fprint(out.w, b.String())
}
