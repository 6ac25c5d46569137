package kafka

import (
	"sync"
	"sync/atomic"
	"time"
)

// Target is a partition that a Puller reads, from Start up to and without Stop.
type Target struct {
	// Immutable.
	TP
	Start, Stop int64

	high    atomic.Int64 // end of what can be read for now, -1 unknown
	low     atomic.Int64 // where the log begins, -1 unknown
	healthy atomic.Bool  // its leader answered since it was last lost
	trouble atomic.Pointer[string]
	figures figures

	mu     sync.Mutex
	gen    int64         // guarded by mu: how often it was paused and resumed
	paused bool          // guarded by mu
	ended  bool          // guarded by mu: no fetcher and no loop has it, since it was fetched up to Stop
	pos    int64         // guarded by mu: where it was resumed
	epoch  int32         // guarded by mu: of the leader that appended what is before pos; -1: unknown
	wake   chan struct{} // guarded by mu: of the fetcher that has it; nil: none had it yet

	// Owned by the Puller's loop.
	topicID [16]byte  // of the topic as it was first seen; zero: unknown
	since   time.Time // of the first failure after it was last healthy; zero: none
	tries   int       // failures since then
}

// figures are what is measured of a target.
type figures struct{ fetches, bytes, nanos, empty atomic.Int64 }

func (f *figures) fetched(bytes int, took time.Duration) {
	f.fetches.Add(1)
	f.bytes.Add(int64(bytes))
	f.nanos.Add(int64(took))
}

// Figures are what was measured of a Target.
type Figures struct {
	Fetches int64         // answers that brought something
	Bytes   int64         // record batches as packed
	Waited  time.Duration // from request to answer, of those that brought something, in all
	Empty   int64         // answers that brought nothing
}

// NewTarget makes a target. To read without end stop is math.MaxInt64.
func NewTarget(tp TP, start, stop int64) *Target {
	t := &Target{TP: tp, Start: start, Stop: stop}
	t.high.Store(-1)
	t.low.Store(-1)
	return t
}

// High is the end of what can be read for now: the high watermark, or the last stable offset where only committed data is read; -1 unknown.
func (t *Target) High() int64 { return t.high.Load() }

// Trouble is why the partition can't be read for now; "" if its leader answers.
func (t *Target) Trouble() string {
	if s := t.trouble.Load(); s != nil {
		return *s
	}
	return ""
}

// Figures returns what was measured so far.
func (t *Target) Figures() Figures {
	f := &t.figures
	return Figures{Fetches: f.fetches.Load(), Bytes: f.bytes.Load(), Waited: time.Duration(f.nanos.Load()), Empty: f.empty.Load()}
}

// Pause stops fetching. What was fetched before may still come from Next.
func (t *Target) Pause() {
	t.mu.Lock()
	t.gen++
	t.paused = true
	t.mu.Unlock()
}

// resume makes fetching go on at pos, and returns the number that its Parts will have. lost says that the target must be added to a Puller again.
func (t *Target) resume(pos int64, epoch int32) (gen int64, lost bool) {
	t.mu.Lock()
	t.gen++
	t.paused, t.pos, t.epoch = false, pos, epoch
	gen, lost, t.ended = t.gen, t.ended, false
	wake := t.wake
	t.mu.Unlock()
	if wake != nil {
		notify(wake)
	}
	return gen, lost
}

func (t *Target) setWake(wake chan struct{}) {
	t.mu.Lock()
	t.wake = wake
	t.mu.Unlock()
}

// catchUp follows what was paused and resumed since, and reports whether the target is to be read.
func (t *target) catchUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused {
		return false
	}
	if t.gen != t.Target.gen {
		t.gen, t.pos, t.last = t.Target.gen, t.Target.pos, t.Target.epoch
	}
	return true
}

// current reports whether the target was neither paused nor resumed since it last caught up.
func (t *target) current() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gen == t.Target.gen
}

// finish notes that a target which has come to its stop is given up, unless it was paused or resumed.
func (t *target) finish() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gen != t.Target.gen {
		return false
	}
	t.ended = true
	return true
}
