package ctl

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

func accept(s ctlpb.Control_SessionServer) error {
	if err := s.Send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Registered{Registered: &ctlpb.Registered{}}}); err != nil {
		return err
	}
	for {
		if _, err := s.Recv(); err != nil {
			return nil
		}
	}
}

// silent connects and says nothing. The channel is closed when the master hangs up.
func silent(t *testing.T, addr string) <-chan struct{} {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { defer close(gone); _, _ = io.Copy(io.Discard, c) }()
	t.Cleanup(func() { _ = c.Close(); <-gone })
	return gone
}

func awaitGone(t *testing.T, what string, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal(what + " is still connected")
	}
}

// Whoever connects and says nothing must not keep agents away.
func TestSilentConnectionsGiveWay(t *testing.T) {
	const most = 3
	secrets := serveWith(t, accept, time.Hour, most)
	var all []<-chan struct{}
	for range 4 * most {
		all = append(all, silent(t, secrets.MasterAddr))
	}
	s, _, err := Join(t.Context(), secrets, register, JoinOptions{})
	if err != nil {
		t.Fatalf("an agent among silent connections: %v", err)
	}
	end := drain(s)
	_ = s.Close()
	<-end
	gone := 0
	for gone < 3*most {
		gone = 0
		for _, c := range all {
			select {
			case <-c:
				gone++
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

func TestSilentConnectionsTimeOut(t *testing.T) {
	secrets := serveWith(t, accept, 50*time.Millisecond, maxHandshakes)
	awaitGone(t, "who said nothing", silent(t, secrets.MasterAddr))
}
