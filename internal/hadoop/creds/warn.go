package creds

import "time"

// Warner tells when to warn of the end of tokens: at first when a quarter of their life is left, but no earlier than a day before the end, then each time half of
// what was left has passed. The zero Warner has told of nothing.
type Warner struct {
	end  time.Time // of the tokens it speaks of
	next time.Time // zero: it has not been looked at
	over bool      // that they have ended was told
}

// Times of warning.
const (
	warnEarliest = 24 * time.Hour
	warnClosest  = time.Second // between two warnings
)

// Look reports whether to warn now of tokens that were issued and end at times. They may be others than those it was asked of before.
func (w *Warner) Look(now, issued, end time.Time) bool {
	if !end.Equal(w.end) {
		*w = Warner{end: end, next: end.Add(-min(warnEarliest, end.Sub(issued)/4))}
	}
	switch left := end.Sub(now); {
	case w.over || now.Before(w.next):
		return false
	case left <= 0:
		w.over = true
	default:
		w.next = now.Add(max(warnClosest, left/2))
	}
	return true
}

// Next is when to look again.
func (w *Warner) Next() time.Time {
	if w.over || w.next.Before(w.end) {
		return w.next
	}
	return w.end
}
