package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// Map applies f to every record.
func Map[T, U any](s Stream[T], f func(T) U) Stream[U] {
	return addNode[U](s.job, nodeSpec{kind: "map", new: flow.NewMap(f)}, s.edges(0)...)
}
