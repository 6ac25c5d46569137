package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ledger holds what was produced beside what was counted, by user and window.
type ledger struct {
	entered chan struct{} // holds a token when a result was entered since the last look; immutable
	mu      sync.Mutex

	// Guarded by mu.
	cells   map[cell]*entry
	sums    totals
	latest  int64 // end of the newest window in a result, milliseconds
	strange string
}

type totals struct{ produced, counted, results int64 }

// cell is one user in one window.
type cell struct {
	user string
	end  int64 // of the window, milliseconds since the Unix epoch
}

type entry struct {
	produced int64
	counted  int64
	results  int
}

func (l *ledger) init() {
	l.cells = map[cell]*entry{}
	l.entered = make(chan struct{}, 1)
}

// at returns the entry of c. The caller holds mu.
func (l *ledger) at(c cell) *entry {
	e := l.cells[c]
	if e == nil {
		e = &entry{}
		l.cells[c] = e
	}
	return e
}

// produced enters an event that the broker has.
func (l *ledger) produced(user int, at time.Time) {
	c := cell{userName(user), windowEnd(at)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(c).produced++
	l.sums.produced++
}

func windowEnd(at time.Time) int64 {
	w := window.Milliseconds()
	return at.UnixMilli()/w*w + w
}

// result is what the job writes: one line a user and window.
type result struct {
	User   string    `json:"user"`
	End    time.Time `json:"window_end"`
	Clicks int64     `json:"clicks"`
}

// enter enters a result of the job.
func (l *ledger) enter(value []byte) {
	var r result
	err := json.Unmarshal(value, &r)
	defer func() {
		select {
		case l.entered <- struct{}{}:
		default:
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || r.End.IsZero() || r.User == "" {
		l.strange = cmp.Or(l.strange, string(value))
		return
	}
	end := r.End.UnixMilli()
	e := l.at(cell{r.User, end})
	e.counted += r.Clicks
	e.results++
	l.sums.counted += r.Clicks
	l.sums.results++
	l.latest = max(l.latest, end)
}

func (l *ledger) view(n int) View {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := View{Produced: l.sums.produced, Counted: l.sums.counted, Results: l.sums.results}
	if l.latest == 0 {
		return v
	}
	shown := l.shown()
	v.Window = time.UnixMilli(shown)
	by := map[string]*UserCount{}
	for c, e := range l.cells {
		u := by[c.user]
		if u == nil {
			u = &UserCount{User: c.user}
			by[c.user] = u
		}
		u.Total += e.counted
		if c.end == shown {
			u.Count = e.counted
		}
	}
	for _, u := range by {
		v.Top = append(v.Top, *u)
	}
	slices.SortFunc(v.Top, func(a, b UserCount) int { return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.User, b.User)) })
	v.Top = v.Top[:min(n, len(v.Top))]
	return v
}

// shown is the newest window that is worth a look: of which at least half as much is counted as of the fullest.
// The caller holds mu.
func (l *ledger) shown() int64 {
	sums := map[int64]int64{}
	var most, end int64
	for c, e := range l.cells {
		sums[c.end] += e.counted
		most = max(most, sums[c.end])
	}
	for w, n := range sums {
		if n*2 >= most && w > end {
			end = w
		}
	}
	return end
}

// check compares the ledger's two sides.
func (l *ledger) check() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.strange != "" {
		return "", fmt.Errorf("%w: the job wrote %.200q, which is no result", ErrMiscounted, l.strange)
	}
	var wrong []cell
	windows := map[int64]bool{}
	for c, e := range l.cells {
		windows[c.end] = true
		if e.produced != e.counted || e.results != 1 {
			wrong = append(wrong, c)
		}
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b cell) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.user, b.user)) })
		c := wrong[0]
		e := l.cells[c]
		return "", fmt.Errorf("%w: %d events were produced and %d counted; %d of %d counts are wrong, first that of %s in the window to %s: %d produced, %d counted in %d results",
			ErrMiscounted, l.sums.produced, l.sums.counted, len(wrong), len(l.cells), c.user, time.UnixMilli(c.end).UTC().Format(time.TimeOnly), e.produced, e.counted, e.results)
	}
	if l.sums.produced == 0 {
		return "no event was produced, so there was nothing to count", nil
	}
	return fmt.Sprintf("%d events produced, %d counted, in %d results of %d windows: every event exactly once",
		l.sums.produced, l.sums.counted, l.sums.results, len(windows)), nil
}
