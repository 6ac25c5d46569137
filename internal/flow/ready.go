package flow

import (
	"context"
	"time"
)

// Readying is a connector or format that can find out, before a job's tasks are deployed, whether it will be able to work: that a topic to be written to is there,
// that a registry takes a schema. The ApplicationMaster asks it; what it says then refuses the job.
type Readying interface {
	Ready(ctx context.Context, option func(name string) (string, bool)) error
}

// readyTimeout bounds how long a format is asked. What does not answer by then is told; a task would wait for it longer.
const readyTimeout = 15 * time.Second

// ReadyOf returns what asks a connector or format whether it will be able to work; nil if it does not know.
func ReadyOf(part any) func(ctx context.Context, option func(name string) (string, bool)) error {
	if r, ok := part.(Readying); ok {
		return r.Ready
	}
	return nil
}

// Ready implements Readying: the format can be opened. The connector's enumerator speaks for that.
func (d decoded[T]) Ready(ctx context.Context, option func(name string) (string, bool)) error {
	return readyFormat(ctx, d.format, option)
}

func readyFormat[T any](ctx context.Context, f Format[T], option func(name string) (string, bool)) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	_, err := opened(ctx, f, option)
	return err
}

// Ready implements Readying: the format can be opened, and the connector is ready if it knows.
func (e encoded[T]) Ready(ctx context.Context, option func(name string) (string, bool)) error {
	if err := readyFormat(ctx, e.format, option); err != nil {
		return err
	}
	if ready := ReadyOf(e.sink); ready != nil {
		return ready(ctx, option)
	}
	return nil
}
