// Command job is what the tests with Jaeger run: made-up records go from one agent to the other, through a function that may be slow, and on.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/run"
)

func main() {
	heddle.DeclareOption(heddle.Option{Name: "itest.pause", Type: heddle.DurationOption, Default: "0", Doc: "How long each record is worked on."})
	job := heddle.NewJob("traced")
	words := heddle.FromSource(job, heddle.Generate(-1, func(i int64) string { return fmt.Sprintf("word-%d", i) }).Rate(2000))
	worked := heddle.Apply(words.Rebalance(), func() heddle.Func[string, string] { return &work{} })
	heddle.ToSink(worked.Rebalance(), heddle.Discard[string]())
	run.Main(job)
}

// work takes its time.
type work struct{ pause time.Duration }

// Open implements heddle.Func.
func (w *work) Open(_ context.Context, env heddle.Env) error {
	text, _ := env.Option("itest.pause")
	var err error
	w.pause, err = time.ParseDuration(text)
	return err
}

// Apply implements heddle.Func.
func (w *work) Apply(v string, emit func(string)) error {
	if w.pause > 0 {
		time.Sleep(w.pause)
	}
	emit(v)
	return nil
}

// Close implements heddle.Func.
func (w *work) Close() error { return nil }
