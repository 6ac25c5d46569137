package kafkasink

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/twmb/franz-go/pkg/kfake"
)

// TestReady: before a job begins, a sink tells what it could not do later.
func TestReady(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	rt := newRuntime(c.ListenAddrs())
	for _, test := range []struct {
		sink *Sink
		want string
	}{
		{Topic("out"), ""},
		{Topic("dead-letters"), `topic "dead-letters" does not exist`},
		{Topic("out").Compression("rar"), "rar"},
		{Topic("out").Brokers("nowhere"), "nowhere"},
	} {
		err := flow.ReadyOf(flow.Encode(test.sink, jsonFormat[int]{}))(t.Context(), rt.Option)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.sink.Describe(), err, test.want)
		}
	}
}

// openedFormat is a format that needs the job's options.
type openedFormat struct {
	jsonFormat[int]
	err error
}

func (f openedFormat) Open(context.Context, func(string) (string, bool)) (flow.Format[int], error) {
	return jsonFormat[int]{}, f.err
}

func (f openedFormat) Encode(*flow.Messages, []int) error { return errors.New("it was not opened") }

// TestKeyOverOpener: a format that needs options gets them under a key too, and is asked whether it is ready.
func TestKeyOverOpener(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	rt := newRuntime(c.ListenAddrs())
	key := func(int) string { return "k" }
	w := newWriter(t, Topic("out"), WithKey[int](openedFormat{}, key), rt)
	if err := w.Write(flow.Batch[int]{Recs: []int{7}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := read(t, c, "out", 1)[0]; string(r.Key) != "k" || string(r.Value) != "7" {
		t.Errorf("got %s: %s", r.Key, r.Value)
	}
	err := flow.ReadyOf(flow.Encode(Topic("out"), WithKey[int](openedFormat{err: errors.New("no registry")}, key)))(t.Context(), rt.Option)
	if err == nil || !strings.Contains(err.Error(), "no registry") {
		t.Errorf("got %v", err)
	}
}
