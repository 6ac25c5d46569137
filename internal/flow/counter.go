package flow

import "sync/atomic"

// Counter counts; its owner adds once a batch, anybody reads.
type Counter struct{ n atomic.Int64 }

// Add adds n, which may be negative for a gauge.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Set makes the counter a gauge with value n.
func (c *Counter) Set(n int64) { c.n.Store(n) }

// Load returns the count.
func (c *Counter) Load() int64 { return c.n.Load() }
