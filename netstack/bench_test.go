package netstack

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// BenchmarkSegments moves full segments between two stacks in one process; with -benchmem, what a segment allocates.
func BenchmarkSegments(b *testing.B) {
	for name, remote := range map[string]bool{"remote": true, "local": false} {
		b.Run(name, func(b *testing.B) {
			edit := func(c *Config) { c.SegmentBytes = 0 }
			p, g, w := benchPair(b, edit, remote)
			b.SetBytes(int64(p.SegmentRoom()))
			b.ReportAllocs()
			done := make(chan error, 1)
			b.ResetTimer()
			go func() {
				for range b.N {
					seg, err := p.Get(b.Context(), 0)
					if err != nil {
						done <- err
						return
					}
					if err := p.Put(0, seg, len(seg.Bytes())); err != nil {
						done <- err
						return
					}
				}
				done <- p.Finish(b.Context())
			}()
			for {
				it, ok, err := g.Next()
				if err != nil {
					b.Fatal(err)
				}
				if it.End {
					break
				}
				if !ok {
					<-w
				}
				g.Recycle(it)
			}
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}

func benchPair(b *testing.B, edit func(*Config), remote bool) (*Partition, *Gate, waker) {
	x := start(b, edit)
	y := x
	if remote {
		y = start(b, edit)
	}
	p := mustPartition(b, x, "p", 1)
	g, w := open(b, y, "p", x.Addr(), 0)
	return p, g, w
}

// BenchmarkLatency sends 100 bytes now and then and reports how long they take: from Put to Next, and beside it over a bare
// connection with a goroutine that writes and one that reads, as any exchange needs them.
func BenchmarkLatency(b *testing.B) {
	b.Run("exchange", func(b *testing.B) {
		p, g, w := benchPair(b, nil, true)
		began := time.Now()
		go func() {
			for range b.N {
				time.Sleep(time.Millisecond)
				seg, err := p.Get(b.Context(), 0)
				if err != nil {
					return
				}
				binary.LittleEndian.PutUint64(seg.Bytes(), uint64(time.Since(began)))
				p.Put(0, seg, 100)
			}
			p.Finish(b.Context())
		}()
		var took []time.Duration
		for {
			it, err := nextWithin(g, w, time.Minute)
			if err != nil {
				b.Fatal(err)
			}
			if it.End {
				break
			}
			took = append(took, time.Since(began)-time.Duration(binary.LittleEndian.Uint64(it.Payload)))
			g.Recycle(it)
		}
		report(b, took)
	})
	b.Run("bare", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		out, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer out.Close()
		in, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		defer in.Close()
		began := time.Now()
		send, received := make(chan [124]byte, 1), make(chan [124]byte, 1)
		go func() {
			for f := range send {
				out.Write(f[:])
			}
			out.Close()
		}()
		go func() {
			defer close(received)
			var f [124]byte
			for {
				if _, err := io.ReadFull(in, f[:]); err != nil {
					return
				}
				received <- f
			}
		}()
		go func() {
			defer close(send)
			for range b.N {
				time.Sleep(time.Millisecond)
				var f [124]byte
				binary.LittleEndian.PutUint64(f[:], uint64(time.Since(began)))
				send <- f
			}
		}()
		var took []time.Duration
		for f := range received {
			took = append(took, time.Since(began)-time.Duration(binary.LittleEndian.Uint64(f[:])))
		}
		report(b, took)
	})
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-µs")
}

// BenchmarkSlowChannel has one producer serve 100 channels of a connection, each with a consumer. In "slow", one consumer takes nothing;
// the figure is what the 99 others get.
func BenchmarkSlowChannel(b *testing.B) {
	const channels = 100
	for _, slow := range []bool{false, true} {
		b.Run(fmt.Sprint("slow=", slow), func(b *testing.B) {
			x, y := start(b, func(c *Config) { c.SegmentBytes, c.MemorySegments = 0, 4096 }), start(b, func(c *Config) { c.SegmentBytes, c.MemorySegments = 0, 4096 })
			pw := newWaker()
			p, err := x.NewPartition(PartitionConfig{ID: "p", Subpartitions: channels, Wake: pw.wake})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Release()
			rest := make([]int, channels-1)
			for i := range rest {
				rest[i] = i + 1
			}
			stuck, ws := open(b, y, "p", x.Addr(), 0)
			g, w := open(b, y, "p", x.Addr(), rest...)
			stop := make(chan struct{})
			fed := make(chan struct{})
			go func() { defer close(fed); feed([]*Partition{p}, channels, p.SegmentRoom(), pw, stop) }()
			if !slow {
				go func() {
					for {
						it, ok, err := stuck.Next()
						switch {
						case err != nil:
							return
						case !ok:
							<-ws
						}
						stuck.Recycle(it)
					}
				}()
			}
			b.SetBytes(int64(p.SegmentRoom()))
			b.ResetTimer()
			for n := 0; n < b.N; {
				it, ok, err := g.Next()
				if err != nil {
					b.Fatal(err)
				}
				if !ok {
					<-w
					continue
				}
				n++
				g.Recycle(it)
			}
			b.StopTimer()
			close(stop)
			<-fed
			stuck.Close()
		})
	}
}
