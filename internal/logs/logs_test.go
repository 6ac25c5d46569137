package logs

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// logger logs into a buffer, with a clock that the test turns.
func logger(now *time.Time) (*slog.Logger, *Levels, *bytes.Buffer) {
	out := &bytes.Buffer{}
	levels := NewLevels(slog.LevelInfo)
	levels.now = func() time.Time { return *now }
	h := NewHandler(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug - 4}), levels)
	h.flood.now = levels.now
	return slog.New(h), levels, out
}

func TestLevelsByComponent(t *testing.T) {
	now := time.Unix(0, 0)
	log, levels, out := logger(&now)
	source := log.With("job", "j").With(Component, "kafkasource").WithGroup("g")
	logAll := func() string {
		out.Reset()
		log.Debug("a")
		source.Debug("b")
		source.Info("c")
		var got []string
		for line := range strings.Lines(out.String()) {
			_, msg, _ := strings.Cut(line, "msg=")
			got = append(got, strings.Fields(msg)[0])
		}
		return strings.Join(got, " ")
	}
	steps := []struct {
		do   func()
		want string
	}{
		{func() {}, "c"},
		{func() { levels.Set("kafkasource", slog.LevelDebug, 10*time.Minute) }, "b c"},
		{func() { now = now.Add(11 * time.Minute) }, "c"},
		{func() { levels.Set("", slog.LevelDebug, 0) }, "a b c"},
		{func() { levels.Set("kafkasource", slog.LevelError, 0) }, "a"},
		{func() { levels.Reset("kafkasource") }, "a b c"},
		{func() { levels.Reset("") }, "c"},
		{func() { levels.Set("kafkasource", slog.LevelDebug, 0) }, "b c"},
		{func() { levels.Reset("") }, "c"},
	}
	for i, s := range steps {
		s.do()
		if got := logAll(); got != s.want {
			t.Errorf("after step %d %q was logged, want %q", i, got, s.want)
		}
	}
}

// A part of a component that names itself has one name, also for readers of JSON.
func TestOneComponent(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(NewHandler(slog.NewJSONHandler(&b, nil), NewLevels(slog.LevelInfo))).With("job", "j").With(Component, "agent", "agent", "agent-1")
	log.With(Component, "exchange", "peer", "p").Info("one")
	for _, want := range []string{`"component":"exchange"`, `"job":"j"`, `"agent":"agent-1"`, `"peer":"p"`} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("%s has not one %s", &b, want)
		}
	}
	if strings.Count(b.String(), `"component"`) != 1 {
		t.Errorf("%s has two components", &b)
	}
}

func TestWarningsThatRepeatAreCounted(t *testing.T) {
	now := time.Unix(0, 0)
	log, _, out := logger(&now)
	for range 100 {
		log.Warn("again")
	}
	log.Warn("another")
	for range 30 {
		log.Error("never left out")
	}
	if got := strings.Count(out.String(), "msg=again"); got != burst {
		t.Errorf("%d of 100 equal warnings were written, want %d", got, burst)
	}
	if got := strings.Count(out.String(), "\n"); got != burst+1+30 {
		t.Errorf("%d lines were written, want %d", got, burst+1+30)
	}
	out.Reset()
	now = now.Add(window)
	log.Warn("again")
	if got := out.String(); !strings.Contains(got, fmt.Sprintf("left_out=%d", 100-burst)) {
		t.Errorf("later the warning is %s", got)
	}
}

func TestCap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600) // not to append, as a shell's > opens it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	foreign := Cap{Dirs: []string{t.TempDir()}}
	if got, ok := foreign.pathOf(f); ok {
		t.Errorf("a file outside, %s, would be cut", got)
	}
	c := Cap{Size: 10, Files: 2, Dirs: []string{filepath.Dir(filepath.Dir(path))}}
	got, ok := c.pathOf(f)
	if !ok || got != path {
		t.Fatalf("the path is %q, %v; want %q", got, ok, path)
	}
	for i := range 4 {
		if _, err := fmt.Fprintf(f, "line number %d\n", i); err != nil {
			t.Fatal(err)
		}
		if err := c.apply(path, f); err != nil {
			t.Fatal(err)
		}
	}
	f.WriteString("rest\n")
	if err := c.apply(path, f); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"log": "rest\n", "log.1": "line number 3\n", "log.2": "line number 2\n"} {
		if data, err := os.ReadFile(filepath.Join(filepath.Dir(path), name)); err != nil || string(data) != want {
			t.Errorf("%s holds %q (%v), want %q", name, data, err, want)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 3 {
		t.Errorf("there are %d files, want 3", len(entries))
	}
}

// A log that grows fast is looked at before it is much longer than its cap, and a calm one seldom.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		last       time.Duration
		size, seen int64
		want       time.Duration
	}{
		{keepInterval, 100, 0, keepInterval},
		{keepInterval, 100, 500, time.Second},
		{keepInterval, 100, 1 << 40, leastInterval},
		{leastInterval, 100, 1 << 40, leastInterval},
		{time.Second, 100, 50, 2 * time.Second},
		{time.Second, 100, 101, 990 * time.Millisecond},
	} {
		if got := interval(c.last, c.size, c.seen); got.Round(time.Millisecond*10) != c.want {
			t.Errorf("after %v, %d of %d: %v, want %v", c.last, c.seen, c.size, got, c.want)
		}
	}
}
