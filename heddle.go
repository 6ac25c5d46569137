// Package heddle is what the author of a job writes with: streams, operators, sources and sinks.
//
// A job is a graph of operators on typed streams. It is built by main, by calls to the functions of this
// package, and run by run.Main(job), which gives the program all verbs of the heddle command:
//
//	func main() {
//		job := heddle.NewJob("word-count")
//		lines := heddle.From(job, heddle.Files("/data/*.txt"), heddle.Text())
//		words := heddle.FlatMap(lines, func(line string, emit func(string)) {
//			for word := range strings.FieldsSeq(line) {
//				emit(word)
//			}
//		})
//		heddle.To(words, heddle.Stdout(), heddle.Text())
//		run.Main(job)
//	}
//
// # What main may do
//
// The client, the application master and every agent are this same program with the same arguments: main
// runs in each of them, up to run.Main, and must build the same graph every time. So main may parse flags and
// read files that are the same everywhere; it must not depend on time, chance, the machine's name or the
// order of a map, must not print, and must not open what an operator needs to run (connections, files): that
// belongs into an operator's Open. A graph that differs between processes is refused with an error.
//
// # Records
//
// Records are values of the author's own types; see [Codec] for which types can be sent from process to process.
// Functions receive records that are borrowed for the call. A string may be kept; a []byte (or a struct's []byte field)
// points into a network buffer and must be copied to be kept. Records are shared between the consumers
// of a stream and must not be modified where they hold slices or pointers.
//
// Event time is a property of the stream, not of the record: milliseconds since the Unix epoch, given by the source
// or by Watermark. An operator's output has the time of the input record it was made from.
package heddle

import (
	"fmt"
	"path"
	"runtime"
	"strconv"
	"strings"
	"unicode"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Job is a graph of operators under construction.
type Job struct {
	graph  *flow.Graph
	codecs *flow.Codecs
}

// NewJob begins a job. Its name is shown to people and appears in YARN: at most 256 bytes, without control characters.
func NewJob(name string) *Job {
	j := &Job{graph: &flow.Graph{Name: name}, codecs: flow.NewCodecs()}
	if name == "" {
		j.errorf("a job needs a name: heddle.NewJob(\"clicks-per-user\")")
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		j.errorf("the job's name %q has control characters, which would garble terminals and logs", flow.Cut(name, flow.MaxName))
	}
	if err := flow.CheckName(name); err != nil {
		j.errorf("job: %w", err)
	}
	return j
}

// Parallelism sets the parallelism of the operators that set none themselves; by default the option parallelism decides.
func (j *Job) Parallelism(n int) *Job {
	if n < 1 {
		j.errorf("parallelism %d of job %s is not positive", n, j.graph.Name)
	}
	j.graph.Parallelism = n
	return j
}

// MaxParallelism sets the number of key groups of the operators that set none themselves; by default the option max-parallelism decides.
func (j *Job) MaxParallelism(n int) *Job {
	if n < 1 || n > flow.MaxKeyGroups {
		j.errorf("max parallelism %d of job %s is not in 1 … %d", n, j.graph.Name, flow.MaxKeyGroups)
	}
	j.graph.MaxParallelism = n
	return j
}

// Name returns the name the job was made with.
func (j *Job) Name() string { return j.graph.Name }

// Graph returns what was built so far. It is for the engine, not for authors.
func (j *Job) Graph() *flow.Graph { return j.graph }

// errorf remembers a mistake of the author's with the place of the call; the compiler reports all of them together.
func (j *Job) errorf(format string, args ...any) {
	if j == nil {
		panic(errNoJob)
	}
	err := fmt.Errorf(format, args...)
	if at := callSite(); at != "" {
		err = fmt.Errorf("%s: %w", at, err)
	}
	j.graph.Errs = append(j.graph.Errs, err)
}

// needs reports whether something that an operator can't do without was given, and remembers if it was not.
func (j *Job) needs(given bool, call, what string) bool {
	if !given {
		j.errorf("%s got nil for %s", call, what)
	}
	return given
}

// errNoJob is what is wrong with a stream that no function of this package made.
const errNoJob = "heddle: a nil *Job, or the zero value of a Stream or of what is made of one: begin with heddle.NewJob, and with heddle.From"

// callSite returns the file and line outside this package that called into it.
func callSite() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "github.com/heddle-stream/heddle.") {
			return path.Base(path.Dir(f.File)) + "/" + path.Base(f.File) + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return ""
		}
	}
}
