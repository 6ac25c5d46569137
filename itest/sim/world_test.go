package sim

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// config is what a world is made of.
type config struct {
	agents   slotmgr.Config
	slots    slotpool.Config
	restarts int
	jobs     []*jobgraph.Graph
	hosts    int
	life     time.Duration // how long a task runs by itself; 0: until it is told to end
}

// world is a cluster in virtual time.
type world struct {
	cfg    config
	rng    *rand.Rand // nil: nothing is left to chance
	now    time.Time
	events events
	seq    int
	steps  int
	wake   time.Time // when the plane is asked next, if nothing happens before

	master   *master
	driver   *driver
	agents   map[cluster.AgentID]*agent
	order    []*agent
	adopted  int  // agents of an earlier attempt that a master took over
	calm     bool // no more faults
	lines    []string
	digest   uint64
	problems []string
}

type event struct {
	at  time.Time
	seq int
	run func()
}

// events is a heap: the earliest first, in order of their making among those of one time.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if e[i].at.Equal(e[j].at) {
		return e[i].seq < e[j].seq
	}
	return e[i].at.Before(e[j].at)
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

func newWorld(cfg config, rng *rand.Rand) *world {
	w := &world{cfg: cfg, rng: rng, now: epoch, agents: map[cluster.AgentID]*agent{}}
	w.boot()
	return w
}

// boot starts a master, the first or the next attempt.
func (w *world) boot() {
	attempt := uint32(0)
	if w.master != nil {
		attempt = w.master.attempt + 1
	}
	cfg := w.cfg.agents
	cfg.Attempt = attempt
	var jobs []plane.Job
	for i, g := range w.cfg.jobs {
		s, err := sched.New(sched.Config{FirstAttempt: int(attempt) << eraBits, Restart: sched.FixedDelay{Times: w.cfg.restarts, Delay: time.Second}, CancelTimeout: 15 * time.Second}, g)
		if err != nil {
			panic(err)
		}
		jobs = append(jobs, plane.Job{ID: cluster.JobID(fmt.Sprint("j", i+1)), Pool: slotpool.New(w.cfg.slots), Sched: s})
	}
	w.master = &master{w: w, attempt: attempt, plane: plane.New(slotmgr.New(cfg), jobs...), links: map[cluster.AgentID]*link{}}
	w.driver = &driver{w: w, master: w.master}
}

// after runs f later.
func (w *world) after(d time.Duration, f func()) {
	w.seq++
	heap.Push(&w.events, event{w.now.Add(d), w.seq, f})
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	w.settle()
	for len(w.events) > 0 && !w.events[0].at.After(end) && len(w.problems) == 0 {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.run()
		w.settle()
	}
	w.now = end
}

// settle brings the plane to rest, and checks that all is well.
func (w *world) settle() {
	w.steps++
	w.master.settle()
	if w.master.plane.More() { // other events of this moment may come in between
		w.after(0, func() {})
		return
	}
	w.check()
	if next := w.master.plane.Next(); !next.IsZero() && (w.wake.IsZero() || next.Before(w.wake)) {
		if !next.After(w.now) {
			w.broken("the plane wants to be asked again at once, at %v: it would never sleep", next.Sub(epoch))
			return
		}
		w.wake = next
		w.after(next.Sub(w.now), func() {
			if !w.now.Before(w.wake) {
				w.wake = time.Time{}
			}
		})
	}
}

// chance is true in one of n cases, never where nothing is left to chance.
func (w *world) chance(n int) bool { return w.rng != nil && !w.calm && w.rng.IntN(n) == 0 }

// delay is about d: between half and five times that, by chance.
func (w *world) delay(d time.Duration) time.Duration {
	if w.rng == nil {
		return d
	}
	if w.rng.IntN(20) == 0 {
		return d * 5
	}
	return d/2 + time.Duration(w.rng.Int64N(int64(d)))
}

// log adds a line to the trace.
func (w *world) log(format string, args ...any) {
	line := fmt.Sprintf("%v "+format, append([]any{w.now.Sub(epoch)}, args...)...)
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, w.digest, line)
	w.digest = h.Sum64()
	if len(w.lines) > 400 && w.rng != nil {
		w.lines = w.lines[200:]
	}
	w.lines = append(w.lines, line)
}

// broken notes that something that must always hold does not.
func (w *world) broken(format string, args ...any) {
	w.log("BROKEN: "+format, args...)
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}
