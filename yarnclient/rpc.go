package yarnclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// ClientProtocol is the name of the protocol between clients and ResourceManagers.
const ClientProtocol = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"

// RPCConfig is what a client of ApplicationClientProtocol needs to know.
type RPCConfig struct {
	Addrs []string // host:port of every ResourceManager's service for clients
	// Auth are the proofs of who we are, of which the first that a server takes is used.
	Auth       []hrpc.Authenticator
	Protection []string // qualities of protection that will do; empty: any
	Dial       func(ctx context.Context, addr string) (net.Conn, error)
	Timeout    time.Duration // of one attempt of a call; 0: 30 s
	Attempts   int           // of a call in all; 0: 8
	PauseMin   time.Duration // between attempts at first; 0: 200 ms
	PauseMax   time.Duration // and at most; 0: 5 s
	Logger     *slog.Logger
}

// RPC is a client of the ResourceManagers' ApplicationClientProtocol. It is for concurrent use.
type RPC struct {
	// Immutable.
	cfg    RPCConfig
	client *hrpc.Client
}

// NewRPC returns a client. It connects at the first call, and stays with the ResourceManager that is active.
func NewRPC(cfg RPCConfig) (*RPC, error) {
	if len(cfg.Addrs) == 0 {
		return nil, errors.New("cannot reach YARN: no ResourceManager's address is configured")
	}
	if len(cfg.Auth) == 0 {
		return nil, errors.New("cannot reach YARN by RPC without a user")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 8
	}
	if cfg.PauseMin == 0 {
		cfg.PauseMin = 200 * time.Millisecond
	}
	if cfg.PauseMax == 0 {
		cfg.PauseMax = 5 * time.Second
	}
	return &RPC{cfg: cfg, client: hrpc.New(hrpc.Config{
		Protocol: ClientProtocol, Addrs: cfg.Addrs, Auth: cfg.Auth, Protection: cfg.Protection, Dial: cfg.Dial, Logger: cfg.Logger,
		ConnectTimeout: 10 * time.Second, CallTimeout: cfg.Timeout,
		// Every call may be repeated: YARN knows a submission by its identifier, and the others change nothing the second time.
		Retry: hrpc.Retry{Attempts: max(cfg.Attempts, len(cfg.Addrs)), Base: cfg.PauseMin, Max: cfg.PauseMax, RepeatLost: true},
	})}, nil
}

// Close ends the connection.
func (r *RPC) Close() { _ = r.client.Close() }

// rpcError is a refusal, in the words of what was tried.
type rpcError struct {
	what string
	err  *hrpc.RemoteError
}

func (e *rpcError) Error() string {
	class := e.err.Class[strings.LastIndexByte(e.err.Class, '.')+1:]
	return fmt.Sprintf("cannot %s: %s answered %s: %s", e.what, e.err.Addr, class, e.err.Message)
}

func (e *rpcError) Unwrap() error { return e.err }

// call makes a call; what says in words what for.
func (r *RPC) call(ctx context.Context, what, method string, req, resp proto.Message) error {
	err := r.client.Call(ctx, method, req, resp)
	if err == nil {
		return nil
	}
	class := hrpc.ClassOf(err)
	if re, ok := errors.AsType[*hrpc.RemoteError](err); ok && class != hrpc.ClassStandby && class != hrpc.ClassRetriable {
		return &rpcError{what, re}
	}
	if _, auth := errors.AsType[*hrpc.AuthError](err); auth || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	return &UnreachableError{What: what, Bases: r.cfg.Addrs, Err: err}
}
