package netstack

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = []byte("0123456789abcdef0123456789abcdef")

// start returns a stack on loopback that is closed with the test.
func start(t testing.TB, edit func(*Config)) *Stack {
	t.Helper()
	cfg := Config{Auth: Auth{Key: testKey}, SegmentBytes: 4096, MemorySegments: 1024, ExclusivePerChannel: 2}
	if edit != nil {
		edit(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// waker is a Wake function and what waits for it.
type waker chan struct{}

func newWaker() waker { return make(waker, 1) }

func (w waker) wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// next waits for an item, long enough for any test that doesn't wait on purpose.
func next(g *Gate, w waker) (Item, error) { return nextWithin(g, w, 2*time.Minute) }

func nextWithin(g *Gate, w waker, d time.Duration) (Item, error) {
	timeout := time.After(d)
	for {
		it, ok, err := g.Next()
		if ok || err != nil {
			return it, err
		}
		select {
		case <-w:
		case <-timeout:
			return Item{}, fmt.Errorf("nothing came for %v", d)
		}
	}
}

// fill writes a checksummed payload of n bytes that names sub and seq.
func fill(b []byte, sub, seq int) {
	binary.LittleEndian.PutUint32(b, uint32(sub))
	binary.LittleEndian.PutUint32(b[4:], uint32(seq))
	for i := 12; i < len(b); i++ {
		b[i] = byte(i * (seq + 7*sub))
	}
	binary.LittleEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[12:]))
}

func verify(b []byte, sub, seq int) error {
	s, q := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
	if s != sub || q != seq {
		return fmt.Errorf("got segment %d of subpartition %d, want %d of %d", q, s, seq, sub)
	}
	if binary.LittleEndian.Uint32(b[8:]) != crc32.ChecksumIEEE(b[12:]) {
		return fmt.Errorf("segment %d of subpartition %d is corrupt", q, s)
	}
	return nil
}

// produce sends n segments of varying length to each subpartition, an event after every tenth, and finishes.
func produce(ctx context.Context, p *Partition, subs, n int) error {
	for seq := range n {
		for sub := range subs {
			seg, err := p.Get(ctx, sub)
			if err != nil {
				return err
			}
			size := 12 + (seq*131+sub*17)%(len(seg.Bytes())-12)
			fill(seg.Bytes()[:size], sub, seq)
			if err := p.Put(sub, seg, size); err != nil {
				return err
			}
			if seq%10 == 9 {
				if err := p.Event(sub, []byte{byte(seq)}, EventOptions{}); err != nil {
					return err
				}
			}
		}
	}
	return p.Finish(ctx)
}

// consume reads all channels of a gate to their ends and checks what comes. subs[i] is the subpartition of channel i.
func consume(g *Gate, w waker, subs []int, n int) error {
	seq := make([]int, len(subs))
	for left := len(subs); left > 0; {
		it, err := next(g, w)
		switch {
		case err != nil:
			return err
		case it.End:
			if seq[it.Channel] != n {
				return fmt.Errorf("channel %d ended after %d segments, want %d", it.Channel, seq[it.Channel], n)
			}
			left--
		case it.Segment == nil:
			if q := seq[it.Channel]; q%10 != 0 || it.Event[0] != byte(q-1) {
				return fmt.Errorf("channel %d: event %d came after %d segments", it.Channel, it.Event[0], q)
			}
		default:
			if err := verify(it.Payload, subs[it.Channel], seq[it.Channel]); err != nil {
				return err
			}
			seq[it.Channel]++
			g.Recycle(it)
		}
	}
	return nil
}

func TestRemoteAndLocal(t *testing.T) {
	for _, remote := range []bool{true, false} {
		t.Run(fmt.Sprint("remote=", remote), func(t *testing.T) {
			const subs, n = 8, 200
			a := start(t, nil)
			b := a
			if remote {
				b = start(t, nil)
			}
			p, err := a.NewPartition(PartitionConfig{ID: "p", Subpartitions: subs})
			if err != nil {
				t.Fatal(err)
			}
			errs := make(chan error, 3)
			go func() { errs <- produce(t.Context(), p, subs, n) }()
			for half := range 2 {
				var ids []int
				var cfg GateConfig
				w := newWaker()
				cfg.Wake = w.wake
				for sub := half; sub < subs; sub += 2 {
					ids = append(ids, sub)
					cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: "p", Subpartition: sub, Addr: a.Addr()})
				}
				g, err := b.NewGate(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				go func() { errs <- consume(g, w, ids, n) }()
			}
			for range 3 {
				if err := <-errs; err != nil {
					t.Fatal(err)
				}
			}
			p.Release()
			t.Logf("%+v", a.Stats())
			t.Logf("%+v", b.Stats())
		})
	}
}
