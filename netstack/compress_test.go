package netstack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/testnet"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// TestFeatures exchanges over every mix of compression and checksums: what only one end has is not used.
func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		producer, consumer string
		sums               [2]bool
		packed             bool
	}{
		{"lz4", "lz4", [2]bool{true, true}, true},
		{"zstd", "zstd", [2]bool{}, true},
		{"none", "", [2]bool{true, true}, false},
		{"lz4", "none", [2]bool{true, false}, false},
		{"", "zstd", [2]bool{false, true}, false},
		{"lz4", "zstd", [2]bool{}, false},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			a := start(t, func(cfg *Config) { cfg.Compression, cfg.Checksum = c.producer, c.sums[0] })
			b := start(t, func(cfg *Config) { cfg.Compression, cfg.Checksum = c.consumer, c.sums[1] })
			p := mustPartition(t, a, "p", 2)
			g, w := open(t, b, "p", a.Addr(), 0, 1)
			eventually(t, "attached", func() bool { return a.Stats().Channels == 2 })
			done := make(chan error, 1)
			go func() { done <- produceTexts(t.Context(), p) }()
			if err := consumeTexts(g, w); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			g.Close()
			p.Release()
			st := a.Stats()
			if (st.PlainBytes > 0) != c.packed || (c.packed && st.PackedBytes*2 > st.PlainBytes) {
				t.Errorf("compressed %d bytes to %d, want compression: %v", st.PlainBytes, st.PackedBytes, c.packed)
			}
			eventually(t, "all is back", func() bool { return a.Stats().SegmentsUsed+b.Stats().SegmentsUsed == 0 })
		})
	}
	if _, err := New(Config{Auth: Auth{Key: testKey}, Compression: "lzo"}); err == nil || !strings.Contains(err.Error(), "must be none, lz4 or zstd") {
		t.Errorf("unknown compression: got %v", err)
	}
}

const texts = 60

// text is the payload of the n-th segment: most shrink, some don't.
func text(n int) []byte {
	b := bytes.Repeat([]byte(fmt.Sprintf("segment %d, ", n)), 1+n*5)
	if n%4 == 3 {
		rnd := rand.New(rand.NewPCG(uint64(n), 1))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
	}
	return b
}

func produceTexts(ctx context.Context, p *Partition) error {
	for n := range texts {
		for sub := range 2 {
			seg, err := p.Get(ctx, sub)
			if err != nil {
				return err
			}
			if err := p.Put(sub, seg, copy(seg.Bytes(), text(n))); err != nil {
				return err
			}
		}
	}
	return p.Finish(ctx)
}

func consumeTexts(g *Gate, w waker) error {
	var seen [2]int
	for left := 2; left > 0; {
		it, err := next(g, w)
		if err != nil {
			return err
		}
		if it.End {
			left--
			continue
		}
		if want := text(seen[it.Channel]); !bytes.Equal(it.Payload, want) {
			return fmt.Errorf("channel %d: got %d bytes, want segment %d of %d", it.Channel, len(it.Payload), seen[it.Channel], len(want))
		}
		seen[it.Channel]++
		g.Recycle(it)
	}
	if seen != [2]int{texts, texts} {
		return fmt.Errorf("got %v segments, want %d each", seen, texts)
	}
	return nil
}

// TestBadCompression sends blocks that lie: the channel fails, the connection goes on.
func TestBadCompression(t *testing.T) {
	good, flag := new(codec).compress("lz4", bytes.Repeat([]byte("abc"), 100))
	if flag != wire.FlagLZ4 {
		t.Fatal("repeated text did not shrink")
	}
	edit := func(n uint32) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b, n)
		return b
	}
	for name, b := range map[string][]byte{
		"cut": good[:len(good)-2], "too short to say its length": good[:3], "longer than a segment": edit(5000),
		"longer than it is": edit(301), "shorter than it is": edit(299), "of length 0": edit(0), "4 GiB": edit(1<<32 - 1),
	} {
		for _, flag := range []uint8{wire.FlagLZ4, wire.FlagZstd} {
			t.Run(fmt.Sprint(name, flag), func(t *testing.T) {
				s, tk := talk(t, true, func(c *Config) { c.Compression = "lz4" })
				g, w := gate(t, s, "a")
				a := tk.request("a", 2)
				other, wo := gate(t, s, "b")
				o := tk.request("b", 2)
				tk.send(frame(wire.Header{Type: wire.Data, Flags: flag, Channel: a}, string(b)))
				_, err := next(g, w)
				if e, ok := errors.AsType[*RemoteError](err); !ok || e.Kind != cluster.Corrupt || !strings.Contains(err.Error(), "partition a") {
					t.Errorf("got %v", err)
				}
				for h, _ := tk.want("breach", 0); h.Type != wire.Error || h.Channel != a; {
					h, _ = tk.want("breach", 0)
				}
				tk.send(frame(wire.Header{Type: wire.Data, Flags: wire.FlagLZ4, Channel: o}, string(good)))
				other.Recycle(wantItem(t, other, wo, 0, strings.Repeat("abc", 100)))
				g.Close()
				other.Close()
				if st := s.Stats(); st.SegmentsUsed != 0 || st.SegmentsReserved != 0 {
					t.Errorf("kept: %+v", st)
				}
			})
		}
	}
}

// TestAlteredFrameFailsTheConnection flips a bit under way, in each kind of frame: with checksums it is found.
func TestAlteredFrameFailsTheConnection(t *testing.T) {
	for name, f := range map[string]func(a uint32) []byte{
		"data":       func(a uint32) []byte { return data(a, 0, "payload") },
		"stray data": func(a uint32) []byte { return data(a+99, 0, "payload") },
		"event":      func(a uint32) []byte { return frame(wire.Header{Type: wire.Event, Channel: a}, "event") },
		"backlog":    func(a uint32) []byte { return frame(wire.Header{Type: wire.Backlog, Channel: a, Backlog: 1}, "") },
		"keepalive":  func(uint32) []byte { return frame(wire.Header{Type: wire.Keepalive}, "") },
	} {
		t.Run(name, func(t *testing.T) {
			s, tk := talk(t, true, func(c *Config) { c.Checksum = true })
			g, w := gate(t, s, "a")
			a := tk.request("a", 2)
			fine := data(a, 0, "fine")
			wire.PutSum(fine)
			tk.send(fine)
			g.Recycle(wantItem(t, g, w, 0, "fine"))
			tk.want("credit", wire.Credit)
			bad := f(a)
			if name == "data" {
				bad = data(a, 1, "payload")
			}
			wire.PutSum(bad)
			bad[len(bad)-1] ^= 4
			tk.nc.Write(bad)
			_, err := next(g, w)
			if !errors.Is(err, wire.ErrSum) {
				t.Errorf("got %v, want %v", err, wire.ErrSum)
			}
			wantRemote(t, "altered frame", err, cluster.Lost)
		})
	}
}

// TestVersionsMix connects agents of an older version with ones that speak a newer one too, as in a rolling upgrade.
func TestVersionsMix(t *testing.T) {
	for _, c := range []struct {
		producer, consumer [2]uint16
		want               uint16 // 0: they have none in common
	}{
		{[2]uint16{1, 1}, [2]uint16{1, 2}, 1},
		{[2]uint16{1, 2}, [2]uint16{1, 1}, 1},
		{[2]uint16{1, 3}, [2]uint16{2, 4}, 3},
		{[2]uint16{2, 2}, [2]uint16{1, 1}, 0},
		{[2]uint16{1, 1}, [2]uint16{2, 3}, 0},
	} {
		t.Run(fmt.Sprintf("%v %v", c.producer, c.consumer), func(t *testing.T) {
			n := testnet.New()
			a, b := simulated(t, n, func(cfg *Config) { cfg.ConnectRetries = -1 })
			a.versions, b.versions = c.producer, c.consumer
			p := mustPartition(t, a, "p", 1)
			g, w := open(t, b, "p", "a", 0)
			if c.want == 0 {
				_, err := next(g, w)
				if e := wantRemote(t, "no version in common", err, cluster.Denied); !strings.Contains(e.Error(), fmt.Sprintf("speaks %d to %d", c.producer[0], c.producer[1])) {
					t.Errorf("got %v", e)
				}
				return
			}
			done := make(chan error, 1)
			go func() { done <- produce(t.Context(), p, 1, 30) }()
			if err := consume(g, w, []int{0}, 30); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			for _, s := range []*Stack{a, b} {
				s.mu.Lock()
				conns := s.connsLocked()
				s.mu.Unlock()
				if len(conns) != 1 || conns[0].version != c.want {
					t.Errorf("%d connections, version %d, want %d", len(conns), conns[0].version, c.want)
				}
			}
		})
	}
}

func FuzzExpand(f *testing.F) {
	c := new(codec)
	for _, method := range []string{"lz4", "zstd"} {
		b, flag := c.compress(method, bytes.Repeat([]byte("0123456789"), 90))
		f.Add(bytes.Clone(b), flag == wire.FlagLZ4)
	}
	f.Fuzz(func(t *testing.T, b []byte, isLZ4 bool) {
		room := make([]byte, 1000, 1064)
		flag := wire.FlagZstd
		if isLZ4 {
			flag = wire.FlagLZ4
		}
		n, err := expand(room[:1000:1000], b, flag)
		if err == nil && (n > 1000 || uint32(n) != binary.LittleEndian.Uint32(b)) {
			t.Fatalf("%d bytes came out", n)
		}
		for _, c := range room[1000:1064] {
			if c != 0 {
				t.Fatal("wrote beyond the segment")
			}
		}
	})
}

// TestSkipsWhatDoesNotShrink sends plain what compression would save less than an eighth of.
func TestSkipsWhatDoesNotShrink(t *testing.T) {
	const size = 4000
	rnd := rand.New(rand.NewPCG(1, 2))
	for method, flag := range map[string]uint8{"lz4": wire.FlagLZ4, "zstd": wire.FlagZstd} {
		for random, want := range map[int]uint8{size: 0, size * 15 / 16: 0, size / 2: flag, 0: flag} {
			b := make([]byte, size)
			for i := range random {
				b[i] = byte(rnd.Uint32())
			}
			out, got := new(codec).compress(method, b)
			if got != want || got != 0 && len(out) > size*7/8 {
				t.Errorf("%s, %d of %d bytes random: got flag %d and %d bytes, want flag %d", method, random, size, got, len(out), want)
			}
		}
	}
}

// TestShyness tries ever more rarely to compress what doesn't shrink, and always what does.
func TestShyness(t *testing.T) {
	var s shyness
	tries := func(good bool, blocks int) (n int) {
		for range blocks {
			if s.try() {
				n++
				s.result(good)
			}
		}
		return n
	}
	if first, later := tries(false, 10), tries(false, 10*shyLimit); first < 2 || first > 5 || later < 5 || later > 20 {
		t.Errorf("tried %d of the first 10 blocks and %d of the next %d", first, later, 10*shyLimit)
	}
	tries(true, 2*shyLimit) // until it has seen that it is worthwhile again
	if n := tries(true, 100); n != 100 {
		t.Errorf("tried %d of 100 blocks that shrink", n)
	}
}
