package agent

import (
	"context"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// link is one session with the master: a goroutine brings its messages to the agent's mailbox, another sends what
// is in the outbox, so that the agent's loop never waits for the network.
type link struct {
	sess *ctl.Session
	out  *mailbox[*ctlpb.FromAgent]
	quit chan struct{} // closed by close: send what is there, then end
	sent chan struct{} // closed when the sender has ended
	wg   sync.WaitGroup
}

// linkEvent is what a link brings: a message, or the error that ended it.
type linkEvent struct {
	link *link
	msg  *ctlpb.FromMaster
	err  error
}

func newLink(sess *ctl.Session, events *mailbox[any]) *link {
	l := &link{sess: sess, out: newMailbox[*ctlpb.FromAgent](), quit: make(chan struct{}), sent: make(chan struct{})}
	l.wg.Go(func() {
		for {
			m, err := sess.Recv()
			events.put(linkEvent{l, m, err})
			if err != nil {
				return
			}
		}
	})
	l.wg.Go(l.send)
	return l
}

func (l *link) send() {
	defer close(l.sent)
	for {
		select {
		case <-l.out.signal:
		case <-l.quit:
			l.flush()
			return
		}
		if !l.flush() {
			return
		}
	}
}

func (l *link) flush() bool {
	for _, m := range l.out.take() {
		if l.sess.Send(m) != nil {
			return false // the receiver learns why
		}
	}
	return true
}

// closeTimeout bounds how long a link that is being closed goes on sending.
const closeTimeout = time.Second

// close sends what is left, ends the session and waits for both goroutines.
func (l *link) close() {
	close(l.quit)
	select {
	case <-l.sent:
	case <-time.After(closeTimeout):
	}
	_ = l.sess.Close()
	l.wg.Wait()
}

// joined is the event that a try to join has ended.
type joined struct {
	sess   *ctl.Session
	answer *ctlpb.Registered
	err    error
}

// join tries to join the master in the background and brings the outcome to the mailbox.
func (a *agent) join(ctx context.Context, opt ctl.JoinOptions) {
	reg, secrets := a.introduction(), a.cfg.Secrets
	opt.Locate, opt.Failed = a.cfg.Locate, a.logTries()
	a.wg.Go(func() {
		sess, answer, err := ctl.Join(ctx, secrets, reg, opt)
		a.events.put(joined{sess, answer, err})
	})
}

// logTries logs why a try to join failed, each reason once.
func (a *agent) logTries() func(error) {
	last := ""
	return func(err error) {
		if text := err.Error(); text != last {
			last = text
			a.cfg.Logger.Warn("cannot reach the ApplicationMaster, trying again", "addr", a.cfg.Secrets.MasterAddr, "err", err)
		}
	}
}
