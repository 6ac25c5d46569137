package task

import (
	"sync/atomic"
	"time"
)

// waitKind says what a task waits for.
type waitKind int64

const (
	idle    waitKind = iota // input
	blocked                 // room in the output
)

// meter tells running time apart into busy, idle and blocked. The task's goroutine moves it on the paths that
// wait anyway; anybody reads it.
type meter struct {
	clock func() time.Time // immutable after begin
	start time.Time        // immutable after begin

	begun   atomic.Bool     // start is set
	waited  [2]atomic.Int64 // nanoseconds by waitKind
	waiting atomic.Int64    // while waiting: (nanoseconds from start to its begin)<<1 | kind; else -1
	ended   atomic.Int64    // running time at the end; 0 before
}

func (m *meter) begin() {
	m.start = m.clock()
	m.waiting.Store(-1)
	m.begun.Store(true)
}

func (m *meter) since() int64 { return int64(m.clock().Sub(m.start)) }

func (m *meter) enter(k waitKind) { m.waiting.Store(m.since()<<1 | int64(k)) }

func (m *meter) leave() {
	w := m.waiting.Swap(-1)
	m.waited[w&1].Add(m.since() - w>>1)
}

func (m *meter) end() { m.ended.Store(max(1, m.since())) }

// read returns the three times; they add up to the running time.
func (m *meter) read() (busyTime, idleTime, blockedTime time.Duration) {
	if !m.begun.Load() {
		return 0, 0, 0
	}
	w := m.waiting.Load()
	wait := [2]int64{m.waited[idle].Load(), m.waited[blocked].Load()}
	run := m.ended.Load()
	if run == 0 {
		run = m.since()
	}
	if w >= 0 {
		wait[w&1] += max(0, run-w>>1)
	}
	busy := max(0, run-wait[idle]-wait[blocked])
	return time.Duration(busy), time.Duration(wait[idle]), time.Duration(wait[blocked])
}
