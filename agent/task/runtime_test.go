package task

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// Whatever a function calls its counters, and however many it makes, they must fit into a heartbeat.
func TestCountersFitIntoAHeartbeat(t *testing.T) {
	o := &operator{counters: map[string]*flow.Counter{}}
	o.Counter("bad\xffname").Add(1)
	o.Counter("bad\xffname").Add(1)
	o.Counter(strings.Repeat("long", 1000)).Add(1)
	for i := range 3 * maxCounters {
		o.Counter(fmt.Sprint("key ", i)).Add(1)
	}
	o.Counter("key 0").Add(1) // an early one is still its own
	got := o.read()
	sum := int64(0)
	for name, n := range got {
		sum += n
		if !utf8.ValidString(name) || len(name) > cluster.MaxName {
			t.Errorf("a counter is called %q", name)
		}
	}
	if sum != 3*maxCounters+4 || len(got) > maxCounters+1 || got["key 0"] != 2 || got["bad\uFFFDname"] != 2 || got[moreCounters] == 0 {
		t.Errorf("counted %d under %d names, key 0 %d, others %d", sum, len(got), got["key 0"], got[moreCounters])
	}
}
