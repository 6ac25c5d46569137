package netstack

import (
	"github.com/heddle-stream/heddle/internal/cluster"
)

// gateSegments is how many segments a gate sets aside for channels from other processes, and how many it lends to them.
func (c *Config) gateSegments(remotes int) (exclusive, own int) {
	if remotes == 0 {
		return 0, 0
	}
	exclusive = remotes * c.ExclusivePerChannel
	if c.ExclusivePerChannel == 0 {
		own = 1
	}
	if c.Compression != "" {
		exclusive++ // to decompress into
	}
	return exclusive, own
}

// partitionSegments is how many segments a partition sets aside, and how many it lends to its subpartitions.
func (c *Config) partitionSegments(subpartitions int) (exclusive, own int) { return subpartitions, 1 }

// GateSegments returns how many segments NewGate would set aside for these channels.
func (s *Stack) GateSegments(channels []ChannelConfig) int {
	remotes := 0
	for i := range channels {
		if channels[i].Addr != s.Addr() {
			remotes++
		}
	}
	exclusive, own := s.cfg.gateSegments(remotes)
	return exclusive + own
}

// PartitionSegments returns how many segments NewPartition would set aside.
func (s *Stack) PartitionSegments(subpartitions int) int {
	exclusive, own := s.cfg.partitionSegments(subpartitions)
	return exclusive + own
}

// CheckMemory fails, as NewGate and NewPartition would, if so many segments can't be set aside now. Whoever is about to open
// many gates and partitions asks for all of them at once, so that the error tells how much memory all of them need.
func (s *Stack) CheckMemory(what string, segments int) error {
	if err := s.pool.Check(what, segments); err != nil {
		return &LocalError{Op: "use the exchange", Kind: cluster.Invalid, Err: err}
	}
	return nil
}
