package heddle

import (
	"strings"
	"testing"
	"time"
)

// What is nil and must not be is reported with the name of the call, all of it together, and without a panic.
func TestNilArguments(t *testing.T) {
	type proc = Processor[string, click, click]
	user := func(c click) string { return c.User }
	for call, build := range map[string]func(j *Job){
		"Map got nil for its function":         func(j *Job) { Map[click, int](clicks(j), nil) },
		"Filter got nil for its function":      func(j *Job) { Filter(clicks(j), nil) },
		"FlatMap got nil for its function":     func(j *Job) { FlatMap[click, int](clicks(j), nil) },
		"TryMap got nil for its function":      func(j *Job) { TryMap[click, int](clicks(j), nil) },
		"TryFilter got nil for its function":   func(j *Job) { TryFilter(clicks(j), nil) },
		"TryFlatMap got nil for its function":  func(j *Job) { TryFlatMap[click, int](clicks(j), nil) },
		"Apply got nil for the function":       func(j *Job) { Apply[click, int](clicks(j), nil) },
		"PartitionBy got nil for its function": func(j *Job) { clicks(j).PartitionBy(nil) },
		"KeyBy got nil for its function":       func(j *Job) { KeyBy[click, string](clicks(j), nil) },
		"From got nil for its source":          func(j *Job) { From(j, nil, Text()).OnError(SkipOnError).Watermark(Monotonous[string](nil)) },
		"From got nil for its format":          func(j *Job) { From[string](j, Files("x"), nil) },
		"FromSource got nil for its source":    func(j *Job) { FromSource[int](j, nil) },
		"To got nil for its sink":              func(j *Job) { To(From(j, Files("x"), Text()), nil, Text()).Name("x") },
		"To got nil for its format":            func(j *Job) { To(From(j, Files("x"), Text()), Stdout(), nil) },
		"ToSink got nil for its sink":          func(j *Job) { ToSink(clicks(j), nil).Parallelism(2) },
		"Process got nil for its setup":        func(j *Job) { Process[string, click, click](KeyBy(clicks(j), user), nil) },
		"Connect got nil for its setup":        func(j *Job) { Connect[string, click, click, int](KeyBy(clicks(j), user), KeyBy(clicks(j), user), nil) },
		"Reduce got nil for its function":      func(j *Job) { Reduce(KeyBy(clicks(j), user), nil) },
		"Running got nil for its aggregator":   func(j *Job) { Running[string, click, int, int](KeyBy(clicks(j), user), nil) },
		"Aggregate got nil for its aggregator": func(j *Job) { Aggregate[string, click, int, int](Tumbling(KeyBy(clicks(j), user), time.Hour), nil) },
		"UseCodec got nil for the codec":       func(j *Job) { UseCodec[click](j, nil) },
		"its Processor has no Process": func(j *Job) {
			Process(KeyBy(clicks(j), user), func(*States) proc { return proc{} })
		},
	} {
		j := NewJob("nil")
		build(j)
		var all []string
		for _, err := range j.graph.Errs {
			all = append(all, err.Error())
		}
		for _, n := range j.graph.Nodes {
			if n.Check != nil {
				if err := n.Check(); err != nil {
					all = append(all, err.Error())
				}
			}
		}
		if !strings.Contains(strings.Join(all, "\n"), call) {
			t.Errorf("want %q, got %q", call, all)
		}
	}
	for what, build := range map[string]func(){
		"nil job":      func() { From(nil, Files("x"), Text()) },
		"zero stream":  func() { Map(Stream[int]{}, func(i int) int { return i }) },
		"zero named":   func() { Stream[int]{}.Name("x") },
		"zero key":     func() { KeyBy(Stream[int]{}, func(i int) int { return i }) },
		"sink of zero": func() { ToSink(Stream[int]{}, Discard[int]()) },
	} {
		func() {
			defer func() {
				if p := recover(); p != nil && p != any(errNoJob) {
					t.Errorf("%s: %v", what, p)
				}
			}()
			build()
		}()
	}
}
