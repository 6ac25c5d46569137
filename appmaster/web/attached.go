package web

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// attachment knows whether somebody follows the application to its end: a command that waits for it asks with ?attached. The server
// stays, when the application is over, until that one has seen how it went.
type attachment struct {
	mu    sync.Mutex
	asked time.Time     // when it asked last
	saw   chan struct{} // closed when it has seen the end
	done  bool          // saw is closed
}

const (
	attachedFor = 10 * time.Second       // after such a silence nobody waits any more
	lingerFor   = 800 * time.Millisecond // longer than the pause between two questions
)

// note notes an answer to somebody who waits.
func (a *attachment) note(r *http.Request, state string) {
	if r.URL.Path != "/api/job" || !r.URL.Query().Has("attached") {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = time.Now()
	if !a.done && slices.Contains([]string{"finished", "failed", "canceled"}, state) {
		a.done = true
		close(a.saw)
	}
}

// linger waits until whoever waits has seen the end.
func (a *attachment) linger(ctx context.Context) {
	a.mu.Lock()
	waits := !a.done && time.Since(a.asked) < attachedFor
	a.mu.Unlock()
	if !waits {
		return
	}
	t := time.NewTimer(lingerFor)
	defer t.Stop()
	select {
	case <-a.saw:
		// Its answer is on the way: Shutdown waits for that.
	case <-t.C:
	case <-ctx.Done():
	}
}
