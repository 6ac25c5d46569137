package kafkasource

import (
	"encoding/binary"
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// batchAt is a batch of one record.
func batchAt(t *testing.T, offset uint64) []byte {
	t.Helper()
	var b batch.Builder
	b.Begin(make([]byte, 1<<10))
	if !b.Append(1, nil, []byte("x"), nil) {
		t.Fatal("no room")
	}
	data, err := b.Seal(batch.Header{}, 0, new(batch.Compressor))
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint64(data, offset)
	return data
}

// TestFetchedBeforePause: what was fetched before a split was resumed at an earlier offset would leave a gap (K-13).
func TestFetchedBeforePause(t *testing.T) {
	target := kafka.NewTarget(kafka.TP{Topic: "a"}, 0, noStop)
	s := &split{target: target, id: "a-0", pos: 6, since: 2}
	for gen, want := range map[int64]bool{1: false, 2: true} {
		r := &reader{bytes: new(flow.Counter), byTarget: map[*kafka.Target]*split{target: s}}
		r.resp = &kafka.Response{Parts: []kafka.Part{{Target: target, Gen: gen, Batches: batchAt(t, 12), Next: 13}}}
		if r.nextPart(); r.busy != want {
			t.Errorf("fetched at %d, resumed at %d: taken %v", gen, s.since, r.busy)
		}
	}
}

// TestStopInAHole: a split ends where compaction has left nothing before its stop, and the next batch begins behind it (K-01).
func TestStopInAHole(t *testing.T) {
	s := &split{target: kafka.NewTarget(kafka.TP{Topic: "a"}, 6, 10), id: "a-0", pos: 6}
	r := &reader{open: 1}
	r.begin(s, work{batches: batchAt(t, 12), next: 13})
	for r.busy {
		if ok, err := r.decode(); ok || err != nil {
			t.Fatalf("it has a record, or %v", err)
		}
	}
	if s.pos != 10 || !s.ended || len(r.finished) != 1 {
		t.Errorf("at %d, ended: %v, ends: %d", s.pos, s.ended, len(r.finished))
	}
}

// TestHeldWithoutGaps: what was fetched behind something that there was no room to hold is fetched again with it (M-03).
func TestHeldWithoutGaps(t *testing.T) {
	s := &split{target: kafka.NewTarget(kafka.TP{Topic: "a"}, 0, noStop), id: "a-0", paused: true}
	r := &reader{maxHeld: 100}
	for i, size := range []int{60, 60, 20} {
		r.hold(s, work{batches: make([]byte, size), next: int64(i + 1)}, false)
	}
	if len(s.held) != 1 || s.next != 1 || r.heldBytes != 60 {
		t.Errorf("held are %d, up to %d, of %d bytes: want the first alone", len(s.held), s.next, r.heldBytes)
	}
}
