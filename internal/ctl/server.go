package ctl

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"

	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
)

// A connection on which nothing comes for pingAfter is tried, and closed after pingTimeout more: heartbeats decide sooner that
// an agent is lost, but only this frees what waits to be sent to a host that is gone.
const (
	pingAfter   = 20 * time.Second
	pingTimeout = 10 * time.Second
)

// A connection has handshakeTimeout to prove that it is an agent's, and at most maxHandshakes may be about to.
const (
	handshakeTimeout = 10 * time.Second
	maxHandshakes    = 512
)

// NewServer makes the master's gRPC server: agents with a certificate of authority may call impl, nobody else.
// Its Stop waits for impl's calls to return. stranger, if it is not nil, hears of peers that could not prove who they are, from any
// goroutine.
func NewServer(authority *pki.Authority, impl ctlpb.ControlServer, stranger func(peer net.Addr, err error)) (*grpc.Server, error) {
	return newServer(authority, impl, handshakeTimeout, maxHandshakes, stranger)
}

func newServer(authority *pki.Authority, impl ctlpb.ControlServer, timeout time.Duration, most int, stranger func(net.Addr, error)) (*grpc.Server, error) {
	conf, err := authority.MasterTLS()
	if err != nil {
		return nil, err
	}
	creds := &handshakes{TransportCredentials: credentials.NewTLS(conf), most: most, failed: stranger}
	s := grpc.NewServer(grpc.Creds(creds), grpc.ConnectionTimeout(timeout),
		grpc.ForceServerCodecV2(newCodec()), grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage), grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}))
	ctlpb.RegisterControlServer(s, impl)
	return s, nil
}

// Peer is who calls, as the certificate of the connection says.
type Peer struct {
	pki.Name
	Addr string
	Ends time.Time // of the certificate
}

// Caller returns who calls.
func Caller(ctx context.Context) (Peer, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Peer{}, errors.New("cannot tell who calls: no peer")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 || len(info.State.PeerCertificates) == 0 {
		return Peer{}, errors.New("cannot tell who calls: no verified certificate")
	}
	cert := info.State.PeerCertificates[0]
	name, err := pki.NameOf(cert)
	return Peer{name, p.Addr.String(), cert.NotAfter}, err
}
