package schemaregistry

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/heddle-stream/heddle/internal/flow"
)

// registry is the client of one format, made when a process first needs it. All its subtasks share it.
type registry struct {
	mu     sync.Mutex
	client *client // guarded by mu; nil: not yet made
}

func (r *registry) open(option func(string) (string, bool)) (*client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil {
		c, err := newClient(option)
		if err != nil {
			return nil, err
		}
		r.client = c
	}
	return r.client, nil
}

// compiled keeps what was made of schemas.
type compiled[S any] struct {
	client *client
	make   func(*schema) (S, error)

	mu   sync.Mutex
	byID map[int64]S // guarded by mu
}

func newCompiled[S any](c *client, make func(*schema) (S, error)) *compiled[S] {
	return &compiled[S]{client: c, make: make, byID: map[int64]S{}}
}

func (c *compiled[S]) get(ctx context.Context, id int64) (S, error) {
	c.mu.Lock()
	s, ok := c.byID[id]
	c.mu.Unlock()
	if ok {
		return s, nil
	}
	raw, err := c.client.schema(ctx, id)
	if err != nil {
		return s, err
	}
	if s, err = c.make(raw); err != nil {
		return s, fmt.Errorf("cannot use schema %d: %w", id, err)
	}
	c.mu.Lock()
	c.byID[id] = s
	c.mu.Unlock()
	return s, nil
}

// decodeEach appends a record for each message from the from-th on. one decodes a value.
func decodeEach[T any](dst []T, m *flow.Messages, from int, one func([]byte, *T) error) ([]T, error) {
	for i := from; i < m.Len(); i++ {
		v := m.Value(i)
		if v == nil {
			return dst, errNull
		}
		var rec T
		if err := one(v, &rec); err != nil {
			return dst, err
		}
		dst = append(dst, rec)
	}
	return dst, nil
}

var (
	errNull   = errors.New("the message has no value")
	errClosed = errors.New("a format of package schemaregistry works in a job only: its options say where the registry is")
)

// unopened is what a format does outside of a job.
type unopened[T any] struct{ name string }

// Name implements flow.Format.
func (u unopened[T]) Name() string { return u.name }

// Fields implements flow.Format.
func (u unopened[T]) Fields() flow.MessageFields { return 0 }

// Decode implements flow.Format.
func (u unopened[T]) Decode(dst []T, _ *flow.Messages, _ int) ([]T, error) { return dst, errClosed }

// Encode implements flow.Format.
func (u unopened[T]) Encode(*flow.Messages, []T) error { return errClosed }
