package netstack

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/testnet"
)

// starvedListener has no descriptor for the first connections.
type starvedListener struct {
	net.Listener
	left atomic.Int32
}

func (l *starvedListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// TestOutOfDescriptorsAtTheListener: it accepts again as soon as it can.
func TestOutOfDescriptorsAtTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		l := &starvedListener{Listener: n.Listen("starved")}
		l.left.Store(5)
		a, err := New(Config{Auth: Auth{Key: testKey}, SegmentBytes: 4096, Listener: l, Dial: n.Dial})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		_, b := simulated(t, n, nil)
		p := mustPartition(t, a, "p", 1)
		done := make(chan error, 1)
		go func() { done <- produce(t.Context(), p, 1, 5) }()
		g, w := open(t, b, "p", "starved", 0)
		if err := consume(g, w, []int{0}, 5); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if l.left.Load() >= 0 {
			t.Error("the listener was never starved")
		}
	})
}

// TestOutOfDescriptorsAtTheDialer: that is no fault of the peer's, and the error tells what to raise. It is tried again before.
func TestOutOfDescriptorsAtTheDialer(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		local bool
		want  string
	}{
		"this process": {&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}, true, "ulimit -n"},
		"this host":    {&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.ENFILE)}, true, "ulimit -n"},
		"no such name": {&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "a", IsNotFound: true}}, false, "exchange.advertise"},
		"refused":      {&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, false, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				_, b := simulated(t, testnet.New(), func(cfg *Config) {
					cfg.Dial = func(context.Context, string) (net.Conn, error) { tries++; return nil, c.cause }
				})
				g, w := open(t, b, "p", "elsewhere", 0)
				_, err := next(g, w)
				l, local := errors.AsType[*LocalError](err)
				if local != c.local || !strings.Contains(err.Error(), c.want) || local && l.Kind != cluster.Unavailable {
					t.Errorf("got %v, local: %v", err, local)
				}
				if tries != 4 {
					t.Errorf("%d attempts, want 4", tries)
				}
			})
		})
	}
}
