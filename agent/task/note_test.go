package task

import (
	"testing"
	"time"

	"github.com/heddle-stream/heddle/netstack"
)

// TestNotes sends a segment with a note, and one without, by each kind of Exchange.
func TestNotes(t *testing.T) {
	stack, err := netstack.New(netstack.Config{Auth: netstack.Auth{Key: make([]byte, netstack.KeySize)}, MemorySegments: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer stack.Close()
	for name, x := range map[string]Exchange{"memory": NewMemory(4096, 4), "net": NewNetExchange(stack)} {
		addr := stack.Addr()
		p, err := x.NewPartition(PartitionConfig{ID: "p", Subpartitions: 1}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		g, err := x.NewGate("test", []Channel{{Partition: "p", Addr: addr}}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		for _, note := range []string{"here", ""} {
			b, err := p.Get(t.Context().Done(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.PutNoted(0, copy(b, "data"), []byte(note)); err != nil {
				t.Fatal(err)
			}
			it, ok, err := g.Next()
			switch {
			case err != nil || !ok || string(it.Payload) != "data":
				t.Fatalf("%s: got %+v, %v, %v", name, it, ok, err)
			case note == "" && it.Hop != nil:
				t.Errorf("%s: a segment without note came with %+v", name, it.Hop)
			case note != "" && (it.Hop == nil || string(it.Hop.Note) != note || it.Hop.Taken.Before(it.Hop.Put) || time.Since(it.Hop.Taken) > time.Hour):
				t.Errorf("%s: got %+v, want note %q", name, it.Hop, note)
			}
			g.Recycle(it)
		}
		g.Close()
		p.Release()
	}
}
