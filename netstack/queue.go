package netstack

// queue is a ring that grows; the zero value is empty.
type queue[T any] struct {
	ring []T // length is a power of two
	head int
	n    int
}

func (q *queue[T]) len() int { return q.n }

// at returns the i-th element from the front.
func (q *queue[T]) at(i int) *T { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *queue[T]) push(v T) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.n++
	*q.at(q.n - 1) = v
}

func (q *queue[T]) grow() {
	ring := make([]T, max(4, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = *q.at(i)
	}
	q.ring, q.head = ring, 0
}

func (q *queue[T]) pop() T {
	p := q.at(0)
	v := *p
	var zero T
	*p = zero
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return v
}

// insert puts v before the i-th element.
func (q *queue[T]) insert(i int, v T) {
	q.push(v)
	for j := q.n - 1; j > i; j-- {
		*q.at(j) = *q.at(j - 1)
	}
	*q.at(i) = v
}

// arena copies small byte strings into chunks, so that they don't cost an allocation each.
type arena struct{ chunk []byte }

const arenaChunk = 2048

func (a *arena) copy(b []byte) []byte {
	if len(b) > cap(a.chunk)-len(a.chunk) {
		a.chunk = make([]byte, 0, max(arenaChunk, len(b)))
	}
	i := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return a.chunk[i:len(a.chunk):len(a.chunk)]
}
