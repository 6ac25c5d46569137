package hrpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/digest"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

// Tickets is who is logged in to Kerberos: a *krb.Login.
type Tickets interface {
	Ticket(ctx context.Context, service krb.Principal) (*krb.Ticket, error)
}

// ByKerberos authenticates by Kerberos to servers of a principal, as Hadoop's configuration names it: nn/_HOST@REALM, whose _HOST stands for the
// server's host. A server that claims another principal is refused, since it could be anybody's. "" believes what the server says, which is for
// protocols whose principal the configuration does not name.
func ByKerberos(who Tickets, principal string) Authenticator {
	return &byKerberos{who: who, principal: principal, now: time.Now, lookup: net.DefaultResolver.LookupAddr}
}

type byKerberos struct {
	who       Tickets
	principal string
	now       func() time.Time
	lookup    func(ctx context.Context, addr string) ([]string, error)
}

func (*byKerberos) Method() string { return "KERBEROS" }
func (*byKerberos) User() string   { return "" } // the proof says it

func (a *byKerberos) Begin(ctx context.Context, o Offer) ([]byte, Exchange, error) {
	service, err := a.service(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	t, err := a.who.Ticket(ctx, service)
	if err != nil {
		return nil, nil, err
	}
	c, first, err := t.Initiate(a.now())
	if err != nil {
		return nil, nil, err
	}
	return first, &gssExchange{gss: c, allowed: o.Allowed}, nil
}

// service is the principal that the server must be.
func (a *byKerberos) service(ctx context.Context, o Offer) (krb.Principal, error) {
	claimed := krb.Principal{Parts: []string{o.Auth.GetProtocol(), o.Auth.GetServerId()}}
	if o.Auth.GetProtocol() == "" || o.Auth.GetServerId() == "" {
		return claimed, errors.New("the server does not say its principal")
	}
	if a.principal == "" {
		return claimed, nil
	}
	host, _, err := net.SplitHostPort(o.Server)
	if err != nil {
		host = o.Server
	}
	var tried []string
	for _, h := range a.hosts(ctx, host) {
		p, err := krb.ServicePrincipal(a.principal, h)
		if err != nil {
			return p, err
		}
		if slices.Equal(p.Parts, claimed.Parts) {
			return p, nil
		}
		if s := p.String(); !slices.Contains(tried, s) {
			tried = append(tried, s)
		}
	}
	return claimed, fmt.Errorf("the server says that it is %s, and it should be %s; compare the principal in Hadoop's configuration and the server's name in DNS", claimed, strings.Join(tried, " or "))
}

// hosts are the names that a server may go by: as it was addressed, and what DNS makes of its address.
func (a *byKerberos) hosts(ctx context.Context, host string) []string {
	out := []string{host}
	if !strings.Contains(a.principal, "_HOST") {
		return out
	}
	if net.ParseIP(host) == nil && strings.Contains(host, ".") {
		return out // a full name
	}
	if net.ParseIP(host) == nil {
		addrs, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil || len(addrs) == 0 {
			return out
		}
		host = addrs[0]
	}
	names, err := a.lookup(ctx, host)
	if err != nil {
		return out
	}
	return append(out, names...)
}

// gssExchange is SASL's GSSAPI mechanism (RFC 4752) as a client.
type gssExchange struct {
	gss     *krb.Context
	allowed []string
	qop     string
	done    bool
}

// Layers of SASL's GSSAPI, as bits.
var gssLayers = []struct {
	bit byte
	qop string
}{{4, digest.AuthConf}, {2, digest.AuthInt}, {1, digest.Auth}}

func (e *gssExchange) Next(challenge []byte) ([]byte, error) {
	switch {
	case e.done:
		return nil, errors.New("the server challenges again after the end")
	case !e.gss.Established():
		if err := e.gss.Accept(challenge); err != nil {
			return nil, err
		}
		return []byte{}, nil
	}
	plain, _, err := e.gss.Unwrap(challenge)
	if err != nil {
		return nil, err
	}
	if len(plain) != 4 {
		return nil, errors.New("the server's offer of protection is not 4 bytes long")
	}
	answer := make([]byte, 4)
	var offered []string
	for _, l := range gssLayers {
		if plain[0]&l.bit == 0 {
			continue
		}
		offered = append(offered, l.qop)
		if e.qop == "" && (len(e.allowed) == 0 || slices.Contains(e.allowed, l.qop)) {
			e.qop, answer[0] = l.qop, l.bit
		}
	}
	if e.qop == "" {
		return nil, fmt.Errorf("the server offers %s, and %s is allowed; compare hadoop.rpc.protection on both sides", strings.Join(offered, ", "), strings.Join(e.allowed, ", "))
	}
	if e.qop != digest.Auth {
		binary.BigEndian.PutUint32(answer, 1<<16|uint32(answer[0])<<24)
	}
	e.done = true
	return e.gss.Wrap(answer, false)
}

func (e *gssExchange) Finish([]byte) (Layer, error) {
	if !e.done {
		return nil, errors.New("cannot trust the server: it ends the authentication before it has proven itself")
	}
	if e.qop == digest.Auth {
		return nil, nil
	}
	return &gssLayer{gss: e.gss, seal: e.qop == digest.AuthConf}, nil
}

// gssLayer protects messages by a context of Kerberos's.
type gssLayer struct {
	gss  *krb.Context
	seal bool
}

// Wrap implements Layer.
func (l *gssLayer) Wrap(b []byte) ([]byte, error) { return l.gss.Wrap(b, l.seal) }

// Unwrap implements Layer.
func (l *gssLayer) Unwrap(b []byte) ([]byte, error) {
	msg, sealed, err := l.gss.Unwrap(b)
	if err == nil && l.seal && !sealed {
		return nil, errors.New("the server sent a message that is not sealed, where sealing was agreed on")
	}
	return msg, err
}
