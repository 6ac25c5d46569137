// Package hrpctest is a server of Hadoop's RPC in the process, on the real wire format, for tests: it authenticates simple users
// and tokens at every protection, answers by a function, and misbehaves on demand.
package hrpctest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/digest"
)

// Config says what a server accepts and does.
type Config struct {
	// Simple accepts users without proof.
	Simple bool
	// Password returns the password of a token's identifier, if the token is good. nil: no tokens are accepted.
	Password func(identifier []byte) ([]byte, bool)
	// QOP are the protections offered to tokens; nil: auth.
	QOP []string
	// Ciphers are those offered with auth-conf; nil: rc4.
	Ciphers []string
	// Handle answers a call; it runs in a goroutine of its own for each. A *hrpc.RemoteError becomes an exception of its class.
	Handle func(*Request) (proto.Message, error)
}

// What Handle can return instead of an error of the service's.
var (
	ErrDrop   = errors.New("close the connection without an answer")
	ErrSilent = errors.New("never answer")
)

// Request is one call.
type Request struct {
	Conn       int    // number of its connection, from 1
	User       string // that the context named, or ""
	Identifier []byte // of the token that the connection authenticated by
	Protected  bool   // it came wrapped
	Protocol   string
	Method     string
	CallID     int32
	Retry      int32
	Body       []byte
}

// Decode reads the call's message.
func (r *Request) Decode(m proto.Message) error { return proto.Unmarshal(r.Body, m) }

// Server serves until Close.
type Server struct {
	// Immutable.
	cfg Config
	l   net.Listener
	wg  sync.WaitGroup // the accepting goroutine, and those of connections and calls

	pings atomic.Int64

	// Guarded by mu.
	mu     sync.Mutex
	conns  map[net.Conn]bool
	total  int
	closed bool
}

// Serve begins to serve.
func Serve(l net.Listener, cfg Config) *Server {
	s := &Server{cfg: cfg, l: l, conns: map[net.Conn]bool{}}
	s.wg.Add(1)
	go s.accept()
	return s
}

// Close ends every connection and waits for all goroutines.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.l.Close()
	s.Cut()
	s.wg.Wait()
}

// Cut closes every connection there is.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// Connections is how many were accepted so far.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Open is how many are open.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Pings is how many came so far.
func (s *Server) Pings() int { return int(s.pings.Load()) }

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		nc, err := s.l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.total++
		n := s.total
		s.conns[nc] = true
		if s.closed {
			nc.Close()
		}
		s.wg.Add(1)
		s.mu.Unlock()
		go func() {
			defer s.wg.Done()
			c := &conn{s: s, nc: nc, number: n}
			c.serve()
			nc.Close()
			s.mu.Lock()
			delete(s.conns, nc)
			s.mu.Unlock()
		}()
	}
}

// conn is one connection, owned by the goroutine that reads it.
type conn struct {
	s          *Server
	nc         net.Conn
	number     int
	user       string
	protocol   string
	identifier []byte
	layer      hrpc.Layer
	inner      []byte
	ready      bool // the context came

	mu sync.Mutex // orders writes, with the layer's wrapping
}

func (c *conn) serve() {
	var head [7]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil || !bytes.Equal(head[:6], []byte("hrpc\x09\x00")) {
		return
	}
	if head[6] == 0 && !c.s.cfg.Simple {
		if _, err := c.frame(); err != nil {
			return
		}
		c.exception(-1, pb.RpcResponseHeaderProto_FATAL, hrpc.ClassAccessControl, "SIMPLE authentication is not enabled.  Available:[TOKEN]")
		return
	}
	for {
		body, err := c.frame()
		if err != nil || !c.request(body, false) {
			return
		}
	}
}

func (c *conn) frame() ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(c.nc, n[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(n[:])
	if size > 64<<20 {
		return nil, errors.New("frame too large")
	}
	body := make([]byte, size)
	_, err := io.ReadFull(c.nc, body)
	return body, err
}

// request handles one frame; false ends the connection.
func (c *conn) request(body []byte, wrapped bool) bool {
	h := &pb.RpcRequestHeaderProto{}
	rest, err := delimited(body, h)
	if err != nil || h.GetRpcKind() != pb.RpcKindProto_RPC_PROTOCOL_BUFFER || h.RpcOp == nil {
		return false
	}
	switch id := h.GetCallId(); {
	case id == -33 && !wrapped:
		m := &pb.RpcSaslProto{}
		if _, err := delimited(rest, m); err != nil {
			return false
		}
		if m.GetState() == pb.RpcSaslProto_WRAP {
			return c.unwrap(m.Token)
		}
		return c.sasl(m)
	case c.layer != nil && !wrapped:
		return false // sent in clear
	case id == -4:
		c.s.pings.Add(1)
		return true
	case id == -3:
		m := &pb.IpcConnectionContextProto{}
		if _, err := delimited(rest, m); err != nil {
			return false
		}
		c.user, c.protocol, c.ready = m.GetUserInfo().GetEffectiveUser(), m.GetProtocol(), true
		return true
	case id < 0 || !c.ready:
		return false
	}
	return c.call(h, rest, wrapped)
}

func (c *conn) call(h *pb.RpcRequestHeaderProto, rest []byte, wrapped bool) bool {
	rh := &pb.RequestHeaderProto{}
	rest, err := delimited(rest, rh)
	if err != nil {
		return false
	}
	msg, n := protowire.ConsumeBytes(rest)
	if n != len(rest) {
		return false
	}
	r := &Request{Conn: c.number, User: c.user, Identifier: c.identifier, Protected: wrapped, Protocol: rh.GetDeclaringClassProtocolName(),
		Method: rh.GetMethodName(), CallID: h.GetCallId(), Retry: h.GetRetryCount(), Body: msg}
	clientID := h.GetClientId()
	c.s.wg.Add(1)
	go func() {
		defer c.s.wg.Done()
		c.answer(r, clientID)
	}()
	return true
}

func (c *conn) answer(r *Request, clientID []byte) {
	m, err := c.s.cfg.Handle(r)
	var re *hrpc.RemoteError
	switch {
	case errors.Is(err, ErrDrop):
		c.nc.Close()
	case errors.Is(err, ErrSilent):
	case errors.As(err, &re):
		status := pb.RpcResponseHeaderProto_ERROR
		if re.Fatal {
			status = pb.RpcResponseHeaderProto_FATAL
		}
		c.exception(r.CallID, status, re.Class, re.Message)
	case err != nil:
		c.exception(r.CallID, pb.RpcResponseHeaderProto_ERROR, "java.io.IOException", err.Error())
	default:
		id := uint32(r.CallID)
		c.send(&pb.RpcResponseHeaderProto{CallId: &id, Status: pb.RpcResponseHeaderProto_SUCCESS.Enum(), ClientId: clientID}, m)
	}
}

func (c *conn) exception(id int32, status pb.RpcResponseHeaderProto_RpcStatusProto, class, msg string) {
	u := uint32(id)
	trace := fmt.Sprintf("%s\n\tat org.apache.hadoop.ipc.Server$Handler.run(Server.java:3000)\n", msg)
	c.send(&pb.RpcResponseHeaderProto{CallId: &u, Status: &status, ExceptionClassName: &class, ErrorMsg: &trace})
}

func (c *conn) send(msgs ...proto.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := frame(msgs...)
	if c.layer != nil {
		w, err := c.layer.Wrap(b)
		if err != nil {
			return
		}
		b = frame(saslHeader(), &pb.RpcSaslProto{State: pb.RpcSaslProto_WRAP.Enum(), Token: w})
	}
	_, _ = c.nc.Write(b)
}

func frame(msgs ...proto.Message) []byte {
	b := make([]byte, 4)
	for _, m := range msgs {
		data, err := proto.Marshal(m)
		if err != nil {
			panic("hrpctest: a handler's answer cannot be marshalled: " + err.Error())
		}
		b = protowire.AppendBytes(b, data)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func saslHeader() *pb.RpcResponseHeaderProto {
	sasl := int32(-33)
	id := uint32(sasl)
	return &pb.RpcResponseHeaderProto{CallId: &id, Status: pb.RpcResponseHeaderProto_SUCCESS.Enum()}
}

// delimited reads a message that its length precedes and returns what follows.
func delimited(b []byte, m proto.Message) ([]byte, error) {
	data, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	return b[n:], proto.Unmarshal(data, m)
}

func (c *conn) unwrap(tok []byte) bool {
	if c.layer == nil {
		return false
	}
	plain, err := c.layer.Unwrap(tok)
	if err != nil {
		return false
	}
	c.inner = append(c.inner, plain...)
	for len(c.inner) >= 4 {
		n := int(binary.BigEndian.Uint32(c.inner))
		if len(c.inner)-4 < n {
			break
		}
		body := c.inner[4 : 4+n]
		c.inner = bytes.Clone(c.inner[4+n:])
		if !c.request(body, true) {
			return false
		}
	}
	return true
}

const nonce = "server-nonce-server-nonce-server-nonce-1"

func (c *conn) challenge() digest.Challenge {
	ch := digest.Challenge{Realm: "default", Nonce: nonce, QOP: c.s.cfg.QOP}
	if ch.QOP == nil {
		ch.QOP = []string{digest.Auth}
	}
	if slices.Contains(ch.QOP, digest.AuthConf) {
		ch.Ciphers = c.s.cfg.Ciphers
		if ch.Ciphers == nil {
			ch.Ciphers = []string{"rc4"}
		}
	}
	return ch
}

func (c *conn) sasl(m *pb.RpcSaslProto) bool {
	switch m.GetState() {
	case pb.RpcSaslProto_NEGOTIATE:
		c.send(saslHeader(), c.offers())
		return true
	case pb.RpcSaslProto_INITIATE:
		if len(m.Auths) != 1 {
			return false
		}
		if m.Auths[0].GetMethod() == "SIMPLE" {
			return c.s.cfg.Simple
		}
		return c.token(m)
	}
	return false
}

func (c *conn) offers() *pb.RpcSaslProto {
	out := &pb.RpcSaslProto{State: pb.RpcSaslProto_NEGOTIATE.Enum()}
	str := func(s string) *string { return &s }
	if c.s.cfg.Password != nil {
		out.Auths = append(out.Auths, &pb.RpcSaslProto_SaslAuth{Method: str("TOKEN"), Mechanism: str("DIGEST-MD5"), Protocol: str(""), ServerId: str("default"), Challenge: c.challenge().Append(nil)})
	}
	if c.s.cfg.Simple {
		out.Auths = append(out.Auths, &pb.RpcSaslProto_SaslAuth{Method: str("SIMPLE"), Mechanism: str("")})
	}
	if c.s.cfg.Password == nil && c.s.cfg.Simple {
		return &pb.RpcSaslProto{State: pb.RpcSaslProto_SUCCESS.Enum()}
	}
	return out
}

func (c *conn) token(m *pb.RpcSaslProto) bool {
	a := m.Auths[0]
	if a.GetMethod() != "TOKEN" || a.Protocol == nil || a.GetServerId() != "default" || a.Challenge != nil {
		c.exception(-33, pb.RpcResponseHeaderProto_FATAL, hrpc.ClassAccessControl, "the chosen element is not what was offered")
		return false
	}
	var id []byte
	_, proof, sess, err := digest.Accept(c.challenge(), m.Token, "/default", func(user string) (string, bool) {
		b, err := base64.StdEncoding.DecodeString(user)
		if err != nil {
			return "", false
		}
		id = b
		pw, ok := c.s.cfg.Password(b)
		return base64.StdEncoding.EncodeToString(pw), ok
	})
	if err != nil {
		c.exception(-33, pb.RpcResponseHeaderProto_FATAL, hrpc.ClassInvalidToken, "Invalid token: "+err.Error())
		return false
	}
	c.send(saslHeader(), &pb.RpcSaslProto{State: pb.RpcSaslProto_SUCCESS.Enum(), Token: proof})
	l, err := sess.Layer()
	if err != nil {
		return false
	}
	c.identifier = id
	if l != nil {
		c.mu.Lock()
		c.layer = hrpc.DigestLayer{L: l}
		c.mu.Unlock()
	}
	return true
}
