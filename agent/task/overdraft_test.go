package task

import (
	"testing"

	"github.com/heddle-stream/heddle/netstack"
)

// TestRecordGoesOnBeyondTheLimits has a producer begin a record with its last segment while nobody reads: it may end it in a few segments
// more, and begins no other.
func TestRecordGoesOnBeyondTheLimits(t *testing.T) {
	stack, err := netstack.New(netstack.Config{Auth: netstack.Auth{Key: make([]byte, netstack.KeySize)}, SegmentBytes: 1024, MemorySegments: 64,
		MaxPerSubpartition: 2, FloatingPerGate: 1, Overdraft: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer stack.Close()
	p, err := NewNetExchange(stack).NewPartition(PartitionConfig{ID: "p", Subpartitions: 1}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	o := &edgeOut{part: p}
	var within int
	for {
		b, err := p.TryGet(0)
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			break
		}
		within++
		if err := p.Put(0, len(b)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 { // would wait for ever within the limits
		b, err := o.GetMore(0)
		if err != nil || b == nil {
			t.Fatalf("segment %d in the midst of a record: %d bytes, %v", i, len(b), err)
		}
		if err := o.Put(0, len(b)); err != nil {
			t.Fatal(err)
		}
	}
	if b := p.(overdrawer).Overdraw(0); within != 2 || b != nil {
		t.Errorf("%d segments within the limits, and one more than the overdraft: %v; want 2 and none", within, b != nil)
	}
}
