package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchVersion is what we speak: the newest that names topics by name (Kafka 2.7 and later).
const fetchVersion = 12

// maxResponse bounds what a response may claim to be. A record batch can't be near it.
const maxResponse = 1 << 30

// Conn is a connection to one broker for fetching or producing, opened and authenticated by sarama and then ours alone.
// One goroutine uses it, or one that writes and one that reads; Close may be called by any.
type Conn struct {
	link    *link
	addr    string
	timeout time.Duration // beyond what the request asks the broker to wait
	format  *kmsg.RequestFormatter

	// Owned by the goroutine that writes.
	corr int32
	out  []byte
}

// errHungUp says that the broker ended the connection between two answers: it restarts, or the time of an idle or
// authenticated connection is up.
var errHungUp = errors.New("the broker closed the connection")

// dialConn opens a connection of ours to addr. ctx bounds the opening.
func (o *opener) dialConn(ctx context.Context, addr string) (*Conn, error) {
	l, err := o.open(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &Conn{link: l, addr: addr, timeout: o.cfg.RequestTimeout,
		format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(o.cfg.ClientID))}, nil
}

// Close closes the connection; a fetch under way ends with an error.
func (c *Conn) Close() { c.link.close() }

// Fetch sends req and reads the answer into buf, which it grows if need be and returns.
// resp's record batches lie in buf. After an error the connection is of no more use.
func (c *Conn) Fetch(req *kmsg.FetchRequest, buf []byte, resp *kmsg.FetchResponse) ([]byte, error) {
	req.Version, resp.Version = fetchVersion, fetchVersion
	corr := c.frame(req)
	if err := c.write(); err != nil {
		return buf, fmt.Errorf("cannot send fetch to Kafka broker %s: %w", c.addr, err)
	}
	buf, err := c.answer(corr, c.timeout+time.Duration(req.MaxWaitMillis)*time.Millisecond, resp, buf)
	if err != nil {
		return buf, fmt.Errorf("cannot fetch from Kafka broker %s: %w", c.addr, err)
	}
	return buf, nil
}

// frame makes req what write sends next, and returns its correlation id.
func (c *Conn) frame(req kmsg.Request) int32 {
	c.corr++
	c.out = c.format.AppendRequest(c.out[:0], req, c.corr)
	return c.corr
}

// write sends what was framed.
func (c *Conn) write() error {
	if err := c.link.conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	_, err := c.link.conn.Write(c.out)
	return err
}

// answer reads the next response, which must be that to the request corr and begin to arrive within the timeout, into buf. What resp has of bytes
// lies in buf. One goroutine may read while another one writes.
func (c *Conn) answer(corr int32, timeout time.Duration, resp kmsg.Response, buf []byte) ([]byte, error) {
	if err := c.link.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return buf, err
	}
	buf, err := c.read(buf)
	if err != nil {
		return buf, err
	}
	body, err := responseBody(buf, corr)
	if err != nil {
		return buf, err
	}
	return buf, resp.ReadFrom(body)
}

// read reads one response without its length into buf.
func (c *Conn) read(buf []byte) ([]byte, error) {
	conn := c.link.conn
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = errHungUp
		}
		return buf, err
	}
	size := int(int32(binary.BigEndian.Uint32(head[:])))
	if size < 4 || size > maxResponse {
		return buf, fmt.Errorf("response of %d bytes", size)
	}
	buf = buf[:0]
	for len(buf) < size {
		// Memory follows what has arrived, not what was claimed; so does the deadline.
		step := min(size-len(buf), max(1<<20, len(buf)))
		buf = slices.Grow(buf, step)
		if err := conn.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
			return buf, err
		}
		n, err := io.ReadFull(conn, buf[len(buf):len(buf)+step])
		buf = buf[:len(buf)+n]
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// responseBody checks the header of a response (correlation id and tags) and returns what follows it.
func responseBody(b []byte, corr int32) ([]byte, error) {
	if len(b) < 5 {
		return nil, io.ErrUnexpectedEOF
	}
	if got := int32(binary.BigEndian.Uint32(b)); got != corr {
		return nil, fmt.Errorf("answer %d to request %d", got, corr)
	}
	tags, n := binary.Uvarint(b[4:])
	if n <= 0 {
		return nil, io.ErrUnexpectedEOF
	}
	b = b[4+n:]
	for range tags {
		_, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, io.ErrUnexpectedEOF
		}
		size, m := binary.Uvarint(b[n:])
		if m <= 0 || size > uint64(len(b)-n-m) {
			return nil, io.ErrUnexpectedEOF
		}
		b = b[n+m+int(size):]
	}
	return b, nil
}
