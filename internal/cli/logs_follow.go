package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/logs"
)

// followedLog is a log of which the first bytes are printed. Its process moves it aside when it has grown too long (logs.Keep): it copies it and
// empties it, so that the name and the file stay and only what is in it tells.
type followedLog struct {
	name, file string
	older      []logPart // of what was moved aside before we came: to be printed first
	offset     int64     // of what is printed
	head, tail []byte    // what the file begins with, and what is before offset: by these it is known again
	part       []byte    // of a line whose end was not there yet
}

// logPart is a file from an offset on.
type logPart struct {
	file   string
	offset int64
}

// By how many bytes a log is known again.
const (
	headSize = 256
	tailSize = 64
)

// begin leaves out all but the last lines lines, of those that were moved aside too; 0 leaves out none.
func (f *followedLog) begin(lines int) {
	all := lines == 0
	for i := 0; all || lines > 0; i++ {
		name := f.file
		if i > 0 {
			name = logs.Aside(f.file, i)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			break
		}
		at := 0
		if !all {
			at, lines = lastBegin(data, lines)
		}
		if i > 0 {
			f.older = append(f.older, logPart{name, int64(at)})
		} else {
			f.offset, f.head, f.tail = int64(at), data[:min(headSize, len(data))], data[max(0, at-tailSize):at]
		}
	}
	slices.Reverse(f.older)
}

// lastBegin is where the last n lines of data begin, and how many fewer there are.
func lastBegin(data []byte, n int) (at, lacking int) {
	if len(data) == 0 {
		return 0, n
	}
	end := len(bytes.TrimSuffix(data, []byte("\n")))
	for ; n > 0; n-- {
		if end = bytes.LastIndexByte(data[:end], '\n'); end < 0 {
			return 0, n - 1
		}
	}
	return end + 1, 0
}

// copy prints the whole lines that are new.
func (f *followedLog) copy(t *terminal) error {
	older := f.older
	f.older = nil
	for _, p := range older {
		data, err := p.read()
		if err != nil {
			return fmt.Errorf("cannot read the log of %s: %w", f.name, err)
		}
		if err := f.print(t, data); err != nil {
			return err
		}
	}
	data, err := f.fresh()
	if err != nil {
		return fmt.Errorf("cannot read the log of %s: %w", f.name, err)
	}
	return f.print(t, data)
}

// read returns the part; nil if the file is not there any more.
func (p logPart) read() ([]byte, error) {
	data, err := os.ReadFile(p.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data[min(p.offset, int64(len(data))):], err
}

// fresh returns what was written since the last time, also to files that were moved aside meanwhile.
func (f *followedLog) fresh() ([]byte, error) {
	file, err := os.Open(f.file)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	defer file.Close()
	var before []byte
	if !f.same(file) {
		before = f.aside()
		f.offset, f.head, f.tail = 0, nil, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(file, f.offset, 1<<62))
	f.offset += int64(len(data))
	f.tail = slices.Concat(f.tail, data)
	f.tail = slices.Clone(f.tail[max(0, len(f.tail)-tailSize):])
	if len(f.head) < headSize {
		f.head = readAt(file, 0, headSize)
	}
	return slices.Concat(before, data), err
}

// same reports whether a file goes on where it was left.
func (f *followedLog) same(file *os.File) bool {
	return bytes.Equal(readAt(file, 0, len(f.head)), f.head) && bytes.Equal(readAt(file, f.offset-int64(len(f.tail)), len(f.tail)), f.tail)
}

// readAt returns up to n bytes of a file, what is there.
func readAt(file *os.File, at int64, n int) []byte {
	data := make([]byte, n)
	n, _ = file.ReadAt(data, at) // short where the file is
	return data[:n]
}

// aside returns what is not printed yet of the file that was moved aside, and of those that were after it.
func (f *followedLog) aside() (rest []byte) {
	for i := 1; ; i++ {
		data, err := os.ReadFile(logs.Aside(f.file, i))
		if err != nil {
			return rest // it is gone: more were moved aside than are kept
		}
		if bytes.HasPrefix(data, f.head) {
			return slices.Concat(data[min(f.offset, int64(len(data))):], rest)
		}
		rest = slices.Concat(data, rest)
	}
}

// print prints the whole lines of what was read, and keeps the rest.
func (f *followedLog) print(t *terminal, data []byte) error {
	data = slices.Concat(f.part, data)
	whole := bytes.LastIndexByte(data, '\n') + 1
	f.part = slices.Clone(data[whole:])
	for line := range strings.Lines(string(data[:whole])) {
		if _, err := fmt.Fprintf(t.w, "%s %s\n", t.paint(dim, f.name), printable(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}
