package sched

import "github.com/heddle-stream/heddle/internal/jobgraph"

// Mode decides how wide a job is made. It is where a reactive mode has its place: one that takes what slots there are and
// makes the job fit, again whenever that changes. Until jobs can go on from a checkpoint, there is Fixed.
type Mode interface {
	// Graph returns the job to be run from the next restart on: job, with other parallelisms perhaps. slots is how many there
	// are for it. It must return the same pointer for the same widths, so that an attempt can go on where the one before was.
	Graph(job *jobgraph.Graph, slots int) *jobgraph.Graph
}

// Fixed is the mode of a job that is as wide as its author and its configuration say, or does not run.
type Fixed struct{}

// Graph implements Mode.
func (Fixed) Graph(job *jobgraph.Graph, _ int) *jobgraph.Graph { return job }
