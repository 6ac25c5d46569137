package amrm

import (
	"context"
	"fmt"
	"strconv"
	"time"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/yarnclient/book"
)

// spacing is the least time between two heartbeats, so that a burst of changes makes one.
const spacing = 20 * time.Millisecond

// loop sends heartbeats until the session is over.
func (s *Session) loop(ctx context.Context) {
	defer s.wg.Done()
	err := s.beats(ctx)
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	close(s.done)
	s.tell()
}

func (s *Session) beats(ctx context.Context) error {
	for {
		began := time.Now()
		if err := s.beat(ctx); err != nil {
			return err
		}
		t := time.NewTimer(max(s.interval()-time.Since(began), spacing))
		var f *finish
		select {
		case <-t.C:
		case <-s.wake:
			if !sleep(ctx, spacing) {
				return ctx.Err()
			}
		case x := <-s.finish:
			f = &x
		case <-ctx.Done():
		}
		t.Stop()
		if f != nil {
			err := s.unregister(f.ctx, f.req)
			f.result <- err
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (s *Session) interval() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.book.Pending() || time.Now().Before(s.hurry) {
		return s.cfg.Busy
	}
	return s.cfg.Idle
}

// beat sends one heartbeat and takes its answer. Its error is the session's end.
func (s *Session) beat(ctx context.Context) error {
	// What was said before this message needs no wake-up of its own.
	select {
	case <-s.wake:
	default:
	}
	s.mu.Lock()
	req := s.book.Request()
	s.mu.Unlock()
	var resp pb.AllocateResponseProto
	if err := s.client.Call(ctx, "allocate", req, &resp); err != nil {
		return s.failed(ctx, err)
	}
	s.mu.Lock()
	out := s.book.Answer(&resp)
	s.mu.Unlock()
	if out.NewToken != nil {
		// The connection there is stays good; the next must not use the old token.
		s.client.SetAuth(hrpc.ByToken(*out.NewToken))
		s.log.Info("the ResourceManager changed the master's token")
	}
	if n := len(out.Refused); n > 0 {
		s.log.Info("the ResourceManager gave up to place what was asked for with placement constraints: keeping agents apart without", "requests", n)
	}
	s.hear(out)
	switch {
	case out.Shutdown:
		return ErrOver
	case out.Resync:
		return s.resync(ctx)
	}
	return nil
}

// failed decides what a failed heartbeat means. Its error is the session's end.
func (s *Session) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch hrpc.ClassOf(err) {
	case hrpc.ClassNotRegistered:
		return s.resync(ctx)
	case hrpc.ClassAttemptNotFound, hrpc.ClassInvalidToken:
		return fmt.Errorf("%w: %w", ErrOver, err)
	case hrpc.ClassInvalidAMRequest:
		m := expectedResponse.FindStringSubmatch(err.Error())
		if m == nil {
			return fmt.Errorf("cannot send a heartbeat: %w", err)
		}
		n, perr := strconv.ParseInt(m[1], 10, 32)
		if perr != nil {
			return fmt.Errorf("cannot send a heartbeat: %w", err)
		}
		s.log.Warn("the ResourceManager expects another response number", "number", n)
		s.with(func(b *book.Book) { b.ExpectResponse(int32(n)) })
	case hrpc.ClassInvalidResource, hrpc.ClassSchedulerInvalid, hrpc.ClassInvalidLabel:
		s.refused(err)
	case hrpc.ClassInvalidBlacklist:
		s.log.Error("the ResourceManager refused the blacklist, which is dropped", "err", err)
		s.with(func(b *book.Book) { b.RefusedBlacklist() })
	case hrpc.ClassInvalidRelease:
		s.log.Error("the ResourceManager refused to take containers back", "err", err)
		s.with(func(b *book.Book) { b.RefusedRelease() })
	case hrpc.ClassYarn:
		if !constraints.MatchString(err.Error()) || !s.refusedConstraints(err) {
			return s.again(ctx, err)
		}
	default:
		return s.again(ctx, err)
	}
	return nil
}

// again waits a moment before a heartbeat that failed is sent again.
func (s *Session) again(ctx context.Context, err error) error {
	s.log.Warn("a heartbeat to the ResourceManager failed, trying again", "err", err)
	if !sleep(ctx, s.cfg.Busy) {
		return ctx.Err()
	}
	return nil
}

// refusedConstraints makes the book keep by itself what the scheduler would not. It reports whether that was the heartbeat's fault.
func (s *Session) refusedConstraints(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.book.RefusedConstraints()
	if had {
		s.log.Info("the scheduler takes no placement constraints: keeping agents apart without", "err", err)
	}
	return had
}

func (s *Session) with(f func(*book.Book)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.book)
}

// refused finds the ask that the ResourceManager won't take.
func (s *Session) refused(err error) {
	s.mu.Lock()
	bad := s.book.RefusedAsk()
	s.mu.Unlock()
	for _, r := range bad {
		s.log.Error("the ResourceManager refused an ask, which is dropped", "ask", keyName(r.Key), "err", err)
		if s.cfg.Rejected != nil {
			s.cfg.Rejected(r.Key, err)
		}
	}
}

// resync registers again with a ResourceManager that has forgotten the master.
func (s *Session) resync(ctx context.Context) error {
	s.log.Info("the ResourceManager does not know this master: registering again")
	reg, err := s.registerUntil(ctx)
	switch {
	case err == nil:
		s.hear(book.Outcome{Kept: reg.Kept})
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case hrpc.ClassOf(err) == hrpc.ClassAttemptNotFound, hrpc.ClassOf(err) == hrpc.ClassInvalidToken:
		return fmt.Errorf("%w: %w", ErrOver, err)
	}
	return err
}

// unregister says goodbye until the ResourceManager has taken note.
func (s *Session) unregister(ctx context.Context, req *pb.FinishApplicationMasterRequestProto) error {
	for {
		var resp pb.FinishApplicationMasterResponseProto
		err := s.client.Call(ctx, "finishApplicationMaster", req, &resp)
		switch {
		case err == nil && resp.GetIsUnregistered():
			return nil
		case err == nil:
		case hrpc.ClassOf(err) == hrpc.ClassNotRegistered:
			err = s.resync(ctx)
		case passing(err):
			s.log.Warn("cannot unregister, trying again", "err", err)
			err = nil
		}
		if err != nil {
			return fmt.Errorf("cannot unregister: %w", err)
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("cannot unregister: the ResourceManager has not confirmed it: %w", ctx.Err())
		}
	}
}

// hear queues an outcome for the teller.
func (s *Session) hear(o book.Outcome) {
	if len(o.Granted)+len(o.Kept)+len(o.Surplus)+len(o.Crowded)+len(o.Completed)+len(o.Nodes)+len(o.Preempt)+len(o.Wishes)+len(o.Updated)+len(o.Refused) == 0 && !o.Shutdown {
		return
	}
	s.mu.Lock()
	s.heard = append(s.heard, o)
	s.mu.Unlock()
	s.tell()
}

func (s *Session) tell() {
	select {
	case s.tells <- struct{}{}:
	default:
	}
}

// teller calls Heard, so that the loop never waits for it. It ends after the loop, when all is told.
func (s *Session) teller() {
	defer s.wg.Done()
	for {
		s.mu.Lock()
		list := s.heard
		s.heard = nil
		s.mu.Unlock()
		for _, o := range list {
			if s.cfg.Heard != nil {
				s.cfg.Heard(o)
			}
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-s.tells:
			continue
		case <-s.done:
		}
		s.mu.Lock()
		rest := len(s.heard)
		s.mu.Unlock()
		if rest == 0 {
			return
		}
	}
}
