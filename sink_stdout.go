package heddle

import (
	"context"
	"io"
	"os"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Stdout is a sink that writes each record as a line to the standard output of the process its subtask runs in.
func Stdout() MessageSink { return stdoutSink{} }

type stdoutSink struct{}

func (stdoutSink) Describe() string { return "stdout" }

func (stdoutSink) NewMessageWriter(context.Context, flow.Runtime) (flow.MessageWriter, error) {
	return &lineWriter{to: os.Stdout}, nil
}

// lineWriter writes the messages of a batch as lines, in one piece so that those of other subtasks don't get in between.
type lineWriter struct {
	to  io.Writer
	buf []byte
}

// Write implements flow.MessageWriter.
func (w *lineWriter) Write(m *Messages) error {
	w.buf = appendLines(w.buf[:0], m)
	_, err := w.to.Write(w.buf)
	return err
}

// appendLines appends the values of m, each with a line feed.
func appendLines(b []byte, m *Messages) []byte {
	for _, v := range m.Values {
		b = append(b, m.At(v)...)
		b = append(b, '\n')
	}
	return b
}

// Flush implements flow.MessageWriter.
func (w *lineWriter) Flush(context.Context) error { return nil }

// Close implements flow.MessageWriter.
func (w *lineWriter) Close() error { return nil }

// Discard is a sink that drops every record: for measuring what comes before it.
func Discard[T any]() Sink[T] { return discardSink[T]{} }

type discardSink[T any] struct{}

func (discardSink[T]) Describe() string { return "discard" }

func (discardSink[T]) NewWriter(context.Context, flow.Runtime) (flow.SinkWriter[T], error) {
	return discardSink[T]{}, nil
}

func (discardSink[T]) Write(Batch[T]) error        { return nil }
func (discardSink[T]) Flush(context.Context) error { return nil }
func (discardSink[T]) Close() error                { return nil }
