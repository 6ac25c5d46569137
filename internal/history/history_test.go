package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

func TestExcess(t *testing.T) {
	now := time.UnixMilli(1e12)
	var all []Entry
	for i := range 5 {
		all = append(all, Entry{App: fmt.Sprint("app-", i), Modified: now.Add(-time.Duration(i) * time.Hour)})
	}
	for _, x := range []struct {
		limits Limits
		gone   string
	}{
		{Limits{Count: 5}, ""}, {Limits{Count: 3}, "app-3 app-4"}, {Limits{Count: 0}, "app-0 app-1 app-2 app-3 app-4"},
		{Limits{Count: 5, Age: 90 * time.Minute}, "app-2 app-3 app-4"}, {Limits{Count: 1, Age: 24 * time.Hour}, "app-1 app-2 app-3 app-4"},
	} {
		var got []string
		for _, e := range Excess(reversed(all), now, x.limits) {
			got = append(got, e.App)
		}
		if strings.Join(got, " ") != x.gone {
			t.Errorf("%+v: %v is too much, want %s", x.limits, got, x.gone)
		}
	}
}

func TestDir(t *testing.T) {
	d, ctx := Dir(filepath.Join(t.TempDir(), "history")), t.Context()
	if _, err := d.Get(ctx, "app-1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	if all, err := d.List(ctx); err != nil || len(all) != 0 {
		t.Errorf("an empty shelf: %v, %v", all, err)
	}
	for _, text := range []string{"one", "two"} {
		if err := d.Put(ctx, "app-1", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := d.Get(ctx, "app-1")
	if string(data) != "two" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := d.Get(ctx, "../app-1"); err != nil {
		t.Errorf("a name leads out of the folder: %v", err)
	}
	all, err := d.List(ctx)
	if err != nil || len(all) != 1 || all[0].App != "app-1" || all[0].Size != 3 {
		t.Fatalf("listed %+v, %v", all, err)
	}
	info, err := os.Stat(all[0].Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
	if gone, err := Prune(ctx, d, time.Now(), Limits{}); err != nil || len(gone) != 1 {
		t.Errorf("pruned %v, %v", gone, err)
	}
	if all, err := d.List(ctx); err != nil || len(all) != 0 {
		t.Errorf("left %v, %v", all, err)
	}
}

// notebook is a shelf that notes what was put there.
type notebook struct {
	Shelf
	mu   sync.Mutex
	puts []Report
	fail error
}

func (n *notebook) Put(_ context.Context, _ string, data []byte) error {
	r, err := Decode(data)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.puts = append(n.puts, *r)
	return errors.Join(err, n.fail)
}
func (n *notebook) List(context.Context) ([]Entry, error) { return nil, nil }
func (n *notebook) Remove(context.Context, []Entry) error { return nil }

// TestKeeper writes soon after the start, when the state changes, now and then, and when the process is to end.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := &notebook{fail: errors.New("full")} // it goes on though a report can't be kept
		k := &Keeper{Base: Report{Version: "v1"}, Every: 5 * time.Minute, Shelf: shelf, Log: slog.New(slog.DiscardHandler)}
		var mu sync.Mutex
		state := "running"
		view := func() *appmaster.Snapshot {
			mu.Lock()
			defer mu.Unlock()
			return &appmaster.Snapshot{App: "app-1", Job: "clicks", State: state}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); k.Run(ctx, view) }()
		at := func(d time.Duration, want int, why string) {
			t.Helper()
			time.Sleep(d)
			shelf.mu.Lock()
			defer shelf.mu.Unlock()
			if len(shelf.puts) != want {
				t.Errorf("%s: %d reports, want %d", why, len(shelf.puts), want)
			}
		}
		at(9*time.Second, 0, "at the start")
		at(2*time.Second, 1, "soon after")
		mu.Lock()
		state = "restarting"
		mu.Unlock()
		at(15*time.Second, 1, "a change right after a report")
		at(20*time.Second, 2, "a change")
		at(4*time.Minute, 2, "without a change")
		at(2*time.Minute, 3, "now and then")
		cancel(errors.New("told to end"))
		<-done
		at(0, 4, "at the end of the process")
		if r := shelf.puts[3]; r.Ending != "told to end" || r.Complete || r.Version != "v1" || r.State != "restarting" {
			t.Errorf("the last report is %+v", r)
		}
		k.End(t.Context(), view(), time.Now())
		if r := shelf.puts[4]; !r.Complete || r.Ended.IsZero() {
			t.Errorf("that of the end is %+v", r)
		}
	})
}

// TestEarlierAttempts: what an attempt of the ApplicationMaster left is not lost when the next one writes.
func TestEarlierAttempts(t *testing.T) {
	d := Dir(t.TempDir())
	told, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("YARN ended this attempt"))
	for n := range uint32(3) {
		k := &Keeper{Shelf: d, Log: slog.New(slog.DiscardHandler), Follows: true, Limit: Limits{Count: 9}}
		snap := &appmaster.Snapshot{App: "app-1", State: "canceled", MasterAttempt: n, Cause: &appmaster.Cause{Message: fmt.Sprint("cause ", n)}}
		if n < 2 {
			k.End(told, snap, time.Now())
		} else {
			k.End(t.Context(), snap, time.Now())
		}
	}
	data, err := d.Get(t.Context(), "app-1")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(data)
	if err != nil || !r.Complete || r.Attempt != 2 || len(r.Earlier) != 2 || r.Earlier[1].Cause.Message != "cause 1" || r.Earlier[0].Ending != "YARN ended this attempt" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDecode(t *testing.T) {
	for _, text := range []string{"", "[]", "null", "{}", `{"format":1}`, `{"app":"a"}`, `{"format":2,"app":"a"}`} {
		if r, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"format":1,"app":"a","snapshot":{"vertices":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := Decode(data); err == nil && r.Format > Format {
			t.Errorf("a later format is read: %+v", r)
		}
	})
}

func reversed(s []Entry) []Entry {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}
