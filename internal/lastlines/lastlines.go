// Package lastlines reads what a process that has ended wrote last. Of a Go program that crashed, that is the end of a dump of
// all its goroutines, which says nothing: the lines with which it says why it crashes, at the dump's beginning, are shown too.
package lastlines

import (
	"bytes"
	"io"
	"os"
	"strings"
)

// Limits on what is read and shown of a file.
const (
	window   = 8 << 20 // bytes from the end that are searched
	longLine = 2000    // bytes of a line that are shown
	gap      = "…"     // stands for lines that are left out, and for the rest of a long line
)

// crashes begin the first line that the run time of Go writes when it gives a program up.
var crashes = []string{"panic: ", "fatal error: ", "runtime: ", "SIGQUIT: ", "SIGSEGV: ", "SIGBUS: ", "SIGABRT: "}

// Of returns at most n of the last lines of a file, in UTF-8; nil if it can't be read. If a crash begins above them, lines from
// its beginning take the place of half of them.
func Of(file string, n int) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	from := max(0, info.Size()-window)
	data, err := io.ReadAll(io.NewSectionReader(f, from, window))
	data = bytes.TrimRight(data, "\n")
	if err != nil || len(data) == 0 {
		return nil
	}
	lines := bytes.Split(data, []byte("\n"))
	if from > 0 && len(lines) > 1 {
		lines = lines[1:] // the first may be cut
	}
	kept := cut(lines, n, []byte(gap))
	out := make([]string, len(kept))
	for i, line := range kept {
		if len(line) > longLine {
			line = append(line[:longLine:longLine], gap...)
		}
		out[i] = strings.ToValidUTF8(string(line), "?")
	}
	return out
}

// Cut returns at most n of the lines, chosen as Of does.
func Cut(lines []string, n int) []string { return cut(lines, n, gap) }

func cut[T string | []byte](lines []T, n int, between T) []T {
	if len(lines) <= n {
		return lines
	}
	if n < 3 {
		return lines[len(lines)-n:]
	}
	for i, line := range lines[:len(lines)-n] {
		if !crash(line) {
			continue
		}
		head := n / 2
		kept := append(make([]T, 0, n), lines[i:i+head]...)
		return append(append(kept, between), lines[len(lines)-(n-head-1):]...)
	}
	return lines[len(lines)-n:]
}

func crash[T string | []byte](line T) bool {
	for _, prefix := range crashes {
		if len(line) >= len(prefix) && string(line[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}
