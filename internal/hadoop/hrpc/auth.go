package hrpc

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/digest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// Authenticator is one way to prove who we are. A value serves many connections, one after the other or at once.
type Authenticator interface {
	// Method is the name that servers offer it by, such as TOKEN.
	Method() string
	// Begin answers a server's offer. It may have to ask a third party first, for as long as ctx allows.
	Begin(ctx context.Context, offer Offer) (first []byte, e Exchange, err error)
	// User is the user to name after the proof; "" if the proof says it.
	User() string
}

// Offer is how a server wants to be proven to.
type Offer struct {
	Server  string                    // its address, host:port
	Auth    *pb.RpcSaslProto_SaslAuth // what it said
	Allowed []string                  // qualities of protection that will do for us; empty: any
}

// Exchange is an authentication under way on one connection.
type Exchange interface {
	// Next answers a challenge. The answer may be empty, not nil.
	Next(challenge []byte) ([]byte, error)
	// Finish checks the server's last word and returns the layer that protects all that follows, nil for none.
	// It is an error if the exchange was not complete.
	Finish(last []byte) (Layer, error)
}

// Layer protects what is sent after authentication. Messages pass it in order; one goroutine wraps, one unwraps.
type Layer interface {
	Wrap([]byte) ([]byte, error)
	Unwrap([]byte) ([]byte, error)
}

// Simple claims to be a user, which only servers without security believe.
func Simple(user string) Authenticator { return simple(user) }

type simple string

func (simple) Method() string { return "SIMPLE" }
func (s simple) User() string { return string(s) }

func (simple) Begin(context.Context, Offer) ([]byte, Exchange, error) { return nil, nil, nil }

// For acts for another user: who proves to be by says so after the proof, and the server must allow it (hadoop.proxyuser.…). real is the full name of
// who proves.
func For(user, real string, by Authenticator) Authenticator {
	return forUser{Authenticator: by, user: user, real: real}
}

type forUser struct {
	Authenticator
	user, real string
}

func (f forUser) User() string     { return f.user }
func (f forUser) RealUser() string { return f.real }

// ByToken authenticates by a token that the service or its master issued.
func ByToken(t token.Token) Authenticator { return byToken{t} }

type byToken struct{ t token.Token }

func (byToken) Method() string { return "TOKEN" }
func (byToken) User() string   { return "" }

func (a byToken) Begin(_ context.Context, o Offer) ([]byte, Exchange, error) {
	offer := o.Auth
	if offer.Challenge == nil {
		return nil, nil, errors.New("the server sent no challenge for DIGEST-MD5")
	}
	c, err := digest.ParseChallenge(offer.Challenge)
	if err != nil {
		return nil, nil, err
	}
	var nonce [24]byte
	rand.Read(nonce[:])
	b64 := base64.StdEncoding.EncodeToString
	uri := offer.GetProtocol() + "/" + offer.GetServerId()
	resp, s, err := digest.Respond(c, b64(a.t.Identifier), b64(a.t.Password), uri, b64(nonce[:]), o.Allowed)
	if err != nil {
		return nil, nil, err
	}
	return resp, &digestExchange{s: s}, nil
}

type digestExchange struct{ s *digest.Session }

func (*digestExchange) Next([]byte) ([]byte, error) {
	return nil, errors.New("the server challenges again, which DIGEST-MD5 has no need of")
}

func (e *digestExchange) Finish(last []byte) (Layer, error) {
	if err := e.s.Verify(last); err != nil {
		return nil, err
	}
	l, err := e.s.Layer()
	if err != nil || l == nil {
		return nil, err
	}
	return DigestLayer{l}, nil
}

// DigestLayer makes a layer of package digest a Layer.
type DigestLayer struct{ L *digest.Layer }

// Wrap implements Layer.
func (d DigestLayer) Wrap(b []byte) ([]byte, error) { return d.L.Wrap(b), nil }

// Unwrap implements Layer.
func (d DigestLayer) Unwrap(b []byte) ([]byte, error) { return d.L.Unwrap(b) }

// mechanisms are those that may stand behind a method; an offer of another is ignored.
var mechanisms = map[string]string{"SIMPLE": "", "TOKEN": "DIGEST-MD5", "KERBEROS": "GSSAPI"}
