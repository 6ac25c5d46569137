package heddle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/inproc"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
)

// runJob runs a job in this process.
func runJob(t *testing.T, job *heddle.Job, parallelism int) error {
	t.Helper()
	plan, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: parallelism})
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Run(t.Context(), inproc.Config{Graph: job.Graph(), Compiled: plan, FlushTimeout: time.Millisecond})
}

func sorted[T any](recs []T) []string {
	s := make([]string, len(recs))
	for i, r := range recs {
		s[i] = fmt.Sprint(r)
	}
	slices.Sort(s)
	return s
}

func TestWordCountFromFilesToFiles(t *testing.T) {
	dir := t.TempDir()
	want := map[string]int64{}
	for f := range 3 {
		var text strings.Builder
		for i := range 2000 {
			word := fmt.Sprint("w", (i*7+f)%41)
			want[word]++
			text.WriteString(word)
			text.WriteString([]string{" ", "\n", "\r\n"}[i%3])
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("in-%d.txt", f)), []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	type count struct {
		Word string `json:"word"`
		N    int64  `json:"n"`
	}
	job := heddle.NewJob("word-count")
	lines := heddle.From(job, heddle.Files(filepath.Join(dir, "in-*.txt")), heddle.Text())
	words := heddle.FlatMap(lines, func(line string, emit func(string)) {
		for w := range strings.FieldsSeq(line) {
			emit(w)
		}
	})
	counts := heddle.Aggregate(heddle.Global(heddle.KeyBy(words, func(w string) string { return w })), heddle.Count[string]())
	out := heddle.Map(counts, func(w heddle.Windowed[string, int64]) count { return count{w.Key, w.Value} })
	heddle.To(out, heddle.ToFiles(filepath.Join(dir, "out")), heddle.JSON[count]()).Name("results")
	if err := runJob(t, job, 3); err != nil {
		t.Fatal(err)
	}

	again := heddle.NewJob("read-back")
	sink := &testjob.Sink[count]{}
	heddle.ToSink(heddle.From(again, heddle.Files(filepath.Join(dir, "out")), heddle.JSON[count]()), sink)
	if err := runJob(t, again, 2); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, c := range sink.Records() {
		got[c.Word] += c.N
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if err := runJob(t, job, 3); err == nil || !strings.Contains(err.Error(), "part-0000") || !strings.Contains(err.Error(), "operator") && !strings.Contains(err.Error(), "sink results") {
		t.Errorf("writing into the same directory: got %v", err)
	}
}

func TestPipelineOfEverything(t *testing.T) {
	job := heddle.NewJob("pipeline")
	nums := heddle.FromSource(job, heddle.Generate(10000, func(i int64) int64 { return i }))
	even := heddle.Filter(nums.Rebalance(), func(v int64) bool { return v%2 == 0 }).Parallelism(2).Name("even")
	parsed := heddle.TryMap(even.PartitionBy(func(v int64, n int) int { return int(v/2) % n }), func(v int64) (string, error) {
		if v%1000 == 8 {
			return "", errors.New("eight")
		}
		return strconv.FormatInt(v, 10), nil
	}).Name("parse")
	dead := parsed.DeadLetters()
	both := heddle.Union(parsed, heddle.Map(nums, func(v int64) string { return "n" }))
	out, deadOut := &testjob.Sink[string]{}, &testjob.Sink[heddle.DeadLetter]{}
	heddle.ToSink(both.Rescale(), out)
	heddle.ToSink(dead, deadOut)
	if err := runJob(t, job, 3); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 10000 {
		want = append(want, "n")
		if i%2 == 0 && i%1000 != 8 {
			want = append(want, strconv.Itoa(i))
		}
	}
	if got := sorted(out.Records()); !slices.Equal(got, sorted(want)) {
		t.Errorf("got %d records, want %d, or other ones", len(got), len(want))
	}
	if d := deadOut.Records(); len(d) != 10 || d[0].Operator != "parse" || d[0].Reason != "eight" {
		t.Errorf("dead letters: %+v", d)
	}
}

// splitter sends odd numbers aside.
type splitter struct {
	env  heddle.Env
	odd  heddle.Tag[int64]
	seen *heddle.Counter
}

func (s *splitter) Open(_ context.Context, env heddle.Env) error {
	s.env, s.seen = env, env.Counter("seen")
	return nil
}

func (s *splitter) Apply(v int64, emit func(string)) error {
	s.seen.Add(1)
	if v%2 == 1 {
		return s.odd.Emit(s.env, v)
	}
	emit(strconv.FormatInt(v, 10))
	return nil
}

func (s *splitter) Close() error { return nil }

func TestSideOutput(t *testing.T) {
	job := heddle.NewJob("sides")
	odd := heddle.NewTag[int64]("odd")
	nums := heddle.FromSource(job, heddle.Generate(1001, func(i int64) int64 { return i }))
	even := heddle.Apply(nums, func() heddle.Func[int64, string] { return &splitter{odd: odd} })
	evens, odds := &testjob.Sink[string]{}, &testjob.Sink[int64]{}
	heddle.ToSink(even, evens)
	heddle.ToSink(heddle.SideOutput(even, odd).Rebalance(), odds)
	if err := runJob(t, job, 2); err != nil {
		t.Fatal(err)
	}
	if len(evens.Records()) != 501 || len(odds.Records()) != 500 {
		t.Errorf("got %d even and %d odd", len(evens.Records()), len(odds.Records()))
	}
}

func TestBadMessages(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "clicks.json")
	if err := os.WriteFile(path, []byte("{\"n\":1}\nnot json\n{\"n\":2}\n{\"n\":\"three\"}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	type rec struct{ N int }
	read := func(set func(heddle.Stream[rec])) ([]rec, error) {
		job, sink := heddle.NewJob("bad"), &testjob.Sink[rec]{}
		s := heddle.From(job, heddle.Files(path), heddle.JSON[rec]())
		set(s)
		heddle.ToSink(s, sink)
		err := runJob(t, job, 1)
		return sink.Records(), err
	}
	_, err := read(func(heddle.Stream[rec]) {})
	if want := "cannot decode message of " + path + ":0 at offset 8 as json: invalid character 'o'"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `message: "not json"`) {
		t.Errorf("fail: got %v\nwant %s", err, want)
	}
	got, err := read(func(s heddle.Stream[rec]) { s.OnError(heddle.SkipOnError) })
	if err != nil || !slices.Equal(got, []rec{{1}, {2}}) {
		t.Errorf("skip: got %v, %v", got, err)
	}
	dead := &testjob.Sink[heddle.DeadLetter]{}
	got, err = read(func(s heddle.Stream[rec]) { heddle.ToSink(s.DeadLetters(), dead) })
	if err != nil || !slices.Equal(got, []rec{{1}, {2}}) {
		t.Errorf("dead letters: got %v, %v", got, err)
	}
	if d := dead.Records(); len(d) != 2 || string(d[0].Value) != "not json" {
		t.Errorf("dead letters: %+v", d)
	}
}

func TestMistakesAreReportedWithTheirPlace(t *testing.T) {
	type cyclic struct{ Next *cyclic }
	job := heddle.NewJob("mistakes")
	nums := heddle.FromSource(job, heddle.Generate(1, func(i int64) int64 { return i })).Name("numbers").Parallelism(0)
	nums.OnError(heddle.SkipOnError)
	nums.Watermark(heddle.Watermarks[int64]{})
	heddle.SideOutput(nums, heddle.NewTag[int]("x"))
	heddle.Union(nums, nums).Name("both")
	m := heddle.Map(nums, func(int64) cyclic { return cyclic{} }).Name("loop")
	heddle.ToSink(m.Rebalance(), heddle.Discard[cyclic]())
	_, err := jobgraph.Compile(job.Graph(), jobgraph.Options{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"job_test.go:", "parallelism 0 is not positive", "OnError on an operator", "Watermark without a strategy",
		"operator that has none", "Name on a union",
		"records of type heddle_test.cyclic can't be sent between processes: field Next is a heddle_test.cyclic, which contains itself",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not reported: %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

// point has a codec of its own: a map can't be sent otherwise.
type point struct{ at map[string]int }

type pointCodec struct{}

func (pointCodec) Append(b []byte, p *point) ([]byte, error) {
	return append(b, fmt.Sprint(p.at["x"], " ", p.at["y"])...), nil
}

func (pointCodec) Decode(b []byte, p *point) error {
	var x, y int
	if _, err := fmt.Sscan(string(b), &x, &y); err != nil {
		return err
	}
	p.at = map[string]int{"x": x, "y": y}
	return nil
}

func TestUseCodec(t *testing.T) {
	type place struct {
		Name  string
		Where []point
	}
	job := heddle.NewJob("codec")
	heddle.UseCodec(job, pointCodec{})
	nums := heddle.FromSource(job, heddle.Generate(100, func(i int64) int64 { return i }))
	places := heddle.Map(nums, func(v int64) place {
		return place{fmt.Sprint(v), slices.Repeat([]point{{map[string]int{"x": int(v), "y": 1}}}, int(v)%3)}
	})
	sink := &testjob.Sink[string]{}
	heddle.ToSink(heddle.Map(places.Rebalance(), func(p place) string { return fmt.Sprint(p) }), sink)
	if err := runJob(t, job, 2); err != nil {
		t.Fatal(err)
	}
	var want []string
	for v := range 100 {
		want = append(want, fmt.Sprint(place{fmt.Sprint(v), slices.Repeat([]point{{map[string]int{"x": v, "y": 1}}}, v%3)}))
	}
	slices.Sort(want)
	if got := sorted(sink.Records()); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestWatermarkAtSourceOrAfter(t *testing.T) {
	at := func(v int64) time.Time { return time.UnixMilli(v) }
	job := heddle.NewJob("time")
	nums := heddle.FromSource(job, heddle.Generate(10, func(i int64) int64 { return i }))
	if nums.Watermark(heddle.Monotonous(at)); len(job.Graph().Nodes) != 1 {
		t.Error("right after a source: a node was added")
	}
	heddle.Map(nums, func(v int64) int64 { return v }).Watermark(heddle.BoundedDelay(time.Second, at))
	if n := job.Graph().Nodes; len(n) != 3 || n[2].Kind != "watermark" {
		t.Errorf("elsewhere: got %d nodes", len(n))
	}
}

func TestDeclareOption(t *testing.T) {
	heddle.DeclareOption(heddle.Option{Name: "test.declared", Doc: "For a test."})
	if !slices.ContainsFunc(heddle.DeclaredOptions(), func(o heddle.Option) bool { return o.Name == "test.declared" && o.Type == heddle.StringOption }) {
		t.Error("the option is not declared")
	}
	defer func() {
		if recover() == nil {
			t.Error("declared twice without a panic")
		}
	}()
	heddle.DeclareOption(heddle.Option{Name: "test.declared"})
}

// A timer without OnTimer is found when it is set; the error names the author's call, not the engine's.
func TestTimerWithoutOnTimer(t *testing.T) {
	type proc = heddle.Processor[int64, int64, int64]
	job := heddle.NewJob("timers")
	nums := heddle.FromSource(job, heddle.Generate(1, func(i int64) int64 { return i }))
	timed := heddle.Process(heddle.KeyBy(nums, func(v int64) int64 { return v }), func(*heddle.States) proc {
		return proc{Process: func(c *heddle.ProcessContext[int64, int64], _ int64) error {
			c.SetEventTimer(5)
			return nil
		}}
	})
	heddle.ToSink(timed, heddle.Discard[int64]())
	_, file, _, _ := runtime.Caller(0) // without its folders, where -trimpath was given
	here := path.Base(path.Dir(file))
	err := runJob(t, job, 1)
	if err == nil || !strings.Contains(err.Error(), "operator process 1 (") ||
		!strings.Contains(err.Error(), "has no OnTimer to call when it comes at "+here+"/job_test.go:") {
		t.Errorf("got %v", err)
	}
}

// A blank line between JSON documents is no bad message; with Text it is an empty record.
func TestBlankLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(file, []byte("\n1\n  \r\n2\n\n\n3\n\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	job := heddle.NewJob("blank")
	out, lines := &testjob.Sink[int]{}, &testjob.Sink[string]{}
	heddle.ToSink(heddle.From(job, heddle.Files(file), heddle.JSON[int]()), out)
	heddle.ToSink(heddle.From(job, heddle.Files(file), heddle.Text()), lines)
	if err := runJob(t, job, 1); err != nil {
		t.Fatal(err)
	}
	if got := out.Records(); !slices.Equal(got, []int{1, 2, 3}) || len(lines.Records()) != 8 {
		t.Errorf("got %v and %d lines, want 1, 2, 3 and 8 lines", got, len(lines.Records()))
	}
}
