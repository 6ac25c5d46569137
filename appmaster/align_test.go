package appmaster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// alignTest is a job of three sources: a and b, of two subtasks and one, are one group, and c is another.
type alignTest struct {
	a     *alignment
	now   time.Time
	tasks map[[2]int]alignTask
}

type alignTask struct {
	attempt int
	state   cluster.TaskState
}

func newAlignTest() *alignTest {
	job, g := &flow.Graph{}, &jobgraph.Graph{}
	for v, s := range []struct {
		group string
		par   int
	}{{"orders", 2}, {"other", 1}, {"orders", 1}, {"", 1}} {
		n := job.Add(&flow.Node{Kind: "source", Align: flow.Alignment{Group: s.group, MaxDrift: time.Minute}})
		g.Vertices = append(g.Vertices, jobgraph.Vertex{ID: v, Source: n.ID, Parallelism: s.par})
	}
	return &alignTest{a: newAlignment(job, g), now: time.Unix(1000, 0), tasks: map[[2]int]alignTask{}}
}

func (t *alignTest) say(vertex, subtask, attempt int, mark int64) {
	t.a.stands(cluster.ExecutionID{Vertex: vertex, Subtask: subtask, Attempt: attempt}, mark)
}

// told is what agents are told after a while.
func (t *alignTest) told() string {
	t.now = t.now.Add(alignPace)
	return t.toldNow()
}

func (t *alignTest) toldNow() string {
	var out []string
	for _, g := range t.a.due(t.now, func(v, s int) (int, cluster.TaskState) {
		return t.tasks[[2]int{v, s}].attempt, t.tasks[[2]int{v, s}].state
	}) {
		least := fmt.Sprint(g.GetLeast())
		if g.GetLeast() == flow.MaxTime {
			least = "nobody"
		}
		out = append(out, g.GetGroup()+" "+least)
	}
	return strings.Join(out, ", ")
}

func TestAlignment(t *testing.T) {
	r := newAlignTest()
	want := func(what, text string) {
		t.Helper()
		if got := r.told(); got != text {
			t.Errorf("%s: told %q, want %q", what, got, text)
		}
	}
	want("at the start", "")
	r.say(0, 0, 0, 100)
	r.say(0, 1, 0, 200)
	want("one of the group is still to say where it stands", "")
	r.say(1, 0, 0, 7)
	want("another group", "other 7")
	r.say(2, 0, 0, 300)
	want("all have", "orders 100")
	r.say(2, 0, 0, 400)
	want("the slowest has not moved", "")
	r.say(0, 0, 0, 150)
	want("it has", "orders 150")
	r.say(0, 0, 0, 160)
	if got := r.toldNow(); got != "" {
		t.Errorf("told %q too soon", got)
	}
	if r.a.when().IsZero() {
		t.Errorf("it does not say when to look again")
	}
	want("later", "orders 160")
	if !r.a.when().IsZero() {
		t.Errorf("it wants to look again though nobody has moved")
	}
	r.say(0, 0, 0, flow.MaxTime)
	want("the slowest is idle", "orders 200")
	r.say(0, 0, 0, 50)
	want("it is back, with old records", "orders 50")
	r.tasks[[2]int{0, 0}] = alignTask{1, cluster.Deploying}
	r.say(0, 1, 0, 210)
	want("it is started anew, and waited for as if it stood where it was", "")
	r.say(0, 0, 0, 900)
	want("a late word of the attempt before", "")
	r.say(0, 0, 1, 60)
	want("and of the new one", "orders 60")
	r.say(0, 0, 0, 900)
	want("a later one of the attempt before", "")
	r.tasks[[2]int{0, 0}] = alignTask{1, cluster.Finished}
	r.say(0, 1, 0, 220)
	want("it has finished", "orders 220")
	r.tasks[[2]int{0, 1}], r.tasks[[2]int{2, 0}] = alignTask{0, cluster.Finished}, alignTask{0, cluster.Finished}
	r.say(0, 1, 0, 230)
	want("all have", "orders nobody")
	r.say(3, 0, 0, 1)
	r.say(0, 9, 0, 1)
	r.say(9, 0, 0, 1)
	want("what is no group's", "")
	var all []string
	for _, g := range r.a.all() {
		all = append(all, g.GetGroup())
	}
	if got := strings.Join(all, " "); got != "orders other" {
		t.Errorf("an agent that comes is told of %q", got)
	}
}
