package heddle

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
)

// ToFiles is a sink that writes records as lines into dir, one file for each subtask: part-00000, part-00001 …
// A file has ".inprogress" behind its name until its subtask has come to the end of its input; one that is left with that name is of a
// job that failed or was cancelled. A part that is there already is an error, so that no results are mixed; so is one that another
// job writes at the same time, and a second sink of the job into the same directory.
//
// In a directory of another file system, such as hdfs:///data/counts (see RegisterFileSystem), a part that is not complete has a hidden
// name, and is removed if the job fails.
func ToFiles(dir string) *FileSink { return &FileSink{dir: dir} }

// FileSink writes lines to files.
type FileSink struct {
	dir       string
	overwrite bool
}

// Overwrite replaces parts that are there already. Those of an earlier run with more subtasks are removed when the first part is whole.
func (s *FileSink) Overwrite() *FileSink {
	s.overwrite = true
	return s
}

// Describe implements MessageSink.
func (s *FileSink) Describe() string { return "files in " + s.dir }

// Solely implements flow.Sole.
func (s *FileSink) Solely() string {
	if scheme := schemeOf(s.dir); scheme != "" {
		return "files in " + scheme + "://" + path.Clean(strings.TrimPrefix(s.dir, scheme+"://"))
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		dir = filepath.Clean(s.dir)
	}
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	return "files in " + dir
}

// NewMessageWriter implements MessageSink.
func (s *FileSink) NewMessageWriter(ctx context.Context, rt flow.Runtime) (flow.MessageWriter, error) {
	if scheme := schemeOf(s.dir); scheme != "" {
		return s.newRemoteWriter(ctx, scheme, rt)
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return nil, fmt.Errorf("cannot write files: %w", err)
	}
	final := filepath.Join(s.dir, partName(rt.Subtask()))
	if _, err := os.Stat(final); err == nil && !s.overwrite {
		return nil, fmt.Errorf("cannot write %s: it exists; remove it, write to another directory, or use Overwrite (in a job file: overwrite: true)", final)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot write %s: %w", final, err)
	}
	old, err := s.leftovers(rt.Subtask(), rt.Parallelism())
	if err != nil {
		return nil, err
	}
	f, err := createAlone(final + ".inprogress")
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", final, err)
	}
	return &fileWriter{final: final, old: old, f: f, out: bufio.NewWriterSize(f, 64<<10)}, nil
}

func partName(subtask int) string { return fmt.Sprintf("part-%05d", subtask) }

var errWritten = errors.New("another job writes it now; wait for its end, or write to another directory")

// createAlone makes an empty file, or empties one that was left, and keeps others from doing so until it is closed.
func createAlone(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		if !lockFile(f) {
			return nil, errors.Join(errWritten, f.Close())
		}
		there, err := os.Stat(path)
		mine, mineErr := f.Stat()
		if err == nil && mineErr == nil && os.SameFile(there, mine) {
			if err := f.Truncate(0); err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return f, nil
		}
		_ = f.Close() // it got its final name between our opening and locking it
		if err := cmp.Or(mineErr, err); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// fileWriter writes one part. Owned by the task's goroutine.
type fileWriter struct {
	final string
	old   []string // parts of an earlier run to be removed at the end
	f     *os.File
	out   *bufio.Writer
	buf   []byte
}

// Write implements flow.MessageWriter.
func (w *fileWriter) Write(m *Messages) error {
	w.buf = appendLines(w.buf[:0], m)
	_, err := w.out.Write(w.buf)
	return err
}

// Flush implements flow.MessageWriter: what was written is on the disk.
func (w *fileWriter) Flush(context.Context) error {
	if err := w.out.Flush(); err != nil {
		return err
	}
	return w.f.Sync()
}

// Finish implements flow.Finisher: the part gets its name.
func (w *fileWriter) Finish(context.Context) error {
	if err := os.Rename(w.f.Name(), w.final); err != nil {
		return err
	}
	return removeLeftovers(w.old)
}

// Close implements flow.MessageWriter.
func (w *fileWriter) Close() error {
	return errors.Join(w.out.Flush(), w.f.Close())
}
