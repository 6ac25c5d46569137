package task

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"sync/atomic"

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
	if c, ok := h.f.logged.load(); ok {
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

// sharedContext is a context, or none, that one goroutine stores and any loads. Nothing is allocated for it, as a record is followed too rarely for the
// allocator to be in a cache. It is a sequence lock: version is odd while the context is being stored.
type sharedContext struct {
	version atomic.Uint64
	words   [3]atomic.Uint64 // trace and span; zero: none
}

func (s *sharedContext) store(c *flow.TraceContext) {
	s.version.Add(1)
	s.words[0].Store(binary.BigEndian.Uint64(c.Trace[:8]))
	s.words[1].Store(binary.BigEndian.Uint64(c.Trace[8:]))
	s.words[2].Store(binary.BigEndian.Uint64(c.Span[:]))
	s.version.Add(1)
}

// load returns none also while one is being stored.
func (s *sharedContext) load() (c flow.TraceContext, ok bool) {
	version := s.version.Load()
	binary.BigEndian.PutUint64(c.Trace[:8], s.words[0].Load())
	binary.BigEndian.PutUint64(c.Trace[8:], s.words[1].Load())
	binary.BigEndian.PutUint64(c.Span[:], s.words[2].Load())
	return c, version%2 == 0 && version == s.version.Load() && c.Trace != [16]byte{}
}
