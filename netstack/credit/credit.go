// Package credit is the arithmetic of flow control: a producer's Window of credits to spend,
// and a consumer's Ledger of segments it can receive into. It does no I/O and holds no lock.
//
// One credit is the right to send one data frame, of at most one segment. Events need none.
//
// Invariants, for every channel at every moment:
//
//	ledger:  granted + pending + held = exclusive + floating ≤ max(max, exclusive), until it has ended
//	both:    window ≤ granted               (the difference is on its way: credit one way, data the other)
//	both:    credits spent ≤ credits granted
//
// so a frame always finds a segment, and a sender can't make a receiver hold more than it offered.
// If the sender has data and the receiver holds none, granted > 0 after the announcements that
// Announce asks for, or the channel waits for a floating segment (exclusive = 0): no channel stalls for good.
package credit

import "errors"

// MaxCredit bounds what a peer may grant in all: more is an error, never an overflow.
const MaxCredit = 1 << 20

// Errors of a peer that breaks the rules.
var (
	ErrOverflow = errors.New("more credit than the protocol allows")
	ErrNoCredit = errors.New("data without credit")
)

// Window is the producer's side of a channel.
type Window struct{ credit uint32 }

// Add takes n credits that the consumer granted.
func (w *Window) Add(n uint32) error {
	if n > MaxCredit || w.credit+n > MaxCredit {
		return ErrOverflow
	}
	w.credit += n
	return nil
}

// Credit is what is left to spend.
func (w *Window) Credit() uint32 { return w.credit }

// Spend takes one credit and reports whether there was one.
func (w *Window) Spend() bool {
	if w.credit == 0 {
		return false
	}
	w.credit--
	return true
}

// Ledger is the consumer's side of a channel.
type Ledger struct {
	exclusive, max int // segments that are always the channel's; most it may have with floating ones

	floating int // floating segments it has now
	granted  int // announced to the sender and not yet used
	pending  int // free and not yet announced
	held     int // filled and not yet recycled
	backlog  int // data frames the sender last said it has waiting
	ended    bool
}

// NewLedger returns a ledger with all its exclusive segments granted: the initial credit of the request.
func NewLedger(exclusive, most int) Ledger {
	return Ledger{exclusive: exclusive, max: max(exclusive, most), granted: exclusive}
}

// Receive enters a data frame whose sender has backlog more waiting.
func (l *Ledger) Receive(backlog uint32) error {
	if l.granted == 0 {
		return ErrNoCredit
	}
	l.granted--
	l.held++
	l.Backlog(backlog)
	return nil
}

// Backlog enters what the sender has waiting.
func (l *Ledger) Backlog(n uint32) { l.backlog = int(min(n, MaxCredit)) }

// Want is how many floating segments the channel would use now: enough that what the sender has
// waiting can be sent, and its exclusive ones beyond. Without backlog it wants none.
func (l *Ledger) Want() int {
	if l.backlog == 0 {
		return 0
	}
	return max(0, min(l.required()-l.granted-l.pending, l.max-l.exclusive-l.floating))
}

func (l *Ledger) required() int { return l.backlog + l.exclusive }

// Lend enters n floating segments that the channel got.
func (l *Ledger) Lend(n int) {
	l.floating += n
	l.pending += n
}

// Recycle enters that the consumer is done with one segment. It reports whether the channel gives a
// floating segment back instead of keeping it as credit: when it has enough, has ended, or others wait for one.
func (l *Ledger) Recycle(contended bool) (repay bool) {
	if l.held == 0 {
		panic("credit: recycled more than received")
	}
	l.held--
	if l.floating > 0 && (contended || l.ended || l.granted+l.pending >= l.required()) {
		l.floating--
		return true
	}
	if !l.ended {
		l.pending++
	}
	return false
}

// End enters that the sender has sent its last: credit is void. It returns how many floating segments
// the channel gives back; those that the consumer still holds come back by Recycle.
func (l *Ledger) End() (repay int) {
	kept := min(l.floating, l.held)
	repay = l.floating - kept
	*l = Ledger{exclusive: l.exclusive, max: l.max, floating: kept, held: l.held, ended: true}
	return repay
}

// Announce returns the credits to announce now, and enters them as granted. This is the one rule that
// batches announcements: at least half of the channel's segments, or any when the sender has none left.
func (l *Ledger) Announce() int {
	n := l.pending
	if n == 0 || (l.granted > 0 && 2*n < l.exclusive+l.floating) {
		return 0
	}
	l.granted += n
	l.pending = 0
	return n
}

// Floating is how many floating segments the channel has.
func (l *Ledger) Floating() int { return l.floating }

// InFlight is how many segments are on their way to the consumer or wait for it, at both ends.
func (l *Ledger) InFlight() int { return l.granted + l.held + max(0, l.backlog-l.granted) }

// Granted is how many segments the producer may yet send.
func (l *Ledger) Granted() int { return l.granted }

// Held is how many segments the consumer has not recycled.
func (l *Ledger) Held() int { return l.held }
