package heddle

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
)

const (
	aheadChunk  = 256 << 10
	aheadChunks = 4 // read ahead of the task
)

// readAhead reads a file that is not on this host, so that the task's goroutine does not wait for the network. A goroutine of its own
// reads; close ends it and waits for it.
type readAhead struct {
	// Immutable.
	cancel context.CancelFunc
	chunks chan aheadData // closed at the end
	free   chan []byte    // chunks that were used up
	ended  chan struct{}  // closed when the goroutine has ended
	wake   func()
	open   func(ctx context.Context) (io.ReadCloser, error)
	gzip   bool

	cur []byte // of the chunk being used; owned by the reader
	buf []byte // all of it
}

// aheadData is a piece of a file, or why there is no more.
type aheadData struct {
	data []byte
	err  error
}

// startReadAhead begins to read from where the piece's first line may begin: a byte before the piece, unless it is the file's first.
func startReadAhead(ctx context.Context, p piece, wake func()) (*readAhead, error) {
	fsys, err := fileSystem(schemeOf(p.Path))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", p.Path, err)
	}
	from := max(0, p.From-1)
	a := &readAhead{chunks: make(chan aheadData, aheadChunks), free: make(chan []byte, aheadChunks+2), ended: make(chan struct{}), wake: wake, gzip: compressed(p.Path),
		open: func(ctx context.Context) (io.ReadCloser, error) { return fsys.Open(ctx, p.Path, from) }}
	ctx, a.cancel = context.WithCancel(ctx)
	go a.run(ctx)
	return a, nil
}

func (a *readAhead) run(ctx context.Context) {
	defer close(a.ended)
	err := a.read(ctx)
	if err == nil {
		err = io.EOF
	}
	a.give(ctx, aheadData{err: err})
}

func (a *readAhead) read(ctx context.Context) error {
	f, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	in := io.Reader(f)
	if a.gzip {
		if in, err = gzip.NewReader(bufio.NewReaderSize(f, aheadChunk)); err != nil {
			return err
		}
	}
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		default:
			buf = make([]byte, aheadChunk)
		}
		n := 0
		for n < len(buf) && err == nil {
			var k int
			k, err = in.Read(buf[n:])
			n += k
		}
		if n > 0 && !a.give(ctx, aheadData{data: buf[:n]}) {
			return ctx.Err()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// give passes data on, and reports whether somebody is still there to take it.
func (a *readAhead) give(ctx context.Context, d aheadData) bool {
	select {
	case a.chunks <- d:
		a.wake()
		return true
	case <-ctx.Done():
		return false
	}
}

// Read gives what was read ahead. When there is nothing yet, it returns no bytes and no error; wake is called later.
func (a *readAhead) Read(b []byte) (int, error) {
	if len(a.cur) == 0 {
		select {
		case d := <-a.chunks:
			if d.err != nil {
				a.chunks <- d // for the next call; the goroutine has no more to give
				return 0, d.err
			}
			if a.buf != nil {
				select {
				case a.free <- a.buf[:cap(a.buf)]:
				default:
				}
			}
			a.cur, a.buf = d.data, d.data
		default:
			return 0, nil
		}
	}
	n := copy(b, a.cur)
	a.cur = a.cur[n:]
	return n, nil
}

// Close ends the reading.
func (a *readAhead) Close() error {
	a.cancel()
	<-a.ended
	return nil
}
