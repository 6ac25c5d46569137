package agent

import "sync"

// mailbox is a queue without bound from any goroutine to one: putting never blocks, so that nobody
// who brings an event can be held up by a loop that waits for him.
type mailbox[T any] struct {
	signal chan struct{} // immutable; holds a token while there may be items

	mu    sync.Mutex
	items []T // guarded by mu
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{signal: make(chan struct{}, 1)} }

func (m *mailbox[T]) put(v T) {
	m.mu.Lock()
	m.items = append(m.items, v)
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items
}
