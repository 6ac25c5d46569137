package netstack

import (
	"testing"
	"time"

	"github.com/heddle-stream/heddle/netstack/wire"
)

// TestAdmission has a peer that grants credit without end and does not read: what producers may fill for it is bounded,
// all together, and comes again once it reads.
func TestAdmission(t *testing.T) {
	const subs, most = 200, 20 << 10
	woken := make(chan struct{}, 1)
	s, tk := talk(t, false, func(c *Config) { c.MemorySegments = 4096 })
	tk.rd.maxData = 1024
	p, err := s.NewPartition(PartitionConfig{ID: "p", Subpartitions: subs, MaxSegments: 8 * subs, Wake: func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	for sub := range subs {
		tk.send(wire.AppendRequest(nil, uint32(sub+1), wire.PartitionRequest{Partition: "p", Subpartition: uint32(sub), Credit: 100}))
	}
	eventually(t, "all are attached", func() bool { return s.Stats().Channels == subs })
	s.mu.Lock()
	for _, c := range s.connsLocked() {
		c.admit.most, c.admit.few = most, most/2
	}
	s.mu.Unlock()
	put := 0
	fill := func() {
		for range subs {
			if seg := p.TryGet(put % subs); seg != nil {
				p.Put(put%subs, seg, len(seg.Bytes()))
				put++
			}
		}
	}
	quiet := 0
	eventually(t, "the socket is full", func() bool {
		before := put
		if fill(); put > before {
			quiet = 0
		}
		if quiet++; quiet <= 20 {
			return false
		}
		seg := p.TryGet(0)
		if seg != nil {
			p.Put(0, seg, 0)
		}
		return seg == nil // refused, and to be woken
	})
	if held, most := s.Stats().SegmentsUsed, most/p.SegmentRoom()+1+maxBatchFrames; held > most {
		t.Errorf("%d segments are held for a connection that takes none, want %d at most, with the batch that is being written", held, most)
	}
	for range put {
		if h, _ := tk.want("what was put", 0); h.Type != wire.Data {
			t.Fatalf("got %s", h.Type)
		}
	}
	select {
	case <-woken:
	case <-time.After(time.Minute):
		t.Error("the producer is not woken though all was written")
	}
	eventually(t, "there is a segment again", func() bool {
		seg := p.TryGet(0)
		if seg != nil {
			p.Put(0, seg, 0)
		}
		return seg != nil
	})
}
