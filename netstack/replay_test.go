package netstack

import (
	"errors"
	"net"
	"testing"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// TestReplayedHandshake plays back a handshake that went well: the other side's challenge is another one each time, so that the old proof is none.
func TestReplayedHandshake(t *testing.T) {
	s := start(t, nil)
	shake := func(hello []byte, proof func(challenge []byte) []byte) ([]byte, error) {
		t.Helper()
		nc, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		rd := &frameReader{nc: nc, maxData: 1}
		if err := writeFrame(nc, wire.Hello, hello); err != nil {
			t.Fatal(err)
		}
		challenge, err := readFrame(rd, wire.Challenge, "s")
		if err != nil {
			t.Fatal(err)
		}
		sent := proof(challenge)
		if err := writeFrame(nc, wire.Proof, sent); err != nil {
			t.Fatal(err)
		}
		_, err = readFrame(rd, wire.Accept, "s")
		return sent, err
	}
	hello := wire.AppendGreeting(nil, s.greeting())
	good, err := shake(hello, func(c []byte) []byte { return prove(testKey, labelConsumer, hello, c[:len(c)-wire.ProofSize]) })
	if err != nil {
		t.Fatalf("the first time: %v", err)
	}
	for range 3 {
		_, err := shake(hello, func([]byte) []byte { return good })
		if e, ok := errors.AsType[*RemoteError](err); !ok || e.Kind != cluster.Denied {
			t.Errorf("played back: %v, want it denied", err)
		}
	}
}
