package demo

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run produces for a moment, then counts by the slow obvious way, spoils the counts and writes them as the job would.
func run(t *testing.T, spoil func([]result) []result) (string, error) {
	t.Helper()
	d, err := Start(Config{Rate: 5000, Partitions: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := errors.Join(d.Produce(untilProduced(t, d, 500)), d.Finish()); err != nil {
		t.Fatal(err)
	}
	produced := d.View(0).Produced
	results := spoil(count(t, d, int(produced)+3))
	for _, r := range results {
		value, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.client.ProduceSync(t.Context(), &kgo.Record{Topic: Results, Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.Await(ctx, func(v View) bool { return v.Results >= int64(len(results)) }); err != nil {
		t.Fatalf("the results were not read in time: %+v", d.View(0))
	}
	return d.Check()
}

// untilProduced returns a context that ends once so many events are produced, however long that takes.
func untilProduced(t *testing.T, d *Demo, events int64) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	wg.Go(func() {
		defer cancel()
		for tick := time.Tick(time.Millisecond); d.View(0).Produced < events; {
			select {
			case <-tick:
			case <-t.Context().Done():
				return
			}
		}
	})
	return ctx
}

func count(t *testing.T, d *Demo, n int) []result {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(d.Broker()), kgo.ConsumeTopics(Clicks))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	counts := map[cell]int64{}
	for n > 0 {
		client.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			n--
			var e struct {
				Kind, User string
				At         time.Time
			}
			if err := json.Unmarshal(r.Value, &e); err != nil {
				t.Errorf("event %q: %v", r.Value, err)
			}
			if e.Kind == "click" {
				counts[cell{e.User, windowEnd(e.At)}]++
			}
		})
	}
	var results []result
	for c, n := range counts {
		results = append(results, result{c.user, time.UnixMilli(c.end), n})
	}
	return results
}

func TestEveryEventCounted(t *testing.T) {
	text, err := run(t, func(r []result) []result { return r })
	if err != nil || !strings.Contains(text, "every event exactly once") {
		t.Errorf("Check = %q, %v, want success", text, err)
	}
}

// TestNothingToCheck: a demo that was interrupted before its job ran does not boast of a count.
func TestNothingToCheck(t *testing.T) {
	d, err := Start(Config{Rate: 5000, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if text, err := d.Check(); err != nil || text != "no event was produced, so there was nothing to count" {
		t.Errorf("Check = %q, %v", text, err)
	}
}

func TestMiscountIsFound(t *testing.T) {
	for name, spoil := range map[string]func([]result) []result{
		"lost event":      func(r []result) []result { r[0].Clicks--; return r },
		"lost result":     func(r []result) []result { return r[1:] },
		"doubled result":  func(r []result) []result { return append(r, r[0]) },
		"split result":    func(r []result) []result { r[0].Clicks--; return append(r, result{r[0].User, r[0].End, 1}) },
		"made-up user":    func(r []result) []result { return append(r, result{"mallory", r[0].End, 1}) },
		"shifted by user": func(r []result) []result { r[0].Clicks--; r[1].Clicks++; return r },
	} {
		if text, err := run(t, spoil); !errors.Is(err, ErrMiscounted) {
			t.Errorf("%s: Check = %q, %v, want ErrMiscounted", name, text, err)
		}
	}
}

func TestTrim(t *testing.T) {
	d, err := Start(Config{Rate: 10_000, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Produce(untilProduced(t, d, 500)); err != nil {
		t.Fatal(err)
	}
	n := d.View(0).Produced
	if err := d.Trim(t.Context(), map[int32]int64{0: n}); err != nil {
		t.Fatal(err)
	}
	if info := d.cluster.TopicInfo(Clicks); info == nil || d.cluster.PartitionInfo(Clicks, 0).LogStartOffset != n {
		t.Errorf("after Trim to %d the partition begins at %+v", n, d.cluster.PartitionInfo(Clicks, 0))
	}
}
