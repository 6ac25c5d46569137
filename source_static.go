package heddle

import (
	"context"

	"github.com/heddle-stream/heddle/internal/flow"
)

// staticSplits is the enumerator of a source whose splits are all known from the start. They go round among the readers.
type staticSplits struct {
	splits []flow.Split
	index  map[string]int // by id; made by Discover
}

// Discover implements flow.Enumerator.
func (e *staticSplits) Discover(context.Context) (flow.Discovery, error) {
	if e.index != nil {
		return flow.Discovery{Final: true}, nil
	}
	e.index = make(map[string]int, len(e.splits))
	for i, s := range e.splits {
		e.index[s.ID] = i
	}
	return flow.Discovery{Added: e.splits, Final: true}, nil
}

// Owner implements flow.Enumerator.
func (e *staticSplits) Owner(s flow.Split, readers int) int { return e.index[s.ID] % readers }

// Close implements flow.Enumerator.
func (e *staticSplits) Close() error { return nil }
