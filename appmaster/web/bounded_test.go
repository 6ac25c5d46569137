package web

import (
	"errors"
	"net"
	"testing"
)

// TestBounded: connections beyond the bound wait until another one ends, and none is taken any more when the listener is closed meanwhile.
func TestBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := boundedListener(l, 2)
	accepted, ended := make(chan net.Conn), make(chan error)
	go func() {
		for {
			c, err := b.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range 4 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	one, two := <-accepted, <-accepted
	if len(b.places) != 2 {
		t.Fatalf("%d places are taken", len(b.places))
	}
	select {
	case <-accepted:
		t.Fatal("a third connection was taken")
	default:
	}
	one.Close()
	one.Close() // gives back one place only
	three := <-accepted
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the end is %v", err)
	}
	two.Close()
	three.Close()
	if len(b.places) != 0 {
		t.Errorf("%d places are taken by nobody", len(b.places))
	}
}

func TestPlaces(t *testing.T) {
	if n := places(); n < 1 || n > mostConnections {
		t.Errorf("%d connections at a time", n)
	}
}
