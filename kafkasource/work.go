package kafkasource

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// work is batches of one split that are to be decoded: a part of a response, or a copy of one.
type work struct {
	batches []byte
	aborted []batch.Transaction
	next    int64 // the position after them
	epoch   int32 // of the leader that appended the last of them
	reset   bool  // data was lost: the position becomes next
	begun   bool  // the split's abort has its aborted transactions
	owned   int   // bytes of memory that are its own; 0: it is a response's
}

// split is one partition being read.
type split struct {
	target *kafka.Target
	id     string
	pos    int64 // next offset to emit
	ended  bool
	abort  batch.Aborted

	// A split is suspended while somebody paused it or its rate is used up. What is fetched of it meanwhile waits in held, in
	// memory of its own, so that the splits it was fetched with go on; fetching stops until that is used up. If
	// there is no room to hold it, it is dropped, and fetched again later.
	paused  bool
	rate    bucket
	held    []work
	dry     bool  // fetching is stopped
	dropped bool  // something was dropped since fetching stopped: what follows it must be, too
	since   int64 // parts of an earlier Gen are of before it was resumed
	next    int64 // the position after what is held
	epoch   int32 // of the leader that appended the last before next; -1: unknown

	records int64
	marked  int64 // pos at the last mark
}

// suspended reports whether the split gives nothing now, and when it will by itself; 0: when it is resumed.
func (s *split) suspended(now int64) (bool, int64) {
	if s.paused {
		return true, 0
	}
	if at := s.rate.ready(now); at > now {
		return true, at
	}
	return false, 0
}

// bucket bounds the rate of a split: a token a record, at most those of a second. It may go below zero.
type bucket struct {
	rate   float64 // a second; 0: no bound
	tokens float64
	at     int64 // when tokens was right, in milliseconds; 0: never
}

// ready returns when there is a token: now or later.
func (b *bucket) ready(now int64) int64 {
	if b.rate <= 0 {
		return now
	}
	if b.at == 0 {
		b.at, b.tokens = now, 1
	}
	if now > b.at {
		b.tokens = min(b.tokens+b.rate*float64(now-b.at)/1000, max(b.rate, 1))
		b.at = now
	}
	if b.tokens >= 1 {
		return now
	}
	return now + int64((1-b.tokens)*1000/b.rate) + 1
}

func (b *bucket) take(n int) {
	if b.rate > 0 {
		b.tokens -= float64(n)
	}
}

// few reports that records must be taken one by one, so as not to go far beyond the rate.
func (b *bucket) few() bool { return b.rate > 0 && b.tokens < 100 }

// hold keeps work until its split goes on, or drops it. front says that it comes before what is held already; it may be partly decoded.
func (r *reader) hold(s *split, w work, front bool) {
	r.stop(s)
	size := len(w.batches)
	if s.dropped && !front {
		return
	}
	if r.heldBytes+size > r.maxHeld {
		if front { // what follows it must go too
			r.drop(s)
		}
		s.dropped = true
		return
	}
	r.heldBytes += size
	w.batches, w.owned = slices.Clone(w.batches), size
	s.keep(w, front)
}

// keep puts work whose memory is its own before or behind what is held.
func (s *split) keep(w work, front bool) {
	if front {
		s.held = slices.Insert(s.held, 0, w)
	} else {
		s.held = append(s.held, w)
	}
	if last := &s.held[len(s.held)-1]; len(s.held) == 1 || !front {
		s.next, s.epoch = last.next, last.epoch
	}
}

// drop gives up what is held.
func (r *reader) drop(s *split) {
	for _, w := range s.held {
		r.heldBytes -= w.owned
	}
	s.held = nil
}

// stop stops fetching.
func (r *reader) stop(s *split) {
	if !s.dry {
		s.dry = true
		s.target.Pause()
		r.stopped = append(r.stopped, s)
	}
}

// refill makes fetching go on behind what is held.
func (r *reader) refill(s *split) {
	from, epoch := s.pos, int32(-1)
	switch {
	case len(s.held) > 0:
		from, epoch = s.next, s.epoch
	case r.busy && r.split == s:
		from, epoch = max(from, r.work.next), r.work.epoch
	}
	s.dry, s.dropped = false, false
	s.since = r.puller.Resume(s.target, from, epoch)
}

// takeUp begins what is held of a split that is not suspended, and makes fetching go on where nothing more is held. It reports
// whether there was work, and else asks for a timer if there will be.
func (r *reader) takeUp() bool {
	now, next := r.rt.Now(), flow.MaxTime
	for i := 0; i < len(r.stopped); i++ {
		s := r.stopped[(r.turn+i)%len(r.stopped)]
		switch no, until := s.suspended(now); {
		case s.ended:
		case no && until > 0:
			next = min(next, until)
			continue
		case no:
			continue
		case len(s.held) > 0:
			w := s.held[0]
			s.held = slices.Delete(s.held, 0, 1)
			r.turn = (r.turn + i + 1) % len(r.stopped)
			r.begin(s, w)
			if len(s.held) == 0 {
				r.refill(s)
				r.forget(s)
			}
			return true
		default:
			r.refill(s)
		}
		r.forget(s)
		i--
	}
	r.rt.SetTimer(next)
	return false
}

// forget takes a split from those that are stopped.
func (r *reader) forget(s *split) {
	r.stopped = slices.DeleteFunc(r.stopped, func(o *split) bool { return o == s })
}

// putBack gives up the work under way, and what is left of it waits. The batch that is being decoded will be decoded again, without what was emitted.
func (r *reader) putBack() {
	s, w := r.split, r.work
	w.batches = r.rest
	if !r.cursor.Done() {
		w.batches = r.batch[:len(r.batch)+len(r.rest)]
	}
	r.cursor, r.busy = batch.Cursor{}, false
	if w.owned > 0 {
		r.stop(s)
		s.keep(w, true)
		return
	}
	r.hold(s, w, true)
}

// Pause implements flow.Pauser.
func (r *reader) Pause(id string, on bool) {
	i := slices.IndexFunc(r.splits, func(s *split) bool { return s.id == id })
	if i < 0 || r.splits[i].ended {
		return
	}
	s := r.splits[i]
	if s.paused = on; on {
		r.stop(s)
	}
}
