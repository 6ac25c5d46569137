package hrpc

import (
	"math/rand/v2"
	"time"
)

// backoff grows pauses from Retry's Base to its Max.
type backoff struct{ d time.Duration }

// next returns the next pause, give or take half of it.
func (b *backoff) next(r Retry) time.Duration {
	if b.d == 0 {
		b.d = r.Base
	} else {
		b.d = min(2*b.d, r.Max)
	}
	return b.d/2 + rand.N(b.d+1)
}
