package netstack

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// Labels keep the two proofs apart: one can't be played back as the other.
const (
	labelProducer = "heddle exchange 1: producer"
	labelConsumer = "heddle exchange 1: consumer"
)

var errProof = errors.New("the peer does not have this application's exchange key")

// prove is the keyed proof of one side over everything both have said.
func prove(key []byte, label string, hello, challenge []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(label))
	for _, b := range [][]byte{hello, challenge} {
		sum := sha256.Sum256(b)
		m.Write(sum[:])
	}
	return m.Sum(nil)
}

// key returns the key of proofs. Without one, TLS has proved the peer and the proof is only a check of what was said.
func (s *Stack) key() []byte {
	if len(s.cfg.Auth.Key) == 0 {
		return make([]byte, KeySize)
	}
	return s.cfg.Auth.Key
}

func (s *Stack) greeting() wire.Greeting {
	g := wire.Greeting{MinVersion: s.versions[0], MaxVersion: s.versions[1], MaxData: uint32(s.pool.SegmentBytes()), Identity: s.identity()}
	if s.cfg.Checksum {
		g.Features |= wire.Checksums
	}
	g.Features |= takes[s.cfg.Compression] | s.features
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		g.Features |= wire.BigEndian
	}
	rand.Read(g.Nonce[:])
	return g
}

// greet is the dialing side of the handshake:
//
//	C→P Hello(greeting)   P→C Challenge(greeting, proof)   C→P Proof(proof)   P→C Accept
func (s *Stack) greet(nc net.Conn, key connKey) (*conn, error) {
	rd := &frameReader{nc: nc, maxData: 1}
	mine := s.greeting()
	hello := wire.AppendGreeting(nil, mine)
	if err := writeFrame(nc, wire.Hello, hello); err != nil {
		return nil, err
	}
	challenge, err := readFrame(rd, wire.Challenge, key.addr)
	if err != nil {
		return nil, err
	}
	g, n, err := wire.ParseGreeting(challenge)
	if err != nil || len(challenge) < n+wire.ProofSize {
		return nil, wire.ErrFrame
	}
	challenge, proof := challenge[:len(challenge)-wire.ProofSize], challenge[len(challenge)-wire.ProofSize:]
	peer := g.Identity + "@" + key.addr
	if !hmac.Equal(proof, prove(s.key(), labelProducer, hello, challenge)) {
		return nil, &RemoteError{Peer: peer, Op: "connect", Kind: cluster.Denied, Err: errProof}
	}
	if g.MaxVersion < s.versions[0] || g.MaxVersion > s.versions[1] {
		return nil, &RemoteError{Peer: peer, Op: "connect", Kind: cluster.Denied, Err: fmt.Errorf("it speaks version %d, this agent %d to %d", g.MaxVersion, s.versions[0], s.versions[1])}
	}
	if err := writeFrame(nc, wire.Proof, prove(s.key(), labelConsumer, hello, challenge)); err != nil {
		return nil, err
	}
	if _, err := readFrame(rd, wire.Accept, peer); err != nil {
		return nil, err
	}
	rd.maxData = uint32(s.pool.SegmentBytes())
	c := newConn(s, nc, rd, true, peer)
	c.key = key
	c.agree(mine, g)
	return c, nil
}

// errSilent is of a connection that was closed before it said anything.
var errSilent = errors.New("it was closed before a hello")

// welcome is the listening side. It accepts no other frame, and no longer one than wire.MaxHandshake, before the proof.
func (s *Stack) welcome(nc net.Conn) (*conn, error) {
	rd := &frameReader{nc: nc, maxData: 1}
	addr := nc.RemoteAddr().String()
	b, err := readFrame(rd, wire.Hello, addr)
	if errors.Is(err, io.EOF) {
		return nil, errSilent
	}
	if err != nil {
		return nil, err
	}
	hello := append([]byte(nil), b...)
	g, _, err := wire.ParseGreeting(hello)
	if err != nil {
		return nil, err
	}
	version := min(g.MaxVersion, s.versions[1])
	if version < max(g.MinVersion, s.versions[0]) {
		return nil, refuse(nc, fmt.Errorf("versions %d to %d are offered, this agent speaks %d to %d", g.MinVersion, g.MaxVersion, s.versions[0], s.versions[1]))
	}
	if int(g.MaxData) < s.pool.SegmentBytes() {
		return nil, refuse(nc, fmt.Errorf("it takes at most %d bytes a frame, this agent sends %d; exchange.segment-bytes must be the same everywhere", g.MaxData, s.pool.SegmentBytes()))
	}
	mine := s.greeting()
	if (mine.Features^g.Features)&wire.BigEndian != 0 {
		return nil, refuse(nc, errors.New("its byte order is another than this host's; all hosts of an application must have the same"))
	}
	mine.MinVersion, mine.MaxVersion = version, version
	challenge := wire.AppendGreeting(nil, mine)
	if err := writeFrame(nc, wire.Challenge, append(challenge[:len(challenge):len(challenge)], prove(s.key(), labelProducer, hello, challenge)...)); err != nil {
		return nil, err
	}
	proof, err := readFrame(rd, wire.Proof, addr)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(proof, prove(s.key(), labelConsumer, hello, challenge)) {
		return nil, refuse(nc, errProof)
	}
	if err := writeFrame(nc, wire.Accept, nil); err != nil {
		return nil, err
	}
	c := newConn(s, nc, rd, false, g.Identity+"@"+addr)
	mine.MaxVersion = version
	c.agree(mine, g)
	return c, nil
}

// agree enters what both ends can do, from their greetings.
func (c *conn) agree(mine, theirs wire.Greeting) {
	c.traces = mine.Features&theirs.Features&wire.Traces != 0
	c.rd.sums = mine.Features&theirs.Features&wire.Checksums != 0
	c.out.sums = c.rd.sums
	c.version = min(mine.MaxVersion, theirs.MaxVersion)
	if !c.dialed && theirs.Features&takes[c.stack.cfg.Compression] != 0 {
		c.compress = c.stack.cfg.Compression
	}
}

// refuse tells the peer why it is refused, and returns that.
func refuse(nc net.Conn, err error) error {
	nc.Write(wire.AppendError(nil, 0, fault(wire.Refused, cluster.Denied, err)))
	return err
}

func writeFrame(nc net.Conn, t wire.Type, payload []byte) error {
	b := wire.AppendHeader(nil, wire.Header{Type: t, Length: uint32(len(payload))})
	_, err := nc.Write(append(b, payload...))
	return err
}

// readFrame reads one frame of the handshake, which must be of type want.
func readFrame(rd *frameReader, want wire.Type, peer string) ([]byte, error) {
	h, err := rd.header()
	if err != nil {
		return nil, err
	}
	if h.Length > wire.MaxHandshake || (h.Type != want && h.Type != wire.Error) {
		return nil, fmt.Errorf("%w: %s frame of %d bytes, want %s", wire.ErrFrame, h.Type, h.Length, want)
	}
	payload, err := rd.control(h)
	if err != nil || h.Type == want {
		return payload, err
	}
	f, err := wire.ParseError(payload)
	if err != nil {
		return nil, err
	}
	return nil, remote(peer, "connect", f)
}
