package heddle

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/internal/flow"
)

// readLines reads all splits of s, each with a reader of its own, and returns the lines of all and their offsets.
func readLines(t testing.TB, s *FileSource) (lines []string, offsets []int64, err error) {
	e, err := s.Enumerator(t.Context(), flow.EnumeratorEnv{Readers: 3})
	if err != nil {
		return nil, nil, err
	}
	d, err := e.Discover(t.Context())
	if err != nil {
		return nil, nil, err
	}
	for _, split := range d.Added {
		if o := e.Owner(split, 3); o < 0 || o > 2 {
			return nil, nil, fmt.Errorf("owner of %s is %d", split.ID, o)
		}
		wake := make(wakeRuntime, 1)
		r, err := s.NewMessageReader(t.Context(), flow.ReaderEnv{Runtime: wakeRuntimeOf(wake)}, flow.FieldOffset)
		if err != nil {
			return nil, nil, err
		}
		if err := r.AddSplits([]flow.Split{split}); err != nil {
			return nil, nil, err
		}
		if err := r.NoMoreSplits(); err != nil {
			return nil, nil, err
		}
		ends := 0
		for {
			st, err := r.Poll(func(id string, m *Messages, ended bool) error {
				if id != split.ID || ends > 0 {
					return fmt.Errorf("records of %s after %d ends of %s", id, ends, split.ID)
				}
				if ended {
					ends++
				}
				for i := range m.Len() {
					lines = append(lines, string(m.Value(i)))
				}
				offsets = append(offsets, m.Offsets...)
				return nil
			})
			if err != nil {
				r.Close()
				return nil, nil, err
			}
			if st == flow.SourceEnd {
				break
			}
			if st == flow.SourceWait {
				<-wake
			}
		}
		if ends != 1 {
			return nil, nil, fmt.Errorf("%d ends of %s", ends, split.ID)
		}
		if err := r.Close(); err != nil {
			return nil, nil, err
		}
	}
	return lines, offsets, nil
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// wakeRuntime is a Runtime that remembers that it was woken.
type wakeRuntime chan struct{}

type wakeable struct {
	flow.Runtime
	wake wakeRuntime
}

func wakeRuntimeOf(w wakeRuntime) flow.Runtime { return wakeable{wake: w} }

func (w wakeable) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// slowFiles is a file system of this host's files, which come in small pieces.
type slowFiles struct{}

func init() {
	RegisterFileSystem("slow", func() (FileSystem, error) { return slowFiles{}, nil })
}

func (slowFiles) Find(ctx context.Context, pattern string) ([]FoundFile, error) {
	found, err := findLocal(ctx, strings.TrimPrefix(pattern, "slow://"))
	for i := range found {
		found[i].Path, found[i].Block = "slow://"+found[i].Path, 1000
	}
	return found, err
}

func (slowFiles) Open(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	f, err := os.Open(strings.TrimPrefix(name, "slow://"))
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &slowFile{File: f}, nil
}

func (slowFiles) Create(context.Context, string, bool) (PendingFile, error) {
	return nil, errors.New("these files can't be written")
}

type slowFile struct {
	*os.File
	n int
}

func (f *slowFile) Read(b []byte) (int, error) {
	f.n++
	return f.File.Read(b[:min(len(b), 1+f.n*f.n*f.n*f.n)])
}

// TestPiecesOfFiles cuts files anywhere: each line comes once, in order.
func TestPiecesOfFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	rapid.Check(t, func(rt *rapid.T) {
		var want []string
		var offsets []int64
		var text bytes.Buffer
		n := rapid.IntRange(0, 20).Draw(rt, "lines")
		for i := range n {
			size := rapid.SampledFrom([]int{0, 1, 5, 40, 33_000}).Draw(rt, "size")
			line := strings.Repeat(string(rune('a'+i%26)), size)
			want, offsets = append(want, line), append(offsets, int64(text.Len()))
			text.WriteString(line)
			if last := i == n-1; !last || size == 0 || rapid.Bool().Draw(rt, "newline") {
				text.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end"))
			}
		}
		writeFile(t, path, text.Bytes())
		s := Files(rapid.SampledFrom([]string{path, "slow://" + path}).Draw(rt, "path"))
		s.pieceBytes = int64(rapid.SampledFrom([]int{0, 1 << 20, 7, 50}).Draw(rt, "piece"))
		if s.pieceBytes < 50 && text.Len() > 3000 {
			s.pieceBytes = 10_000
		}
		got, at, err := readLines(t, s)
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(got, want) || !slices.Equal(at, offsets) {
			rt.Fatalf("pieces of %d bytes: got %d lines, want %d, or other ones", s.pieceBytes, len(got), len(want))
		}
	})
}

func TestFilesByPattern(t *testing.T) {
	dir := t.TempDir()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, "z1\nz2")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.txt": "a1\na2\n", "b.txt": "b1\n", ".hidden": "h\n", "_meta": "m\n", "c.gz": zipped.String(), "empty": ""} {
		writeFile(t, filepath.Join(dir, name), []byte(text))
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		patterns []string
		want     string
	}{
		{[]string{dir}, "a1 a2 b1 z1 z2"},
		{[]string{dir + "/*.txt", dir + "/a*"}, "a1 a2 b1"},
		{[]string{dir + "/.hidden"}, "h"},
		{[]string{"slow://" + dir}, "a1 a2 b1 z1 z2"},
		{[]string{"slow://" + dir + "/*.txt", dir + "/c*"}, "z1 z2 a1 a2 b1"},
		{[]string{"slow://" + dir + "/.hidden"}, "h"},
	} {
		got, _, err := readLines(t, Files(c.patterns...))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%q: got %q, %v, want %s", c.patterns, got, err, c.want)
		}
	}
	if _, _, err := readLines(t, Files(dir+"/*.csv")); err == nil || err.Error() != "cannot read files: none matches "+dir+"/*.csv" {
		t.Errorf("no match: got %v", err)
	}
	if _, _, err := readLines(t, Files()); err == nil {
		t.Error("no pattern: no error")
	}
	writeFile(t, filepath.Join(dir, "cut.gz"), zipped.Bytes()[:zipped.Len()-6])
	for _, name := range []string{dir + "/cut.gz", "slow://" + dir + "/cut.gz"} {
		if _, _, err := readLines(t, Files(name)); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
			t.Errorf("truncated gzip: got %v", err)
		}
	}
	const unknown = "nothing is known of files of the scheme s3: paths of local files can be used, and URIs that begin with"
	if _, _, err := readLines(t, Files("s3://bucket/x")); err == nil || !strings.Contains(err.Error(), unknown) {
		t.Errorf("unknown scheme: got %v", err)
	}
}

// clockRuntime is a Runtime with a clock that the test moves.
type clockRuntime struct {
	flow.Runtime
	now, timer int64
}

func (r *clockRuntime) Now() int64         { return r.now }
func (r *clockRuntime) SetTimer(at int64)  { r.timer = at }
func (*clockRuntime) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// generate reads a whole generator with one reader that is polled whenever it asks to be, and returns what it made and when.
func generate(t *testing.T, g *Generator[int64], readers int, until int64) (recs, times []int64) {
	t.Helper()
	e, err := g.Enumerator(context.Background(), flow.EnumeratorEnv{Readers: readers})
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Discover(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rt := &clockRuntime{now: 1000}
	r, err := g.NewReader(context.Background(), flow.ReaderEnv{Runtime: rt, Times: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AddSplits(d.Added); err != nil {
		t.Fatal(err)
	}
	if err := r.NoMoreSplits(); err != nil {
		t.Fatal(err)
	}
	for rt.now < 1000+until {
		st, err := r.Poll(func(_ string, b Batch[int64], _ bool) error {
			recs, times = append(recs, b.Recs...), append(times, b.Times...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if st == flow.SourceEnd {
			break
		}
		if st == flow.SourceWait {
			if rt.timer <= rt.now {
				t.Fatalf("at %d it waits for %d", rt.now, rt.timer)
			}
			rt.now = rt.timer
		}
	}
	return recs, times
}

func TestGenerator(t *testing.T) {
	id := func(i int64) int64 { return i }
	for _, readers := range []int{1, 3, 7} {
		recs, _ := generate(t, Generate(5000, id), readers, 1<<40)
		slices.Sort(recs)
		if len(recs) != 5000 || recs[0] != 0 || recs[4999] != 4999 {
			t.Errorf("%d readers: got %d records", readers, len(recs))
		}
	}
	if recs, _ := generate(t, Generate(0, id), 2, 1<<40); len(recs) != 0 {
		t.Errorf("none: got %v", recs)
	}
	for _, rate := range []float64{0.5, 3, 100, 12345} {
		recs, times := generate(t, Generate(-1, id).Rate(rate), 2, 20_000)
		if want := rate * 20; float64(len(recs)) < want*0.99-2 || float64(len(recs)) > want*1.01+2 {
			t.Errorf("rate %g: got %d records in 20 s", rate, len(recs))
		}
		if !slices.IsSorted(times) {
			t.Errorf("rate %g: times go back", rate)
		}
	}
}

func TestGeneratorForgivesBeingHeldUp(t *testing.T) {
	g := Generate(-1, func(i int64) int64 { return i }).Rate(1000)
	rt := &clockRuntime{now: 1}
	r, err := g.NewReader(t.Context(), flow.ReaderEnv{Runtime: rt})
	if err != nil {
		t.Fatal(err)
	}
	e, err := g.Enumerator(t.Context(), flow.EnumeratorEnv{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AddSplits(d.Added); err != nil {
		t.Fatal(err)
	}
	n := 0
	poll := func() {
		for {
			st, err := r.Poll(func(_ string, b Batch[int64], _ bool) error { n += len(b.Recs); return nil })
			if err != nil {
				t.Fatal(err)
			}
			if st != flow.SourceMore {
				return
			}
		}
	}
	poll()
	rt.now += time.Hour.Milliseconds()
	poll()
	if n < 1000 || n > 1010 {
		t.Errorf("after an hour's pause it made %d records at once, want about a second's", n)
	}
}

func TestFormats(t *testing.T) {
	var m Messages
	if err := Text().Encode(&m, []string{"a", "", "ccc"}); err != nil {
		t.Fatal(err)
	}
	got, err := Text().Decode([]string{"before"}, &m, 1)
	if err != nil || !slices.Equal(got, []string{"before", "", "ccc"}) {
		t.Errorf("text: got %q, %v", got, err)
	}
	m.Values[1].Len = -1
	if got, err := Text().Decode(nil, &m, 0); err == nil || len(got) != 1 {
		t.Errorf("text of a null: got %q, %v", got, err)
	}
	raw, err := Raw().Decode(nil, &m, 0)
	if err != nil || len(raw) != 3 || raw[1] != nil || string(raw[2]) != "ccc" {
		t.Errorf("raw: got %q, %v", raw, err)
	}
	m.Reset()
	if err := Raw().Encode(&m, raw); err != nil || m.Values[1].Len != -1 || string(m.Value(2)) != "ccc" {
		t.Errorf("raw encodes as %+v, %v", m, err)
	}
	type rec struct {
		N int    `json:"n"`
		S string `json:"s,omitempty"`
	}
	m.Reset()
	if err := JSON[rec]().Encode(&m, []rec{{1, "<x>"}, {2, ""}}); err != nil {
		t.Fatal(err)
	}
	if string(m.Value(0)) != `{"n":1,"s":"<x>"}` || string(m.Value(1)) != `{"n":2}` {
		t.Errorf("json encodes as %q, %q", m.Value(0), m.Value(1))
	}
	back, err := JSON[rec]().Decode(nil, &m, 0)
	if err != nil || !slices.Equal(back, []rec{{1, "<x>"}, {2, ""}}) {
		t.Errorf("json: got %v, %v", back, err)
	}
}
