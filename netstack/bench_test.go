package netstack

import (
	"encoding/binary"
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

// BenchmarkLatency sends 100 bytes now and then and reports how long they take from Put to Next.
func BenchmarkLatency(b *testing.B) {
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
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-µs")
}
