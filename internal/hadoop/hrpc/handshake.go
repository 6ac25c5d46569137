package hrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// login authenticates on a fresh connection and sends its context. The connection has a deadline; ctx bounds what an Authenticator does beside it.
func login(ctx context.Context, nc net.Conn, addr, protocol string, auths []Authenticator, allowed []string, limit int) (Layer, error) {
	h := &handshake{nc: nc, addr: addr, limit: limit}
	sasl := false
	for _, a := range auths {
		sasl = sasl || a.Method() != "SIMPLE"
	}
	if len(auths) == 0 {
		return nil, &AuthError{addr, errors.New("there is neither a token nor a user to do it with")}
	}
	if !sasl {
		return nil, h.context(preamble(authNone), protocol, auths[0], nil)
	}
	who, layer, err := h.sasl(ctx, auths, allowed)
	if err != nil {
		return nil, err
	}
	return layer, h.context(nil, protocol, who, layer)
}

// handshake is the state of a login.
type handshake struct {
	nc    net.Conn
	addr  string
	limit int
}

// context sends the connection's context, for which there is no answer.
func (h *handshake) context(prefix []byte, protocol string, who Authenticator, layer Layer) error {
	info := &pb.UserInformationProto{}
	if user := who.User(); user != "" {
		info.EffectiveUser = &user
	}
	if p, ok := who.(interface{ RealUser() string }); ok {
		real := p.RealUser()
		info.RealUser = &real
	}
	frame, err := appendFrame(nil, requestHeader(callContext, []byte{}, -1), &pb.IpcConnectionContextProto{UserInfo: info, Protocol: &protocol})
	if err != nil {
		return err
	}
	if layer != nil {
		if frame, err = wrapFrame(layer, frame); err != nil {
			return &AuthError{h.addr, err}
		}
	}
	if _, err := h.nc.Write(append(prefix, frame...)); err != nil {
		return h.refused(err)
	}
	return nil
}

// refused returns why the server closed the connection, if it said so before; else the error of the write.
func (h *handshake) refused(err error) error {
	if r, rerr := h.read(); rerr == nil && r.header.GetStatus() != pb.RpcResponseHeaderProto_SUCCESS {
		return remoteError(h.addr, "", r.header)
	}
	return &ConnError{Addr: h.addr, Err: err}
}

func (h *handshake) read() (response, error) {
	body, err := readFrame(h.nc, h.limit)
	if err != nil {
		return response{}, err
	}
	return parseResponse(body)
}

func (h *handshake) send(prefix []byte, m *pb.RpcSaslProto) error {
	b, err := appendFrame(prefix, requestHeader(callSASL, []byte{}, -1), m)
	if err != nil {
		return &AuthError{h.addr, err}
	}
	if _, err := h.nc.Write(b); err != nil {
		return h.refused(err)
	}
	return nil
}

// receive reads the server's next SASL message.
func (h *handshake) receive() (*pb.RpcSaslProto, error) {
	r, err := h.read()
	if err != nil {
		return nil, &ConnError{Addr: h.addr, Err: err}
	}
	if r.header.GetStatus() != pb.RpcResponseHeaderProto_SUCCESS {
		return nil, remoteError(h.addr, "", r.header)
	}
	if r.id != callSASL {
		return nil, &AuthError{h.addr, fmt.Errorf("the server answered call %d during authentication", r.id)}
	}
	m := &pb.RpcSaslProto{}
	if err := proto.Unmarshal(r.body, m); err != nil {
		return nil, &AuthError{h.addr, err}
	}
	return m, nil
}

// sasl negotiates and carries out an authentication.
func (h *handshake) sasl(ctx context.Context, auths []Authenticator, allowed []string) (Authenticator, Layer, error) {
	if err := h.send(preamble(authSASL), &pb.RpcSaslProto{State: pb.RpcSaslProto_NEGOTIATE.Enum()}); err != nil {
		return nil, nil, err
	}
	m, err := h.receive()
	if err != nil {
		return nil, nil, err
	}
	switch m.GetState() {
	case pb.RpcSaslProto_SUCCESS: // the server knows no security
		for _, a := range auths {
			if a.Method() == "SIMPLE" {
				return a, nil, nil
			}
		}
		return nil, nil, &AuthError{h.addr, errors.New("the server asks for no proof, and falling back to none is not allowed")}
	case pb.RpcSaslProto_NEGOTIATE:
	default:
		return nil, nil, &AuthError{h.addr, fmt.Errorf("the server began with %v", m.GetState())}
	}
	a, offer, err := choose(serving(auths, h.addr), m.Auths)
	if err != nil {
		return nil, nil, &AuthError{h.addr, err}
	}
	first, ex, err := a.Begin(ctx, Offer{Server: h.addr, Auth: offer, Allowed: allowed})
	if err != nil {
		return nil, nil, &AuthError{h.addr, err}
	}
	// The element goes back as it came, fields and their presence alike, without its challenge.
	chosen := proto.Clone(offer).(*pb.RpcSaslProto_SaslAuth)
	chosen.Challenge = nil
	if err := h.send(nil, &pb.RpcSaslProto{State: pb.RpcSaslProto_INITIATE.Enum(), Token: first, Auths: []*pb.RpcSaslProto_SaslAuth{chosen}}); err != nil {
		return nil, nil, err
	}
	if ex == nil {
		return a, nil, nil // SIMPLE among others: no answer comes
	}
	layer, err := h.exchange(ex)
	return a, layer, err
}

// exchange answers challenges until the server is content and so are we.
func (h *handshake) exchange(ex Exchange) (Layer, error) {
	for range 16 {
		m, err := h.receive()
		if err != nil {
			return nil, err
		}
		switch m.GetState() {
		case pb.RpcSaslProto_CHALLENGE:
			answer, err := ex.Next(m.Token)
			if err != nil {
				return nil, &AuthError{h.addr, err}
			}
			if answer == nil {
				answer = []byte{}
			}
			if err := h.send(nil, &pb.RpcSaslProto{State: pb.RpcSaslProto_RESPONSE.Enum(), Token: answer}); err != nil {
				return nil, err
			}
		case pb.RpcSaslProto_SUCCESS:
			layer, err := ex.Finish(m.Token)
			if err != nil {
				return nil, &AuthError{h.addr, err}
			}
			return layer, nil
		default:
			return nil, &AuthError{h.addr, fmt.Errorf("the server sent %v in the middle", m.GetState())}
		}
	}
	return nil, &AuthError{h.addr, errors.New("the server does not come to an end")}
}

// serving leaves out those that have no proof for a server.
func serving(auths []Authenticator, addr string) []Authenticator {
	var out []Authenticator
	for _, a := range auths {
		if c, ok := a.(Choosy); !ok || c.Serves(addr) {
			out = append(out, a)
		}
	}
	return out
}

// choose takes the server's first offer that we can serve.
func choose(auths []Authenticator, offers []*pb.RpcSaslProto_SaslAuth) (Authenticator, *pb.RpcSaslProto_SaslAuth, error) {
	var names []string
	for _, o := range offers {
		name := o.GetMethod()
		if o.GetMechanism() != "" {
			name += " (" + o.GetMechanism() + ")"
		}
		names = append(names, name)
		if m, ok := mechanisms[o.GetMethod()]; !ok || m != o.GetMechanism() {
			continue
		}
		for _, a := range auths {
			if a.Method() == o.GetMethod() {
				return a, o, nil
			}
		}
	}
	var have []string
	for _, a := range auths {
		have = append(have, a.Method())
	}
	if len(have) == 0 {
		have = []string{"nothing for it"}
	}
	return nil, nil, fmt.Errorf("the server offers %s, and we have %s", strings.Join(names, ", "), strings.Join(have, ", "))
}

// wrapFrame puts a frame into one of call -33.
func wrapFrame(l Layer, frame []byte) ([]byte, error) {
	w, err := l.Wrap(frame)
	if err != nil {
		return nil, err
	}
	return appendFrame(nil, requestHeader(callSASL, []byte{}, -1), &pb.RpcSaslProto{State: pb.RpcSaslProto_WRAP.Enum(), Token: w})
}
