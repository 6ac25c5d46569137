package hrest

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// watchdog ends a request by which nothing moves.
type watchdog struct {
	timer   *time.Timer
	timeout time.Duration
	cancel  context.CancelFunc
	late    atomic.Bool
}

// watch returns a context that ends when nothing has moved for some time.
func watch(ctx context.Context, timeout time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchdog{timeout: timeout, cancel: cancel}
	w.timer = time.AfterFunc(timeout, func() {
		w.late.Store(true)
		cancel()
	})
	return ctx, w
}

// reset tells that something moved.
func (w *watchdog) reset() { w.timer.Reset(w.timeout) }

// stop ends the watch and the request, and reports whether time was up.
func (w *watchdog) stop() bool {
	w.timer.Stop()
	w.cancel()
	return w.late.Load()
}

// progress is what is sent.
type progress struct {
	io.Reader
	w *watchdog
}

// Read implements io.Reader.
func (p *progress) Read(b []byte) (int, error) {
	p.w.reset()
	return p.Reader.Read(b)
}

// answer is what comes.
type answer struct {
	io.ReadCloser
	w *watchdog
}

// Read implements io.Reader.
func (a *answer) Read(b []byte) (int, error) {
	a.w.reset()
	n, err := a.ReadCloser.Read(b)
	if err != nil && err != io.EOF && a.w.late.Load() {
		err = context.DeadlineExceeded
	}
	a.w.timer.Stop() // what the reader does meanwhile does not count
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.w.stop()
	return err
}
