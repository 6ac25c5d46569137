package netstack

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/testnet"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestWrongKeyIsRefused(t *testing.T) {
	var log syncBuffer
	a := start(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	b := start(t, func(c *Config) { c.Auth.Key = bytes.Repeat([]byte{1}, KeySize); c.Identity = "intruder" })
	p, err := a.NewPartition(PartitionConfig{ID: "p", Subpartitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	w := newWaker()
	g, err := b.NewGate(GateConfig{Wake: w.wake, Channels: []ChannelConfig{{Partition: "p", Addr: a.Addr()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	_, err = next(g, w)
	if e, ok := errors.AsType[*RemoteError](err); !ok || e.Kind != cluster.Denied {
		t.Errorf("got %v, want it denied", err)
	}
	g.Close()
	eventually(t, "the refusal is logged", func() bool { return strings.Contains(log.String(), "refused") })
}

// TestConsumerWithoutKey plays a consumer that can't make the proof: it gets no further.
func TestConsumerWithoutKey(t *testing.T) {
	s := start(t, nil)
	for name, proof := range map[string]func(challenge []byte) []byte{
		"zeros":                func([]byte) []byte { return make([]byte, wire.ProofSize) },
		"the producer's, back": func(c []byte) []byte { return c[len(c)-wire.ProofSize:] },
		"nothing":              func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			rd := &frameReader{nc: nc, maxData: 1}
			if err := writeFrame(nc, wire.Hello, wire.AppendGreeting(nil, s.greeting())); err != nil {
				t.Fatal(err)
			}
			c, err := readFrame(rd, wire.Challenge, "s")
			if err != nil {
				t.Fatal(err)
			}
			if err := writeFrame(nc, wire.Proof, proof(c)); err != nil {
				t.Fatal(err)
			}
			_, err = readFrame(rd, wire.Accept, "s")
			if e, ok := errors.AsType[*RemoteError](err); !ok || e.Kind != cluster.Denied {
				t.Errorf("got %v, want it denied", err)
			}
		})
	}
}

func TestNothingBeforeTheProof(t *testing.T) {
	s := start(t, nil)
	hello := frame(wire.Header{Type: wire.Hello}, string(wire.AppendGreeting(nil, s.greeting())))
	for name, b := range map[string][]byte{
		"request":         wire.AppendRequest(nil, 1, wire.PartitionRequest{Partition: "p"}),
		"data":            data(1, 0, "x"),
		"garbage":         []byte("GET / HTTP/1.1\r\n\r\n                      "),
		"too long":        wire.AppendHeader(nil, wire.Header{Type: wire.Hello, Length: 1 << 30}),
		"event of 4096":   wire.AppendHeader(nil, wire.Header{Type: wire.Event, Length: 4096}),
		"hello and then":  append(bytes.Clone(hello), wire.AppendRequest(nil, 1, wire.PartitionRequest{Partition: "p"})...),
		"version 7 to 9":  frame(wire.Header{Type: wire.Hello}, string(wire.AppendGreeting(nil, wire.Greeting{MinVersion: 7, MaxVersion: 9, MaxData: 1 << 20}))),
		"small segments":  frame(wire.Header{Type: wire.Hello}, string(wire.AppendGreeting(nil, wire.Greeting{MinVersion: 1, MaxVersion: 1, MaxData: 100}))),
		"malformed hello": frame(wire.Header{Type: wire.Hello}, "short"),
		"byte order":      frame(wire.Header{Type: wire.Hello}, string(wire.AppendGreeting(nil, wire.Greeting{MinVersion: 1, MaxVersion: 1, MaxData: 1 << 20, Features: ^s.greeting().Features}))),
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			nc.Write(b)
			nc.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, nc); errors.Is(err, errTimeout(err)) {
				t.Error("the connection was left open")
			}
		})
	}
	if st := s.Stats(); st.Channels != 0 || st.Waiting != 0 || st.SegmentsUsed != 0 {
		t.Errorf("something got through: %+v", st)
	}
}

// errTimeout is err if it is a timeout.
func errTimeout(err error) error {
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return err
	}
	return net.ErrClosed
}

func TestSilentPeerTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		s, err := New(Config{Auth: Auth{Key: testKey}, Listener: n.Listen("s"), Dial: n.Dial, HandshakeTimeout: 7 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		began := time.Now()
		nc, err := n.Dial(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(nc); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("a peer that says nothing was kept for %v, want 7s", took)
		}
		nc.Close()
	})
}

func TestProofsDiffer(t *testing.T) {
	h, c := []byte("hello"), []byte("challenge")
	base := prove(testKey, labelConsumer, h, c)
	for name, other := range map[string][]byte{
		"role":      prove(testKey, labelProducer, h, c),
		"key":       prove(bytes.Repeat([]byte{9}, KeySize), labelConsumer, h, c),
		"hello":     prove(testKey, labelConsumer, []byte("hellp"), c),
		"challenge": prove(testKey, labelConsumer, h, []byte("challengf")),
		"border":    prove(testKey, labelConsumer, []byte("helloc"), []byte("hallenge")),
	} {
		if bytes.Equal(base, other) {
			t.Errorf("the proof does not depend on the %s", name)
		}
	}
}

// TestProducerWithoutKey dials a peer that listens and can't make the proof: it is told nothing more, above all no proof of ours and no request.
func TestProducerWithoutKey(t *testing.T) {
	n := testnet.New()
	_, s := simulated(t, n, nil)
	l := n.Listen("peer")
	defer l.Close()
	got := make(chan []byte, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		hello, err := readFrame(&frameReader{nc: nc, maxData: 1}, wire.Hello, "s")
		if err != nil {
			return
		}
		challenge := wire.AppendGreeting(nil, s.greeting())
		writeFrame(nc, wire.Challenge, append(challenge[:len(challenge):len(challenge)], prove(make([]byte, KeySize), labelProducer, hello, challenge)...))
		rest, _ := io.ReadAll(nc)
		got <- rest
	}()
	g, w := open(t, s, "p", "peer", 0)
	_, err := next(g, w)
	if wantRemote(t, "no proof", err, cluster.Denied); !errors.Is(err, errProof) {
		t.Errorf("got %v", err)
	}
	if rest := <-got; len(rest) > 0 {
		t.Errorf("%d bytes were sent to it", len(rest))
	}
}

// TestSegmentsMustFit has agents whose segments differ: who would get longer ones than it has room for is refused, and told which option it is.
func TestSegmentsMustFit(t *testing.T) {
	small, large := start(t, func(c *Config) { c.SegmentBytes = 4096 }), start(t, func(c *Config) { c.SegmentBytes = 8192 })
	mustPartition(t, large, "p", 1)
	g, w := open(t, small, "p", large.Addr(), 0)
	_, err := next(g, w)
	if e := wantRemote(t, "segments that are too long", err, cluster.Denied); !strings.Contains(e.Error(), "exchange.segment-bytes must be the same everywhere") {
		t.Errorf("got %v", err)
	}
	q := mustPartition(t, small, "q", 1)
	done := make(chan error, 1)
	go func() { done <- produce(t.Context(), q, 1, 20) }()
	g, w = open(t, large, "q", small.Addr(), 0)
	if err := consume(g, w, []int{0}, 20); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
