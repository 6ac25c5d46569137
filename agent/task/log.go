package task

import (
	"context"
	"encoding/hex"
	"log/slog"

	"github.com/heddle-stream/heddle/internal/flow"
)

// traceHandler adds to what is logged while a record is followed the record's trace. (What another goroutine of the task logs at that
// moment gets it too.)
type traceHandler struct {
	slog.Handler
	f *follower
}

// Handle implements slog.Handler.
func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if c := h.f.logged.Load(); c != nil {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", hex.EncodeToString(c.Trace[:])), slog.String("span_id", hex.EncodeToString(c.Span[:])))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs), h.f}
}

// WithGroup implements slog.Handler.
func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name), h.f}
}

// log says in logs which record is followed; nil: none.
func (f *follower) log(c *flow.TraceContext) { f.logged.Store(c) }
