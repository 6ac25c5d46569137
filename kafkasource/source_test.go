package kafkasource

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

func TestBoundedOverThreeBrokers(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(8, "a"), kfake.SeedTopics(2, "b"))
	cl := newProducer(t, c)
	for p := range int32(8) {
		if p == 5 {
			continue // stays empty
		}
		for i := range 10 {
			produce(t, cl, "a", p, 100*i, 100*i+100)
		}
	}
	produce(t, cl, "b", 1, 0, 7)
	x := start(t, Topics("a", "b").Stop(Latest()), newRuntime(c.ListenAddrs()[:1]))
	produce(t, cl, "b", 1, 7, 20) // too late
	x.toEnd()
	for p := range 8 {
		if p != 5 {
			x.want(fmt.Sprintf("a-%d", p), 0, 1000)
		}
	}
	x.want("b-1", 0, 7)
	if len(x.ended) != 10 || x.total() != 7007 {
		t.Errorf("%d splits ended with %d records, want 10 with 7007", len(x.ended), x.total())
	}
	for _, s := range x.r.Splits() {
		if want := int64(len(x.got[s.ID])); s.Position != want {
			t.Errorf("position of %s is %d, want %d", s.ID, s.Position, want)
		}
	}
}
