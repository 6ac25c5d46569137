// Package bufpool hands out fixed-size segments from one accounted total.
//
// Every user opens an Account. An account has a guaranteed number of segments, set aside when it
// is opened (which fails at once, saying what is missing, when the total can't cover it), and may
// borrow floating ones from what no account has set aside. Because guaranteed segments are never
// lent, users can't starve each other, whatever order they start in.
//
// A floating segment is a ticket first and memory later: Borrow takes the ticket (a credit may be
// announced for it), Get hands out memory when bytes arrive. So segments that were credited but
// never used cost no memory.
//
// Bound: an account that opens while others hold floating segments may push what is promised above the total, by no more
// than the floating segments out at that moment. None is lent until they have come back, so the excess only shrinks
// until the next account opens, and memory that was allocated for it is let go as it returns.
// (To wait for them instead would let a slow task delay the start of another.)
package bufpool

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Room around the payload of a Segment. Both keep the payload 64-byte aligned.
const (
	HeadRoom = 64  // in front of the payload: a frame's header lies directly before it, so that both are one write
	TailRoom = 128 // behind it: the next frame's header, and a small frame before that, are picked up in the same read
)

const slabSegments = 16 // segments allocated together

// Segment is a fixed-size piece of memory with room for a frame header in front.
type Segment struct {
	mem  []byte
	size int
	lone bool         // allocated by itself, not in a slab
	held atomic.Int32 // how many Puts are still to be made beside the last

	// Aside is for what whoever has the segment would else make anew for each. It stays as it is when the segment goes from one to the next.
	Aside any
}

// Retain keeps the segment's payload as it is for one more user, whose Put gives it back; the last Put of all frees it.
// The caller must know that the segment is in use, and stays so during the call.
func (s *Segment) Retain() { s.held.Add(1) }

// Bytes returns the payload's room, 64-byte aligned.
func (s *Segment) Bytes() []byte { return s.mem[HeadRoom : HeadRoom+s.size : HeadRoom+s.size] }

// Frame returns the n bytes directly before the payload and the first m bytes of the payload, as one slice.
func (s *Segment) Frame(n, m int) []byte { return s.mem[HeadRoom-n : HeadRoom+m] }

// Read returns the payload's bytes from i to j, where j may reach into the tail room.
func (s *Segment) Read(i, j int) []byte { return s.mem[HeadRoom+i : HeadRoom+j] }

// MemoryError reports that the total can't cover a guarantee.
type MemoryError struct {
	For          string // who asked
	Need, Have   int    // segments asked for, and not yet set aside
	Total        int    // segments of the pool
	SegmentBytes int    // as they are configured
}

func (e *MemoryError) Error() string {
	need := int64(e.Total-e.Have+e.Need) * int64(e.SegmentBytes)
	return fmt.Sprintf("cannot set aside exchange memory for %s: needs %d segments of %s, %d of %d are free; raise exchange.memory to at least %s",
		e.For, e.Need, amount(int64(e.SegmentBytes)), e.Have, e.Total, amount(need))
}

// amount tells bytes in the terms of the options.
func amount(n int64) string {
	switch {
	case n > 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n > 0 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}

// Pool is the total. Its methods, and those of its accounts and segments, may be called from any goroutine.
type Pool struct {
	// Immutable after New.
	size, total int
	header      int

	// Guarded by mu, which is a leaf: nothing is locked or called under it.
	mu       sync.Mutex
	free     []*Segment
	made     int // segments that exist
	reserved int // Σ guaranteed of open accounts
	floating int // tickets out beyond guarantees
}

// New returns a pool of total segments of size bytes of payload. It allocates memory as it is used. Errors tell sizes with a frame's
// header, of header bytes, as they are configured.
func New(size, header, total int) *Pool { return &Pool{size: size, header: header, total: total} }

// SegmentBytes is the payload's room in each segment.
func (p *Pool) SegmentBytes() int { return p.size }

// Stats are a pool's figures, in segments.
type Stats struct {
	Total    int // configured
	Reserved int // guaranteed to open accounts
	Floating int // lent beyond that
	Used     int // handed out and not returned
	Made     int // memory allocated so far
}

// Stats returns the current figures.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Total: p.total, Reserved: p.reserved, Floating: p.floating, Used: p.made - len(p.free), Made: p.made}
}

// Account is one user's share of a Pool.
type Account struct {
	// Immutable after Open.
	pool *Pool
	max  int // most tickets

	// Guarded by pool.mu.
	guaranteed int
	own        int // of guaranteed, those handed out by Borrow
	ownFree    int // of own, not borrowed now
	borrowed   int // tickets out
	closed     bool
}

// Open sets exclusive+floatMin segments aside. floatMin of them are lent by Borrow like floating ones,
// but always there for this account; it can borrow floatMax at once in all.
func (p *Pool) Open(what string, exclusive, floatMin, floatMax int) (*Account, error) {
	floatMax = max(floatMin, floatMax)
	need := exclusive + floatMin
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.checkLocked(what, need); err != nil {
		return nil, err
	}
	p.reserved += need
	return &Account{pool: p, max: floatMax, guaranteed: need, own: floatMin, ownFree: floatMin}, nil
}

// Check returns the error with which Open would fail if need segments were to be set aside now.
func (p *Pool) Check(what string, need int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.checkLocked(what, need)
}

func (p *Pool) checkLocked(what string, need int) error {
	if p.reserved+need > p.total {
		return &MemoryError{For: what, Need: need, Have: p.total - p.reserved, Total: p.total, SegmentBytes: p.size + p.header}
	}
	return nil
}

// Borrow takes up to n floating tickets and returns how many it got.
func (a *Account) Borrow(n int) int { return a.borrow(n, 0) }

// Overdraw takes one ticket although the account may have its most already, at most beyond more than that, out of what
// nobody has set aside or borrowed.
func (a *Account) Overdraw(beyond int) bool { return a.borrow(1, beyond) == 1 }

func (a *Account) borrow(n, beyond int) int {
	p := a.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.closed {
		return 0
	}
	n = min(n, a.max+beyond-a.borrowed)
	if n <= 0 {
		return 0
	}
	fromOwn := min(n, a.ownFree)
	share := a.shareLocked()
	if beyond > 0 {
		share = max(0, p.total-p.reserved-p.floating)
	}
	fromPool := min(n-fromOwn, share)
	a.ownFree -= fromOwn
	p.floating += fromPool
	a.borrowed += fromOwn + fromPool
	return fromOwn + fromPool
}

// greed is how many times what would be left for others an account may have of floating segments.
// Thus accounts that all want more than there is come to equal shares, whoever was first, and one alone gets most.
const greed = 4

// shareLocked is how many floating segments a may take from the pool now.
func (a *Account) shareLocked() int {
	free := a.pool.total - a.pool.reserved - a.pool.floating
	if free <= 0 {
		return 0
	}
	lent := a.borrowed - (a.own - a.ownFree)
	share := (greed*free - lent) / (greed + 1) // the largest k with lent+k ≤ greed × (free-k)
	if lent == 0 {
		share = max(share, 1)
	}
	return max(share, 0)
}

// Reach is how many tickets the account could have out now: those that it has, and those that Borrow would get it beside them.
func (a *Account) Reach() int {
	p := a.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.closed {
		return 0
	}
	return a.borrowed + min(max(0, a.max-a.borrowed), a.ownFree+a.shareLocked())
}

// Repay gives n floating tickets back.
func (a *Account) Repay(n int) {
	p := a.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	a.repayLocked(n)
}

func (a *Account) repayLocked(n int) {
	if a.closed {
		return
	}
	if n > a.borrowed {
		panic("bufpool: repaid more than borrowed")
	}
	a.borrowed -= n
	lent := a.borrowed + n - (a.own - a.ownFree) // tickets from the pool
	toPool := min(n, lent)
	a.pool.floating -= toPool
	a.ownFree += n - toPool
}

// Get hands out memory for one segment that is covered by a guarantee or a ticket.
func (p *Pool) Get() *Segment {
	p.mu.Lock()
	if len(p.free) == 0 {
		p.growLocked()
	}
	s := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.mu.Unlock()
	return s
}

// Put takes segments back.
func (p *Pool) Put(segs ...*Segment) {
	p.mu.Lock()
	for _, s := range segs {
		switch {
		case s.held.Load() > 0 && s.held.Add(-1) >= 0: // another one has it still
		case s.lone && p.made > p.total: // was beyond the total: memory goes back
			p.made--
		default:
			p.free = append(p.free, s)
		}
	}
	p.mu.Unlock()
}

// growLocked allocates a slab, or a single segment where the total is reached already.
func (p *Pool) growLocked() {
	n := min(slabSegments, max(1, p.total-p.made))
	stride := (HeadRoom + p.size + TailRoom + 63) &^ 63
	mem := alignedBytes(n * stride)
	segs := make([]Segment, n)
	for i := range segs {
		segs[i].mem, segs[i].size, segs[i].lone = mem[i*stride:(i+1)*stride:(i+1)*stride], p.size, n == 1
		p.free = append(p.free, &segs[i])
	}
	p.made += n
}

// Close gives the guarantee and all tickets back. Segments still out are returned by Pool.Put as ever.
func (a *Account) Close() {
	p := a.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.closed {
		return
	}
	a.repayLocked(a.borrowed)
	a.closed = true
	p.reserved -= a.guaranteed
}
