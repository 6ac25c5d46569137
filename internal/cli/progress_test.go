package cli

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

// TestRateBeginsAfresh shows that the rate is that of the attempt that runs, never one between two.
func TestRateBeginsAfresh(t *testing.T) {
	p := &progress{}
	for i, tt := range []struct {
		in   int64
		rate float64
	}{{1000, 0}, {3000, 2000}, {5000, 2000}, {100, 0}, {1100, 1000}, {2100, 1000}} {
		p.take(&appmaster.Snapshot{
			Time:     time.Unix(1000+int64(i), 0),
			Vertices: []appmaster.Vertex{{Operators: []appmaster.Operator{{Kind: "source", Counters: map[string]int64{"records_out": tt.in}}}}},
		})
		if p.figures.rate != tt.rate {
			t.Errorf("after snapshot %d the rate is %v, want %v", i, p.figures.rate, tt.rate)
		}
	}
}

// TestTrouble: what holds a job up for a moment, as the opening of its tasks at every start, is not told; what lasts is, and when it is over.
func TestTrouble(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&session{env: Env{Stderr: &out}}, "x", "app", false, nil)
	now := time.Unix(1000, 0)
	for _, x := range []struct {
		at   time.Duration
		what string
		want string
	}{
		{0, "8 of 8 tasks to open", ""}, {time.Second, "", ""},
		{2 * time.Second, "broker down", ""}, {3 * time.Second, "broker down", ""}, {5 * time.Second, "broker down", "app: held up by broker down\n"}, {6 * time.Second, "broker down", ""},
		{10 * time.Second, "", "app: goes on\n"}, {11 * time.Second, "", ""},
	} {
		out.Reset()
		p.trouble(x.what, now.Add(x.at))
		if got := out.String(); got != x.want {
			t.Errorf("after %v, %q: printed %q, want %q", x.at, x.what, got, x.want)
		}
	}
	out.Reset()
	p.show(&appmaster.Snapshot{State: "finished", Time: now, Started: now}, "")
	if got := out.String(); got != "" {
		t.Errorf("of a finished job it prints %q", got)
	}
}

// TestSaidOnce: what takes long is said once in a pipe.
func TestSaidOnce(t *testing.T) {
	synctest.Test(t, testSaidOnce)
}

func testSaidOnce(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&session{env: Env{Stderr: &out}}, "x", "app", false, nil)
	var doing atomic.Pointer[string]
	text := "building x for linux/amd64 anew"
	doing.Store(&text)
	_, err := attended(t.Context(), nil, p, &doing, func(context.Context, context.Context) error {
		time.Sleep(5 * plainEvery)
		return nil
	})
	if got := out.String(); err != nil || got != text+"\n" {
		t.Errorf("printed %q, %v", got, err)
	}
}
