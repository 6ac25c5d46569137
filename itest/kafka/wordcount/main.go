// Command wordcount is the Go job of the integration tests: it counts the words of a topic's lines
// into another topic, as "count word".
package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/kafkasource"
	"github.com/heddle-stream/heddle/run"
)

func main() {
	in := flag.String("in", "lines", "topic to read")
	out := flag.String("out", "counts", "topic to write")
	flag.Parse()

	job := heddle.NewJob("wordcount")
	lines := heddle.From(job, kafkasource.Topics(*in).Stop(kafkasource.Latest()), heddle.Text())
	words := heddle.FlatMap(lines, func(line string, emit func(string)) {
		for w := range strings.FieldsSeq(line) {
			emit(w)
		}
	})
	byWord := heddle.KeyBy(words, func(w string) string { return w })
	counts := heddle.Aggregate(heddle.Global(byWord), heddle.Count[string]())
	result := heddle.Map(counts, func(w heddle.Windowed[string, int64]) string { return fmt.Sprintf("%d %s", w.Value, w.Key) })
	heddle.To(result, kafkasink.Topic(*out), heddle.Text())
	run.Main(job)
}
