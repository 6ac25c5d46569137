package appmaster

import (
	"fmt"
	"testing"
	"time"
)

// TestStrangers shows that a host is told of once in a while, and that many hosts don't fill the log.
func TestStrangers(t *testing.T) {
	s, now := strangers{}, time.Unix(0, 0)
	for _, c := range []struct {
		host  string
		after time.Duration
		want  bool
	}{{"a", 0, true}, {"a", time.Second, false}, {"b", 0, true}, {"a", strangerPause, true}, {"a", 0, false}} {
		now = now.Add(c.after)
		if got := s.seen(c.host, now); got != c.want {
			t.Errorf("%s at %v: %v", c.host, now, got)
		}
	}
	told := 0
	for i := range 1000 {
		if s.seen(fmt.Sprint("host-", i), now) {
			told++
		}
	}
	if told >= maxStrangers {
		t.Errorf("told of %d more hosts", told)
	}
}
