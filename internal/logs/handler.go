// Package logs is how the processes of an application log: from levels that may be changed while they run, without floods
// of the same warning, and into files that stay below a size.
package logs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Component is the attribute that names a part of Heddle: what its level is set by.
const Component = "component"

// Handler passes records on that the Levels of their component let through, and of a warning that repeats only some.
type Handler struct {
	// Immutable.
	inner     slog.Handler
	outer     slog.Handler // inner before it had attributes; nil: a group was begun
	attrs     []slog.Attr  // those of inner, but the component
	levels    *Levels
	component string
	flood     *flood // of all that were made of one
}

// NewHandler returns a Handler before inner, which must let everything through.
func NewHandler(inner slog.Handler, levels *Levels) *Handler {
	return &Handler{inner: inner, outer: inner, levels: levels, flood: &flood{now: time.Now, seen: map[string]*repeated{}}}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool {
	return h.levels.enabled(h.component, level)
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		left, ok := h.flood.admit(r.Message)
		if !ok {
			return nil
		}
		if left > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("left_out", left))
		}
	}
	return h.inner.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = h.attrs[:len(h.attrs):len(h.attrs)]
	component, named := slog.Attr{}, false
	for _, a := range attrs {
		if a.Key == Component {
			component, named, next.component = a, true, a.Value.String()
		} else {
			next.attrs = append(next.attrs, a)
		}
	}
	if named && h.component != "" && h.outer != nil {
		// A part of a component has its own name only: two would make JSON that readers differ about.
		next.inner = h.outer.WithAttrs(append([]slog.Attr{component}, next.attrs...))
	} else {
		next.inner = h.inner.WithAttrs(attrs)
	}
	return &next
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	next := *h
	next.inner, next.outer = h.inner.WithGroup(name), nil
	return &next
}

// Of one warning, burst are written within window; what comes more is counted.
const (
	burst    = 20
	window   = time.Minute
	warnings = 1000 // different ones that are told apart
)

// flood keeps warnings that repeat from filling the disk.
type flood struct {
	now func() time.Time // immutable

	mu   sync.Mutex
	seen map[string]*repeated // guarded by mu
}

type repeated struct {
	since   time.Time
	n, left int
}

// admit reports whether a warning is to be written, and how many like it were left out before it.
func (f *flood) admit(text string) (left int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	r := f.seen[text]
	if r == nil {
		if len(f.seen) >= warnings {
			clear(f.seen)
		}
		r = &repeated{since: now}
		f.seen[text] = r
	}
	if now.Sub(r.since) >= window {
		left = r.left
		*r = repeated{since: now}
	}
	if r.n++; r.n > burst {
		r.left++
		return 0, false
	}
	return left, true
}
