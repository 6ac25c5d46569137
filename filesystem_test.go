package heddle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-stream/heddle"
)

// memFiles is a file system in memory.
type memFiles struct {
	mu      sync.Mutex
	files   map[string]string // whole ones
	pending int               // that are being written
	failAt  int64             // reading fails there; 0: nowhere
}

var mem = &memFiles{files: map[string]string{}}

func init() {
	heddle.RegisterFileSystem("mem", func() (heddle.FileSystem, error) { return mem, nil })
}

func (m *memFiles) reset(files map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files, m.pending, m.failAt = files, 0, 0
}

func (m *memFiles) Find(_ context.Context, pattern string) (out []heddle.FoundFile, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, data := range m.files {
		if ok, _ := path.Match(pattern, name); ok || strings.HasPrefix(name, pattern+"/") {
			out = append(out, heddle.FoundFile{Path: name, Size: int64(len(data)), Block: 100})
		}
	}
	return out, nil
}

func (m *memFiles) Open(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	if !ok {
		return nil, errors.New("it is gone")
	}
	in := io.Reader(strings.NewReader(data[offset:]))
	if m.failAt > 0 {
		in = io.MultiReader(io.LimitReader(in, m.failAt), broken{})
	}
	return io.NopCloser(in), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the connection broke") }

func (m *memFiles) Create(_ context.Context, name string, replace bool) (heddle.PendingFile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[name]; ok && !replace {
		return nil, errors.New("it exists")
	}
	m.pending++
	return &memFile{m: m, name: name, open: true}, nil
}

func (m *memFiles) Remove(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
	return nil
}

type memFile struct {
	bytes.Buffer
	m    *memFiles
	name string
	open bool
}

func (f *memFile) Sync() error { return nil }

func (f *memFile) Commit(context.Context) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.m.files[f.name] = f.String()
	return nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.open {
		f.m.pending--
	}
	f.open = false
	return nil
}

// copyJob copies lines of mem://in to mem://out.
func copyJob(f func(string) string) *heddle.Job {
	job := heddle.NewJob("copy")
	in := heddle.From(job, heddle.Files("mem://in"), heddle.Text())
	heddle.To(heddle.Map(in, f), heddle.ToFiles("mem://out/"), heddle.Text())
	return job
}

func same(s string) string { return s }

func TestOtherFileSystem(t *testing.T) {
	in := map[string]string{}
	var want []string
	for f := range 3 {
		var text strings.Builder
		for i := range 500 {
			line := fmt.Sprintf("%d-%d", f, i)
			want = append(want, line)
			text.WriteString(line + "\n")
		}
		in[fmt.Sprint("mem://in/", f)] = text.String()
	}
	mem.reset(maps.Clone(in))
	if err := runJob(t, copyJob(same), 2); err != nil {
		t.Fatal(err)
	}
	var got []string
	for name, text := range mem.files {
		if strings.HasPrefix(name, "mem://out/part-0000") {
			got = append(got, strings.Fields(text)...)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || mem.pending != 0 {
		t.Errorf("got %d lines, want %d; %d files are open", len(got), len(want), mem.pending)
	}
	if err := runJob(t, copyJob(same), 2); err == nil || !strings.Contains(err.Error(), "cannot write mem://out/part-0000") || !strings.Contains(err.Error(), "it exists") {
		t.Errorf("over a result: %v", err)
	}

	mem.reset(maps.Clone(in))
	err := runJob(t, copyJob(func(s string) string {
		if s == "2-400" {
			panic("no")
		}
		return s
	}), 1)
	if err == nil || len(mem.files) != 3 || mem.pending != 0 {
		t.Errorf("a job that failed: %v; it left %v, %d files are open", err, slices.Sorted(maps.Keys(mem.files)), mem.pending)
	}

	mem.reset(in)
	mem.failAt = 50
	if err := runJob(t, copyJob(same), 2); err == nil || !strings.Contains(err.Error(), "cannot read mem://in/") || !strings.Contains(err.Error(), "the connection broke") {
		t.Errorf("a read that fails: %v", err)
	}
	mem.reset(nil)
	if err := runJob(t, copyJob(same), 2); err == nil || !strings.Contains(err.Error(), "none matches mem://in") {
		t.Errorf("nothing there: %v", err)
	}
}

// TestLeftovers: parts of an earlier run with more subtasks don't stay beside those of a run that overwrites, and are refused by one that does not.
func TestLeftovers(t *testing.T) {
	local := t.TempDir()
	for _, c := range []struct {
		dir   string
		parts func() []string
	}{
		{"mem://out", func() (names []string) {
			mem.mu.Lock()
			defer mem.mu.Unlock()
			for name := range mem.files {
				if strings.HasPrefix(name, "mem://out/") {
					names = append(names, path.Base(name))
				}
			}
			slices.Sort(names)
			return names
		}},
		{local, func() (names []string) {
			entries, err := os.ReadDir(local)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				names = append(names, e.Name())
			}
			return names
		}},
	} {
		mem.reset(map[string]string{"mem://in/0": "a\nb\nc\n", "mem://out/part-note": "not ours"})
		if err := os.WriteFile(filepath.Join(local, "part-note"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		job := func(overwrite bool) *heddle.Job {
			j := heddle.NewJob("copy")
			sink := heddle.ToFiles(c.dir)
			if overwrite {
				sink.Overwrite()
			}
			heddle.To(heddle.From(j, heddle.Files("mem://in"), heddle.Text()), sink, heddle.Text())
			return j
		}
		if err := runJob(t, job(false), 4); err != nil {
			t.Fatal(err)
		}
		if got := c.parts(); len(got) != 5 {
			t.Fatalf("%s: the first run leaves %v", c.dir, got)
		}
		if err := runJob(t, job(true), 2); err != nil {
			t.Fatal(err)
		}
		if got, want := c.parts(), []string{"part-00000", "part-00001", "part-note"}; !slices.Equal(got, want) {
			t.Errorf("%s: a run of 2 subtasks over one of 4 leaves %v, want %v", c.dir, got, want)
		}
		if err := runJob(t, job(true), 4); err != nil {
			t.Fatal(err)
		}
		mem.mu.Lock()
		delete(mem.files, "mem://out/part-00000")
		mem.mu.Unlock()
		if c.dir == local {
			if err := os.Remove(filepath.Join(local, "part-00000")); err != nil {
				t.Fatal(err)
			}
		}
		if err := runJob(t, job(false), 1); err == nil || !strings.Contains(err.Error(), "part-0000") || !strings.Contains(err.Error(), "overwrite: true") {
			t.Errorf("%s: a run beside an older one's parts: %v", c.dir, err)
		}
	}
}
