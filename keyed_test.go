package heddle

import (
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

type click struct {
	User, URL string
	Bytes     int64
	At        time.Time
}

// clicks is a stream without anything behind it: these tests look at the graph alone.
func clicks(j *Job) Stream[click] {
	return addNode[click](j, nodeSpec{kind: "source", new: flow.NewMap(func(c click) click { return c })})
}

func TestWindowOnGraph(t *testing.T) {
	j := NewJob("clicks-per-user")
	perUser := KeyBy(clicks(j), func(c click) string { return c.User })
	counts := Aggregate(Tumbling(perUser, time.Minute).AllowedLateness(time.Second), Count[click]()).Parallelism(3)
	n := counts.op.node
	if !n.Keyed || n.Kind != "window" || n.Detail != "tumbling 1m0s lateness 1s" || n.In[0].Part.Kind != flow.Hash || n.Parallelism != 3 {
		t.Errorf("window node: got %+v", n)
	}
	if _, ok := n.In[0].Part.Impl.(*flow.KeyBy[click]); !ok {
		t.Errorf("partitioning: got %T, want *flow.KeyBy[click]", n.In[0].Part.Impl)
	}
	if len(j.graph.Errs) > 0 || n.Check() != nil {
		t.Errorf("errors: %v, %v", j.graph.Errs, n.Check())
	}
}

func TestAggregateLateHasTwoOutputs(t *testing.T) {
	j := NewJob("late")
	w := Session(All(clicks(j)), time.Minute)
	results, late := AggregateLate(w, Sum(func(c click) int64 { return c.Bytes }))
	n := results.op.node
	if len(n.Outputs) != 2 || n.Outputs[1].Name() != "heddle.click" || late.ups[0].FromPort != 1 || n.Parallelism != 1 {
		t.Errorf("outputs %v, late port %d, parallelism %d", n.Outputs, late.ups[0].FromPort, n.Parallelism)
	}
}

// badAcc can't be kept in a checkpoint.
type badAcc struct{}

func (badAcc) Zero() chan int                   { return nil }
func (badAcc) Add(a chan int, _ click) chan int { return a }
func (badAcc) Merge(a, _ chan int) chan int     { return a }
func (badAcc) Result(chan int) int              { return 0 }

func TestKeyedMistakes(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(j *Job)
		want  string
	}{
		{"key type", func(j *Job) { KeyBy(clicks(j), func(c click) *click { return &c }) }, "can't be a key"},
		{"size", func(j *Job) {
			Aggregate(Tumbling(All(clicks(j)), 0), Count[click]())
		}, "window size 0s is not a positive"},
		{"slide", func(j *Job) {
			Aggregate(Sliding(All(clicks(j)), time.Minute, time.Microsecond), Count[click]())
		}, "slide 1µs is not a positive whole number of milliseconds"},
		{"gaps", func(j *Job) {
			Aggregate(Sliding(All(clicks(j)), time.Hour, 2*time.Hour), Count[click]())
		}, "slide 2h0m0s is longer than the windows of 1h0m0s"},
		{"zone", func(j *Job) {
			Aggregate(Calendar(All(clicks(j)), Day, "Mars/Olympus"), Count[click]())
		}, "Mars/Olympus"},
		{"no zone", func(j *Job) {
			Aggregate(Calendar(All(clicks(j)), Day, ""), Count[click]())
		}, "not the same everywhere"},
		{"lateness by the clock", func(j *Job) {
			Aggregate(Tumbling(All(clicks(j)), time.Minute).ProcessingTime().AllowedLateness(time.Second), Count[click]())
		}, "nothing can be late"},
		{"accumulator", func(j *Job) {
			Aggregate(Tumbling(All(clicks(j)), time.Minute), badAcc{})
		}, "its accumulators: records of type chan int can't be sent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := NewJob("bad")
			c.build(j)
			var all strings.Builder
			for _, err := range j.graph.Errs {
				all.WriteString(err.Error() + "\n")
			}
			for _, n := range j.graph.Nodes {
				if n.Check == nil {
					continue
				}
				if err := n.Check(); err != nil {
					all.WriteString(err.Error() + "\n")
				}
			}
			if !strings.Contains(all.String(), c.want) {
				t.Errorf("got %q, want something with %q", all.String(), c.want)
			}
		})
	}
}
