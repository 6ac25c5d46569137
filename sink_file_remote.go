package heddle

import (
	"bufio"
	"context"
	"fmt"

	"github.com/heddle-stream/heddle/internal/flow"
)

// newRemoteWriter begins a part in a directory of a file system that is not this host's.
func (s *FileSink) newRemoteWriter(ctx context.Context, scheme string, subtask int) (flow.MessageWriter, error) {
	final := joinURI(s.dir, partName(subtask))
	fsys, err := fileSystem(scheme)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", final, err)
	}
	f, err := fsys.Create(ctx, final, s.overwrite)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", final, err)
	}
	return &remoteFileWriter{name: final, f: f, out: bufio.NewWriterSize(f, 256<<10)}, nil
}

// remoteFileWriter writes one part. Owned by the task's goroutine.
type remoteFileWriter struct {
	name string
	f    PendingFile
	out  *bufio.Writer
	buf  []byte
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
	return w.failed(w.f.Commit(ctx))
}

// Close implements flow.MessageWriter. A part that is not finished is worth nothing.
func (w *remoteFileWriter) Close() error { return w.failed(w.f.Close()) }

func (w *remoteFileWriter) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot write %s: %w", w.name, err)
}
