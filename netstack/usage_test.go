package netstack

import (
	"context"
	"testing"
)

// TestUsage: a consumer that takes nothing makes the producer use all it may have; the gate too, if it is in another process. What is consumed is given back.
func TestUsage(t *testing.T) {
	for _, local := range []bool{false, true} {
		a := start(t, nil)
		b := a
		if !local {
			b = start(t, nil)
		}
		p := mustPartition(t, a, "p", 1)
		g, w := open(t, b, "p", a.Addr(), 0)
		if used, most := p.Usage(); used != 0 || most != 32 {
			t.Errorf("local=%v: an idle partition uses %d of %d segments", local, used, most)
		}
		if used, most := g.Usage(); used != 0 || local != (most == 0) {
			t.Errorf("local=%v: an idle gate uses %d of %d segments", local, used, most)
		}
		if !local {
			eventually(t, "there is credit", func() bool { credit, starved := p.Credit(); return credit > 0 && starved == 0 && g.Credit() == credit })
		} else if credit, starved := p.Credit(); credit != 0 || starved != 0 || g.Credit() != 0 {
			t.Errorf("there is credit within a process: %d, %d starved", credit, starved)
		}
		const n = 200
		produced := make(chan error, 1)
		go func() { produced <- produce(t.Context(), p, 1, n) }()
		full := func(used, most int) bool { return used > 0 && used == most }
		eventually(t, "the partition is full", func() bool { return full(p.Usage()) })
		if !local {
			eventually(t, "the gate is full", func() bool { return full(g.Usage()) })
			eventually(t, "all credit is spent", func() bool { credit, starved := p.Credit(); return credit == 0 && starved == 1 && g.Credit() == 0 })
		}
		if err := consume(g, w, []int{0}, n); err != nil {
			t.Fatal(err)
		}
		if err := <-produced; err != nil {
			t.Fatal(err)
		}
		eventually(t, "all is given back", func() bool {
			out, _ := p.Usage()
			in, _ := g.Usage()
			return out == 0 && in == 0
		})
		p.Release()
		g.Close()
		if used, most := p.Usage(); used != 0 || most != 0 {
			t.Errorf("local=%v: a released partition uses %d of %d segments", local, used, most)
		}
	}
}

// TestUsageOfSmallMemory: who gets no more because the memory is lent is full too.
func TestUsageOfSmallMemory(t *testing.T) {
	a := start(t, func(c *Config) { c.MemorySegments = 6 })
	p := mustPartition(t, a, "p", 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- produce(ctx, p, 1, 100) }()
	eventually(t, "the partition is full", func() bool {
		used, most := p.Usage()
		return used > 1 && used == most && most <= 6
	})
	cancel()
	<-done
}
