package kafka

import (
	"sync"

	"github.com/heddle-stream/heddle/internal/kafka/batch"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Response is what one fetch brought for the partitions of one broker. Its memory is used again after Release.
type Response struct {
	Parts []Part

	// Owned by the fetcher, then by whoever took the Response, until Release.
	buf  []byte
	msg  kmsg.FetchResponse
	home chan<- *Response
}

// Part is one partition's part of a Response.
type Part struct {
	Target  *Target
	Gen     int64               // how often the Target had been paused and resumed
	Batches []byte              // record batches, the last may be cut short; borrowed until Release
	Aborted []batch.Transaction // those that touch the batches, where only committed data is read
	Next    int64               // the position after the batches
	Epoch   int32               // of the leader that appended the last of them
	Reset   bool                // data was lost and reading goes on at Next, which may be lower than the position before
}

// Release gives the memory back; nothing of r may be used after it.
func (r *Response) Release() {
	clear(r.Parts)
	r.Parts = r.Parts[:0]
	if r.home != nil {
		r.home <- r // never blocks: it has room for every Response of its fetcher
	}
}

// queue holds what fetchers have brought and the consumer has not taken. Its length is bounded by
// the number of Responses that the fetchers own.
type queue struct {
	mu    sync.Mutex
	items []*Response // guarded by mu
	err   error       // guarded by mu: why reading can't go on
}

func (q *queue) push(r *Response) {
	q.mu.Lock()
	q.items = append(q.items, r)
	q.mu.Unlock()
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	if q.err == nil {
		q.err = err
	}
	q.mu.Unlock()
}

// pop returns what came first, nil if there is nothing. What arrived before an error comes before it.
func (q *queue) pop() (*Response, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return nil, q.err
	}
	r := q.items[0]
	n := copy(q.items, q.items[1:])
	q.items[n] = nil
	q.items = q.items[:n]
	return r, nil
}
