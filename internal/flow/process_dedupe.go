package flow

import "time"

// Deduper is the Setup of a process operator that passes on the first record of a key and leaves out
// those that come within a time of it; for ever if that is 0.
func Deduper[K comparable, T any](within time.Duration) func(*States) Processor[K, T, T] {
	return func(s *States) Processor[K, T, T] {
		since := NewValue[Instant](s, "since")
		return Processor[K, T, T]{
			Process: func(c *ProcessContext[K, T], rec T) error {
				at, timed := c.Time()
				if !timed {
					at = Instant(c.Now())
				}
				if first, ok := since.Lookup(); ok && (within == 0 || at < first.Add(within)) {
					return nil
				}
				c.Emit(rec)
				since.Set(at)
				switch until := at.Add(within); {
				case within == 0:
				case timed:
					c.SetEventTimer(until)
				default:
					c.SetProcessingTimer(until)
				}
				return nil
			},
			OnTimer: func(c *ProcessContext[K, T], t Timer) error {
				if first, ok := since.Lookup(); ok && t.At >= first.Add(within) {
					since.Clear()
				}
				return nil
			},
		}
	}
}
