package hrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// TunnelConfig says how a tunnel is secured.
type TunnelConfig struct {
	Addr       string // the server's host:port
	Protocol   string
	Auth       []Authenticator
	Protection []string // qualities of protection that will do; empty: any
	MaxFrame   int      // bytes; 0: 128 MiB
	// Edit changes the message of an answer before the client sees it. nil: none is changed.
	Edit func(method string, answer []byte) []byte
}

// Tunnel authenticates on a fresh connection, and returns one on which a client speaks Hadoop's RPC as if there were no security: its preamble and the
// context that it sends are dropped for ours, its frames are protected as agreed on, and so are the answers until it gets them. ctx and the
// connection's deadline bound the authentication.
func Tunnel(ctx context.Context, nc net.Conn, cfg TunnelConfig) (net.Conn, error) {
	if cfg.MaxFrame == 0 {
		cfg.MaxFrame = defaultMaxFrame
	}
	layer, err := login(ctx, nc, cfg.Addr, cfg.Protocol, cfg.Auth, cfg.Protection, cfg.MaxFrame)
	if err != nil {
		return nil, err
	}
	return &tunnel{Conn: nc, cfg: cfg, layer: layer, out: newRequests(cfg.MaxFrame), methods: map[int32]string{}}, nil
}

// tunnel is used by one writer and one reader at a time.
type tunnel struct {
	net.Conn
	cfg   TunnelConfig
	layer Layer // nil: frames go as they are

	out requests // owned by the writer

	// Owned by the reader.
	wrapped []byte // unwrapped bytes that are no whole frame yet
	in      []byte // of whole frames, that the client has not read yet

	mu      sync.Mutex       // guards methods
	methods map[int32]string // of calls under way
}

// Write takes what the client writes, in pieces of any size.
func (t *tunnel) Write(b []byte) (int, error) {
	if err := t.out.feed(b, func([]byte) error { return nil }, t.send); err != nil {
		return 0, fmt.Errorf("cannot send to %s: %w", t.cfg.Addr, err)
	}
	return len(b), nil
}

// send sends one frame of the client's.
func (t *tunnel) send(frame []byte) error {
	id, method, err := requestOf(frame[4:])
	if err != nil {
		return err
	}
	if id == callContext {
		return nil // ours was sent
	}
	if t.cfg.Edit != nil && method != "" {
		t.mu.Lock()
		t.methods[id] = method
		t.mu.Unlock()
	}
	if t.layer != nil {
		if frame, err = wrapFrame(t.layer, frame); err != nil {
			return err
		}
	}
	_, err = t.Conn.Write(frame)
	return err
}

// Read gives the client whole answers, in pieces of any size.
func (t *tunnel) Read(b []byte) (int, error) {
	for len(t.in) == 0 {
		if t.layer == nil && t.cfg.Edit == nil {
			return t.Conn.Read(b)
		}
		body, err := readFrame(t.Conn, t.cfg.MaxFrame)
		if err != nil {
			return 0, err
		}
		if err := t.receive(body); err != nil {
			return 0, err
		}
	}
	n := copy(b, t.in)
	t.in = t.in[n:]
	return n, nil
}

// receive takes one frame's body from the wire.
func (t *tunnel) receive(body []byte) error {
	if t.layer == nil {
		return t.answer(body)
	}
	r, err := parseResponse(body)
	if err != nil {
		return err
	}
	plain, err := unwrapFrame(t.layer, t.cfg.Addr, r)
	if err != nil {
		return err
	}
	t.wrapped = append(t.wrapped, plain...)
	for len(t.wrapped) >= 4 {
		n, err := frameLength(t.wrapped[:4], t.cfg.MaxFrame)
		if err != nil {
			return err
		}
		if len(t.wrapped)-4 < n {
			return nil
		}
		if err := t.answer(t.wrapped[4 : 4+n]); err != nil {
			return err
		}
		t.wrapped = bytes.Clone(t.wrapped[4+n:])
	}
	return nil
}

// answer puts an answer where the client reads it.
func (t *tunnel) answer(body []byte) error {
	if t.cfg.Edit != nil {
		r, err := parseResponse(body)
		if err != nil {
			return err
		}
		if r.id < 0 && r.header.GetStatus() != pb.RpcResponseHeaderProto_SUCCESS {
			return remoteError(t.cfg.Addr, "", r.header) // it is the connection that is refused, which the client would not understand
		}
		t.mu.Lock()
		method := t.methods[r.id]
		delete(t.methods, r.id)
		t.mu.Unlock()
		if method != "" && r.body != nil {
			if edited := t.cfg.Edit(method, r.body); !bytes.Equal(edited, r.body) {
				head, _ := protowire.ConsumeBytes(body)
				body = protowire.AppendBytes(protowire.AppendBytes(nil, head), edited)
			}
		}
	}
	t.in = append(binary.BigEndian.AppendUint32(t.in, uint32(len(body))), body...)
	return nil
}

// unwrapFrame takes what a frame of call -33 protects.
func unwrapFrame(l Layer, addr string, r response) ([]byte, error) {
	if r.header.GetStatus() != pb.RpcResponseHeaderProto_SUCCESS {
		return nil, remoteError(addr, "", r.header)
	}
	if r.id != callSASL {
		return nil, fmt.Errorf("%s sent a frame without the protection that was agreed on", addr)
	}
	m := &pb.RpcSaslProto{}
	if err := proto.Unmarshal(r.body, m); err != nil {
		return nil, err
	}
	if m.GetState() != pb.RpcSaslProto_WRAP {
		return nil, fmt.Errorf("%s sent %v after authentication", addr, m.GetState())
	}
	return l.Unwrap(m.Token)
}
