package jobspec

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/internal/inproc"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// runJob runs a job file in this process. DIR in it is a folder whose files are given; it returns the sorted lines of each folder written there.
func runJob(t *testing.T, text string, files map[string]string) (map[string][]string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	job, err := Load("job.yaml", []byte(strings.ReplaceAll(text, "DIR", dir)), Options{})
	if err != nil {
		t.Fatalf("cannot load:\n%v", err)
	}
	g, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: 2, MaxParallelism: 128})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err = inproc.Run(ctx, inproc.Config{Graph: job.Graph(), Compiled: g})
	return readFolders(t, dir), err
}

func readFolders(t *testing.T, dir string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	parts, err := filepath.Glob(filepath.Join(dir, "*", "part-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(p))
		for line := range strings.Lines(string(b)) {
			out[name] = append(out[name], strings.TrimSuffix(line, "\n"))
		}
	}
	for _, lines := range out {
		slices.Sort(lines)
	}
	return out
}

// want compares the lines of a folder.
func want(t *testing.T, got map[string][]string, name, lines string) {
	t.Helper()
	w := strings.Split(strings.TrimSpace(lines), "\n")
	for i := range w {
		w[i] = strings.TrimSpace(w[i])
	}
	slices.Sort(w)
	if !slices.Equal(got[name], w) {
		t.Errorf("%s holds\n%s\nwant\n%s", name, strings.Join(got[name], "\n"), strings.Join(w, "\n"))
	}
}

func TestWordCount(t *testing.T) {
	got, err := runJob(t, `
name: word-count
source: { file: { path: DIR/in.txt, format: text } }
steps:
  - flat_map: { word: words(line) }
  - key_by: word
  - window: { global: true, aggregate: { count: count() } }
sink: { file: { path: DIR/out, format: { text: "{count} {word}" } } }
`, map[string]string{"in.txt": "the quick brown fox\n\n  jumps over the lazy dog\nThe end\n"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, got, "out", `
		1 The
		1 brown
		1 dog
		1 end
		1 fox
		1 jumps
		1 lazy
		1 over
		1 quick
		2 the`)
}

func TestClicks(t *testing.T) {
	got, err := runJob(t, `
name: clicks-per-user
source: { file: { path: DIR/in.json, format: json }, event_time: at, max_delay: 5s }
steps:
  - filter: kind == "click"
  - key_by: user
  - window: { tumbling: 1m, aggregate: { clicks: count(), pages: distinct(url), worth: sum(worth), mean: avg(worth), top: max(url), first: first(url) } }
sink: { file: { path: DIR/out, format: json } }
`, map[string]string{"in.json": `
{"user":"a","kind":"click","url":"/x","at":"2026-03-01T12:00:00Z","worth":1}
{"user":"a","kind":"view","url":"/y","at":"2026-03-01T12:00:01Z"}
{"user":"b","kind":"click","url":"/x","at":1772366402000}
{"user":"a","kind":"click","url":"/x","at":"2026-03-01T13:00:05+01:00","worth":2}
{"user":"a","kind":"click","url":"/z","at":"2026-03-01T12:01:00Z","worth":0.5}
`[1:]})
	if err != nil {
		t.Fatal(err)
	}
	want(t, got, "out", `
{"user":"a","window_start":"2026-03-01T12:00:00Z","window_end":"2026-03-01T12:01:00Z","clicks":2,"pages":1,"worth":3,"mean":1.5,"top":"/x","first":"/x"}
{"user":"a","window_start":"2026-03-01T12:01:00Z","window_end":"2026-03-01T12:02:00Z","clicks":1,"pages":1,"worth":0.5,"mean":0.5,"top":"/z","first":"/z"}
{"user":"b","window_start":"2026-03-01T12:00:00Z","window_end":"2026-03-01T12:01:00Z","clicks":1,"pages":1,"worth":null,"mean":null,"top":"/x","first":"/x"}`)
}

// TestEverything runs most of the language at once: several sources, union, dedupe, route, late records, dead letters.
func TestEverything(t *testing.T) {
	got, err := runJob(t, `
name: orders
timezone: Europe/Berlin
sources:
  orders:
    file: { path: DIR/orders.json, format: json }
    fields: { id: string, customer: string, amount: float, qty: int, placed: time }
    event_time: placed
    on_error: { dead_letter: bad }
  refunds:
    file: { path: DIR/refunds.csv, format: { csv: { delimiter: ";", header: true } } }
    fields: { id: string, amount: float, placed: time }
    event_time: placed
steps:
  - from: orders
    set: { total: amount * (qty ?? 1), who: lower(customer) }
    name: priced
    on_error: { dead_letter: bad }
  - from: refunds
    set: { total: -amount, who: '"refund"' }
    name: negative
  - union: [priced, negative]
  - dedupe: { by: [id], within: 1h }
    name: unique
  - route: { large: total > 1000, small: true }
  - from: small
    key_by: who
  - window:
      calendar: day
      late: late
      aggregate: { orders: count(), revenue: sum(total), last: max(id) }
    name: daily
sinks:
  daily: { from: daily, file: { path: DIR/daily, format: json } }
  large: { from: large, file: { path: DIR/large, format: { csv: { columns: [id, total] } } } }
  late: { file: { path: DIR/late, format: json } }
  bad: { file: { path: DIR/bad, format: { text: "{step}|{record}" } } }
`, map[string]string{
		"orders.json": `
{"id":"1","customer":"Ann","amount":10,"qty":2,"placed":"2026-03-29T00:30:00","more":true}
{"id":"1","customer":"Ann","amount":10,"qty":2,"placed":"2026-03-29T00:31:00"}
{"id":"2","customer":"Ann","amount":5,"placed":"2026-03-29T21:59:59Z"}
{"id":"3","customer":"Bob","amount":2000,"placed":"2026-03-29T12:00:00Z"}
{"id":"4","customer":"Bob","amount":"much","placed":"2026-03-29T12:00:00Z"}
{"id":"5","amount":1,"placed":"2026-03-29T12:00:00Z"}
{"id":"6","customer":"Bob","amount":1}
`[1:],
		"refunds.csv": "id;amount;placed\nr1;3.5;2026-03-29 10:00\n\"r;2\";1;2026-03-30 00:00\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, got, "daily", `
{"who":"ann","window_start":"2026-03-29T00:00:00+01:00","window_end":"2026-03-30T00:00:00+02:00","orders":2,"revenue":25,"last":"2"}
{"who":"refund","window_start":"2026-03-29T00:00:00+01:00","window_end":"2026-03-30T00:00:00+02:00","orders":1,"revenue":-3.5,"last":"r1"}
{"who":"refund","window_start":"2026-03-30T00:00:00+02:00","window_end":"2026-03-31T00:00:00+02:00","orders":1,"revenue":-1,"last":"r;2"}`)
	want(t, got, "large", "3,2000")
	if len(got["bad"]) != 3 {
		t.Errorf("bad holds %q", got["bad"])
	}
}
