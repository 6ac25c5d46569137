package heddle

import (
	"bufio"
	"context"
	"fmt"

	"github.com/heddle-stream/heddle/internal/flow"
)

// newRemoteWriter begins a part in a directory of a file system that is not this host's.
func (s *FileSink) newRemoteWriter(ctx context.Context, scheme string, rt flow.Runtime) (flow.MessageWriter, error) {
	final := joinURI(s.dir, partName(rt.Subtask()))
	fsys, err := fileSystem(scheme)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", final, err)
	}
	old, remove, err := s.remoteLeftovers(ctx, fsys, rt.Subtask(), rt.Parallelism())
	if err != nil {
		return nil, err
	}
	f, err := fsys.Create(ctx, final, s.overwrite)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", final, err)
	}
	return &remoteFileWriter{name: final, old: old, remove: remove, f: f, out: bufio.NewWriterSize(f, 256<<10)}, nil
}

// remoteFileWriter writes one part. Owned by the task's goroutine.
type remoteFileWriter struct {
	name   string
	old    []string // parts of an earlier run to be removed at the end, by remove
	remove func(context.Context, string) error
	f      PendingFile
	out    *bufio.Writer
	buf    []byte
}

// Write implements flow.MessageWriter.
func (w *remoteFileWriter) Write(m *Messages) error {
	w.buf = appendLines(w.buf[:0], m)
	_, err := w.out.Write(w.buf)
	return w.failed(err)
}

// Flush implements flow.MessageWriter.
func (w *remoteFileWriter) Flush(context.Context) error {
	if err := w.out.Flush(); err != nil {
		return w.failed(err)
	}
	return w.failed(w.f.Sync())
}

// Finish implements flow.Finisher: the part gets its name.
func (w *remoteFileWriter) Finish(ctx context.Context) error {
	if err := w.out.Flush(); err != nil {
		return w.failed(err)
	}
	if err := w.f.Commit(ctx); err != nil {
		return w.failed(err)
	}
	for _, name := range w.old {
		if err := w.remove(ctx, name); err != nil {
			return fmt.Errorf("cannot remove the part of an earlier run: %w", err)
		}
	}
	return nil
}

// Close implements flow.MessageWriter. A part that is not finished is worth nothing.
func (w *remoteFileWriter) Close() error { return w.failed(w.f.Close()) }

func (w *remoteFileWriter) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot write %s: %w", w.name, err)
}
