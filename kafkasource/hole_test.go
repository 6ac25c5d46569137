package kafkasource

import (
	"encoding/binary"
	"testing"

	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// TestStopInAHole: a split ends where compaction has left nothing before its stop, and the next batch begins behind it (K-01).
func TestStopInAHole(t *testing.T) {
	var b batch.Builder
	b.Begin(make([]byte, 1<<10))
	if !b.Append(1, nil, []byte("x"), nil) {
		t.Fatal("no room")
	}
	data, err := b.Seal(batch.Header{}, 0, new(batch.Compressor))
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint64(data, 12) // its offset
	s := &split{target: kafka.NewTarget(kafka.TP{Topic: "a"}, 6, 10), id: "a-0", pos: 6}
	r := &reader{open: 1}
	r.begin(s, work{batches: data, next: 13})
	for r.busy {
		if ok, err := r.decode(); ok || err != nil {
			t.Fatalf("it has a record, or %v", err)
		}
	}
	if s.pos != 10 || !s.ended || len(r.finished) != 1 {
		t.Errorf("at %d, ended: %v, ends: %d", s.pos, s.ended, len(r.finished))
	}
}
