package netstack

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

func descriptors() int {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // not on Linux
	}
	return len(fds)
}

// TestTwoHundredAgents connects one agent with 200 others, both ways, over TCP. It states and bounds what that costs, and that it
// all goes when they go. All stacks are in this process, so each connection costs both its ends here.
func TestTwoHundredAgents(t *testing.T) {
	const n = 200
	start(t, nil).Close() // the runtime has its own descriptors now
	goroutines, files, before := runtime.NumGoroutine(), descriptors(), heap()
	edit := func(c *Config) { c.SegmentBytes, c.MemorySegments = 1024, 4096 }
	hub := start(t, edit)
	peers := make([]*Stack, n)
	for i := range peers {
		peers[i] = start(t, edit)
	}
	idle := heap()

	out := mustPartition(t, hub, "out", n)
	w := newWaker()
	in := GateConfig{Name: "hub", Wake: w.wake}
	errs := make(chan error, 2*n+1)
	var parts []*Partition
	var gates []*Gate
	var wakers []waker
	for i, s := range peers {
		id := fmt.Sprint("p", i)
		parts = append(parts, mustPartition(t, s, id, 1))
		in.Channels = append(in.Channels, ChannelConfig{Partition: id, Addr: s.Addr()})
		g, gw := open(t, s, "out", hub.Addr(), i)
		gates, wakers = append(gates, g), append(wakers, gw)
	}
	g, err := hub.NewGate(in)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all connected", func() bool { st := hub.Stats(); return st.Connections == 2*n && st.Channels == 2*n })
	ends := 4 * n
	eventually(t, "there are two goroutines for each end and each stack", func() bool { // those of dials may take a moment to end
		return runtime.NumGoroutine()-goroutines <= 2*ends+2*(n+1)
	})
	fds, gos, mem := descriptors()-files, runtime.NumGoroutine()-goroutines, heap()-idle
	t.Logf("%d connections: %d descriptors, %d goroutines, %.1f kB of memory for each end", 2*n, fds, gos, float64(mem)/float64(ends)/1000)
	t.Logf("%.1f kB of memory for each idle stack", float64(idle-before)/(n+1)/1000)
	if fds > ends+n+1 {
		t.Errorf("%d descriptors, want one for each end and each listener: %d", fds, ends+n+1)
	}
	if each := mem / int64(ends); each > 24_000 {
		t.Errorf("%d bytes for each end of a connection with a channel", each)
	}

	const segments = 3
	go func() { errs <- produce(t.Context(), out, n, segments) }()
	for i := range peers {
		go func() { errs <- produce(t.Context(), parts[i], 1, segments) }()
		go func() { errs <- consume(gates[i], wakers[i], []int{i}, segments) }()
	}
	if err := consume(g, w, make([]int, n), segments); err != nil {
		t.Fatal(err)
	}
	for range 2*n + 1 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	g.Close()
	for _, s := range peers {
		s.Close()
	}
	eventually(t, "the hub keeps no connection to agents that went", func() bool { return hub.Stats().Connections == 0 })
	hub.Close()
	eventually(t, "descriptors and goroutines are back", func() bool {
		return descriptors() <= files && runtime.NumGoroutine() <= goroutines
	})
}
