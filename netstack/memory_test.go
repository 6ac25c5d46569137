package netstack

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/netstack/bufpool"
)

// What is said to be needed beforehand is what is set aside then.
func TestSegmentsThatAreSetAside(t *testing.T) {
	for _, edit := range []func(*Config){
		nil,
		func(c *Config) { c.ExclusivePerChannel = -1 },
		func(c *Config) { c.Compression = "lz4" },
		func(c *Config) { c.ExclusivePerChannel = 7; c.FloatingPerGate = -1 },
	} {
		s := start(t, edit)
		for _, local := range []bool{true, false} {
			addr := "127.0.0.1:1"
			if local {
				addr = s.Addr()
			}
			for n := 1; n < 4; n++ {
				channels := make([]ChannelConfig, n)
				for i := range channels {
					channels[i] = ChannelConfig{Partition: fmt.Sprint("p", i), Addr: addr}
				}
				before := s.pool.Stats().Reserved
				want := s.GateSegments(channels) + s.PartitionSegments(n)
				g, err := s.NewGate(GateConfig{Channels: channels})
				if err != nil {
					t.Fatal(err)
				}
				p, err := s.NewPartition(PartitionConfig{ID: "own", Subpartitions: n})
				if err != nil {
					t.Fatal(err)
				}
				if got := s.pool.Stats().Reserved - before; got != want {
					t.Errorf("%d channels, local %v: %d segments were set aside, said to need %d", n, local, got, want)
				}
				p.Release()
				g.Close()
			}
		}
	}
}

func TestCheckMemory(t *testing.T) {
	s := start(t, func(c *Config) { c.MemorySegments = 10 })
	if err := s.CheckMemory("all", 10); err != nil {
		t.Error(err)
	}
	err := s.CheckMemory("the 3 tasks", 11)
	if e, ok := errors.AsType[*bufpool.MemoryError](err); !ok || e.Need != 11 || e.Have != 10 || !strings.Contains(err.Error(), "the 3 tasks") {
		t.Errorf("got %v", err)
	}
	if got := s.pool.Stats().Reserved; got != 0 {
		t.Errorf("the check set %d segments aside", got)
	}
	_, err = s.NewGate(GateConfig{Channels: []ChannelConfig{{}}})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot open gate: ") {
		t.Errorf("a gate without a name: %v", err)
	}
}
