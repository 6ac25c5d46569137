package heddle_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/heddletest"
)

// What a function can't make sense of need not stop the job.
func ExampleStream_DeadLetters() {
	job := heddle.NewJob("numbers")
	lines := heddle.FromSource(job, heddle.Generate(0, func(int64) string { return "" })).Name("lines")
	numbers := heddle.TryMap(lines, strconv.Atoi).Name("parse")
	heddle.ToSink(numbers, heddle.Discard[int]()).Name("numbers")
	heddle.ToSink(numbers.DeadLetters(), heddle.Discard[heddle.DeadLetter]()).Name("bad")

	h := heddletest.New(&testing.T{}, job)
	in := heddletest.Input[string](h, "lines")
	out, bad := heddletest.Output[int](h, "numbers"), heddletest.Output[heddle.DeadLetter](h, "bad")
	in.Send("1", "two", "3")
	h.End()
	fmt.Println(out.Take())
	for _, d := range bad.Take() {
		fmt.Println(d.Operator, d.Record, d.Reason)
	}
	// Output:
	// [1 3]
	// parse "two" strconv.Atoi: parsing "two": invalid syntax
}

func ExampleFlatMap() {
	job := heddle.NewJob("words")
	lines := heddle.FromSource(job, heddle.Generate(0, func(int64) string { return "" }))
	words := heddle.FlatMap(lines, func(line string, emit func(string)) {
		for word := range strings.FieldsSeq(line) {
			emit(word)
		}
	})
	short := heddle.Filter(words, func(w string) bool { return len(w) < 4 })
	heddle.ToSink(heddle.Map(short, strings.ToUpper), heddle.Discard[string]())

	h := heddletest.New(&testing.T{}, job)
	in, out := heddletest.Input[string](h, ""), heddletest.Output[string](h, "")
	in.Send("to be or not to be", "that is the question")
	h.End()
	fmt.Println(out.Take())
	// Output: [TO BE OR NOT TO BE IS THE]
}
