package profile

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// bounded gathers up to MaxSize bytes. What writes it need not stop at its error: tracing goes on.
type bounded struct {
	mu   sync.Mutex // guards what follows: a trace is written by a goroutine of its own
	buf  bytes.Buffer
	full error
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full == nil && b.buf.Len()+len(p) > MaxSize {
		b.full = ErrTooLarge
		b.buf = bytes.Buffer{}
	}
	if b.full != nil {
		return 0, b.full
	}
	return b.buf.Write(p)
}

// Bytes returns what was written, when nobody writes any more.
func (b *bounded) Bytes() []byte { return b.buf.Bytes() }

// wait waits as wait does, but no longer than there is room.
func (b *bounded) wait(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if err := wait(ctx, min(left, 100*time.Millisecond)); err != nil {
			return err
		}
		b.mu.Lock()
		full := b.full
		b.mu.Unlock()
		if full != nil {
			return full
		}
	}
}
