// Command wordcount counts the words of text files:
//
//	go run ./examples/wordcount -in 'docs/*.md' -out /tmp/words run --parallelism 2
//
// wordcount.yaml beside it is the same job in YAML.
package main

import (
	"flag"
	"strings"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/run"
)

// WordCount is a line of the result.
type WordCount struct {
	Word  string `json:"word"`
	Count int64  `json:"count"`
}

func main() {
	in := flag.String("in", "README.md", "files to read")
	out := flag.String("out", "", "folder to write to; standard output if empty")
	flag.Parse()
	run.Main(job(*in, *out))
}

func job(in, out string) *heddle.Job {
	job := heddle.NewJob("wordcount")
	lines := heddle.From(job, heddle.Files(in), heddle.Text())
	words := heddle.FlatMap(lines, func(line string, emit func(string)) {
		for word := range strings.FieldsSeq(line) {
			emit(word)
		}
	})
	byWord := heddle.KeyBy(words, func(word string) string { return word })
	// A global window fires once, at the end of the input.
	counts := heddle.Aggregate(heddle.Global(byWord), heddle.Count[string]())
	result := heddle.Map(counts, func(w heddle.Windowed[string, int64]) WordCount { return WordCount{w.Key, w.Value} })
	if out == "" {
		heddle.To(result, heddle.Stdout(), heddle.JSON[WordCount]())
	} else {
		heddle.To(result, heddle.ToFiles(out), heddle.JSON[WordCount]())
	}
	return job
}
