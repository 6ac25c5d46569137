package netstack

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// script is a connection that brings bytes in pieces of given sizes and takes what is written.
type script struct {
	net.Conn
	in    []byte
	sizes []byte
	i     int
	out   bytes.Buffer
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := len(b)
	if len(s.sizes) > 0 {
		n = min(n, 1+int(s.sizes[s.i%len(s.sizes)]))
		s.i++
	}
	n = copy(b[:n], s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(b []byte) (int, error)     { return s.out.Write(b) }
func (s *script) SetReadDeadline(time.Time) error { return nil }

// readAll reads frames as the read loops do and returns them as bytes again, with where it stopped.
func readAll(rd *frameReader, pool *bufpool.Pool) (out []byte, err error) {
	for {
		h, err := rd.header()
		if err != nil {
			return out, err
		}
		switch {
		case h.Type == wire.Data && h.Channel%2 == 1:
			err = rd.discard(h)
		case h.Type == wire.Data:
			seg := pool.Get()
			if err = rd.data(seg, h); err == nil {
				out = append(wire.AppendHeader(out, h), seg.Read(0, int(h.Length))...)
			}
			pool.Put(seg)
		default:
			var p []byte
			if p, err = rd.control(h); err == nil {
				out = append(wire.AppendHeader(out, h), p...)
			}
		}
		if err != nil {
			return out, err
		}
	}
}

func frames(sizes ...int) (all, kept []byte) {
	for i, n := range sizes {
		h := wire.Header{Type: wire.Data, Channel: uint32(i % 3), Seq: uint32(i)}
		if n == 0 || i%4 == 3 {
			h.Type, n = wire.Event, min(n, wire.MaxControl)
		}
		f := frame(h, string(bytes.Repeat([]byte{byte(i)}, n)))
		all = append(all, f...)
		if h.Type != wire.Data || h.Channel%2 == 0 {
			kept = append(kept, f...)
		}
	}
	return all, kept
}

func TestReaderTakesAnyPieces(t *testing.T) {
	pool := bufpool.New(9000, 0, 2)
	all, kept := frames(1, 9000, 0, 4096, 8976, 17, 3, 0, 0, 9000, 9000, 9000, 1, 1, 1, 4000)
	for _, sizes := range [][]byte{nil, {0}, {22}, {23}, {24}, {255}, {0, 255, 23, 1}, {200, 3}} {
		got, err := readAll(&frameReader{nc: &script{in: all, sizes: sizes}, maxData: 9000}, pool)
		if err != io.EOF || !bytes.Equal(got, kept) {
			t.Errorf("pieces %v: %v after %d of %d bytes", sizes, err, len(got), len(kept))
		}
		// Every end within a frame is an unexpected one.
		for n := 1; n < len(all); n += 997 {
			got, err := readAll(&frameReader{nc: &script{in: all[:n], sizes: sizes}, maxData: 9000}, pool)
			if !bytes.HasPrefix(kept, got) || (err != io.EOF && err != io.ErrUnexpectedEOF) {
				t.Errorf("pieces %v, cut at %d: %v", sizes, n, err)
			}
		}
	}
	if s := pool.Stats(); s.Used != 0 {
		t.Errorf("%d segments are out", s.Used)
	}
}

func FuzzReader(f *testing.F) {
	all, _ := frames(1, 900, 0, 500, 17)
	f.Add(all, []byte{22, 3})
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		pool := bufpool.New(1000, 0, 2)
		whole, err1 := readAll(&frameReader{nc: &script{in: in}, maxData: 1000}, pool)
		pieces, err2 := readAll(&frameReader{nc: &script{in: in, sizes: sizes}, maxData: 1000}, pool)
		if !bytes.Equal(whole, pieces) || (err1 == io.EOF) != (err2 == io.EOF) {
			t.Fatalf("read at once: %d bytes, %v; in pieces: %d bytes, %v", len(whole), err1, len(pieces), err2)
		}
		if pool.Stats().Used != 0 || errors.Is(err1, io.ErrShortBuffer) {
			t.Fatalf("%+v, %v", pool.Stats(), err1)
		}
	})
}

func TestCork(t *testing.T) {
	in := bytes.Repeat([]byte("0123456789"), 50_000)
	s := &script{in: in}
	c := newCork(s)
	c.Write([]byte("hello"))
	if s.out.String() != "hello" {
		t.Errorf("a loose cork held back %q", s.out.String())
	}
	c.tighten()
	c.Write([]byte(" there"))
	if s.out.Len() != 5 {
		t.Error("a tight cork let something through")
	}
	if err := c.flush(); err != nil || s.out.String() != "hello there" {
		t.Errorf("got %q, %v", s.out.String(), err)
	}
	c.Write(make([]byte, corkBytes))
	if s.out.Len() != corkBytes+11 {
		t.Errorf("a full cork held %d bytes back", corkBytes+11-s.out.Len())
	}
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, in) {
		t.Errorf("read %d of %d bytes, %v", len(got), len(in), err)
	}
}
