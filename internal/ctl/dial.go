package ctl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
)

// MaxMessage bounds one message of the control plane. The master cuts its orders to stay far below.
const MaxMessage = 64 << 20

// JoinOptions tune Join.
type JoinOptions struct {
	Wait       time.Duration // how long to try; 0 means 20 s
	Refused    time.Duration // how long to try while the host refuses connections: nobody listens there; 0 means Wait
	BackoffMax time.Duration // the longest pause between two tries; 0 means 1 s
	Queue      int           // messages that may wait to be sent; 0 means 1024
	// Locate tells before each try where the master is now, since another attempt of it may have taken over; "" and nil: where
	// the secrets say.
	Locate func(context.Context) string
	// Firm ends Join at once where whoever answers is no ApplicationMaster of the secrets' application. Else it goes on: the
	// true one may come back to the address.
	Firm   bool
	Failed func(error) // hears of each try that failed and is followed by another; may be nil
}

// StrangerError says that another application's ApplicationMaster, or somebody else, answers at the address.
type StrangerError struct {
	Addr string
	Err  error
}

func (e *StrangerError) Error() string {
	return fmt.Sprintf("the ApplicationMaster at %s is not the one that these secrets are for, use those of its own application: %v", e.Addr, e.Err)
}

func (e *StrangerError) Unwrap() error { return e.Err }

// RefusedError says that the master does not want this agent: it should exit at once and not come again.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string {
	return "the ApplicationMaster refused this agent: " + e.Reason
}

// ErrClosed is returned by a session that its own side closed.
var ErrClosed = errors.New("the session is closed")

var errBroken = errors.New("cannot reach the ApplicationMaster: the session broke")

// Session is an agent's side of its session with the master.
// Any goroutine may Send; one goroutine calls Recv. Close may be called by any, more than once.
type Session struct {
	// Immutable after Join.
	conn   *grpc.ClientConn
	stream clientStream
	cancel context.CancelFunc
	ended  <-chan struct{} // closed by cancel
	out    chan *ctlpb.FromAgent
	done   chan struct{} // closed when the sender has ended
	quit   chan struct{} // closed by Close: send what is queued, then end

	once sync.Once
}

// Join dials the master that s names, introduces the agent, and returns the session with the master's answer.
// It tries again while the master can't be reached; it does not after a refusal (a *RefusedError) or where the
// certificates do not fit. ctx bounds Join only, not the session.
func Join(ctx context.Context, s AgentSecrets, reg *ctlpb.Register, opt JoinOptions) (*Session, *ctlpb.Registered, error) {
	opt = opt.defaults()
	conf, err := pki.AgentTLS(s.Leaf(), []byte(s.CA))
	if err != nil {
		return nil, nil, err
	}
	dial := &dialer{locate: opt.Locate}
	conn, err := grpc.NewClient("passthrough:///"+s.MasterAddr,
		grpc.WithTransportCredentials(&checked{credentials.NewTLS(conf), dial}),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(dial.dial),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: opt.BackoffMax},
			MinConnectTimeout: 3 * time.Second,
		}))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot dial the ApplicationMaster at %s: %w", s.MasterAddr, err)
	}
	sess, answer, err := join(ctx, conn, dial, reg, opt)
	if err != nil {
		_ = conn.Close()
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			return nil, nil, refused
		}
		if stranger := dial.stranger.Load(); stranger != nil && opt.Firm {
			return nil, nil, stranger
		}
		return nil, nil, fmt.Errorf("cannot join the ApplicationMaster at %s: %w", s.MasterAddr, err)
	}
	return sess, answer, nil
}

func (o JoinOptions) defaults() JoinOptions {
	if o.Wait == 0 {
		o.Wait = 20 * time.Second
	}
	if o.Refused == 0 {
		o.Refused = o.Wait
	}
	if o.BackoffMax == 0 {
		o.BackoffMax = time.Second
	}
	if o.Queue == 0 {
		o.Queue = 1024
	}
	return o
}

// dialer connects, and remembers whether the last try was refused: the host is there, but nobody listens.
type dialer struct {
	locate  func(context.Context) string // nil: where it is asked to
	refused atomic.Bool
	// stranger is the last try's error if the certificate of who answered was wrong.
	stranger atomic.Pointer[StrangerError]
}

// checked are credentials of a client that remember in its dialer whether a server's certificate was wrong.
type checked struct {
	credentials.TransportCredentials
	dial *dialer // immutable
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *checked) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if _, wrong := errors.AsType[*tls.CertificateVerificationError](err); wrong {
		c.dial.stranger.Store(&StrangerError{raw.RemoteAddr().String(), err})
	} else {
		c.dial.stranger.Store(nil)
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (c *checked) Clone() credentials.TransportCredentials {
	return &checked{c.TransportCredentials.Clone(), c.dial}
}

func (d *dialer) dial(ctx context.Context, addr string) (net.Conn, error) {
	if d.locate != nil {
		if now := d.locate(ctx); now != "" {
			addr = now
		}
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	d.refused.Store(errors.Is(err, syscall.ECONNREFUSED))
	return c, err
}

func join(ctx context.Context, conn *grpc.ClientConn, dial *dialer, reg *ctlpb.Register, opt JoinOptions) (*Session, *ctlpb.Registered, error) {
	ctx, stop := context.WithTimeout(ctx, opt.Wait)
	defer stop()
	pause := 50 * time.Millisecond
	began := time.Now()
	for {
		sess, answer, err := introduce(ctx, conn, reg, opt)
		if err == nil || status.Code(err) != codes.Unavailable {
			return sess, answer, err
		}
		if dial.refused.Load() && time.Since(began) >= opt.Refused {
			return nil, nil, err
		}
		if opt.Firm && dial.stranger.Load() != nil {
			return nil, nil, err
		}
		if opt.Failed != nil && ctx.Err() == nil {
			opt.Failed(err)
		}
		select {
		case <-ctx.Done():
			return nil, nil, err // the last try's reason says more than the deadline
		case <-time.After(pause):
		}
		pause = min(2*pause, opt.BackoffMax)
	}
}

// introduce makes one try.
func introduce(ctx context.Context, conn *grpc.ClientConn, reg *ctlpb.Register, opt JoinOptions) (*Session, *ctlpb.Registered, error) {
	life, cancel := context.WithCancel(context.Background())
	unlink := context.AfterFunc(ctx, cancel)
	answer, stream, err := hello(life, conn, reg)
	if err == nil && !unlink() {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	s := &Session{
		conn: conn, stream: stream, cancel: cancel, ended: life.Done(),
		out:  make(chan *ctlpb.FromAgent, opt.Queue),
		done: make(chan struct{}), quit: make(chan struct{}),
	}
	go s.send()
	return s, answer, nil
}

// clientStream is the agent's end of the stream.
type clientStream = grpc.BidiStreamingClient[ctlpb.FromAgent, ctlpb.FromMaster]

func hello(ctx context.Context, conn *grpc.ClientConn, reg *ctlpb.Register) (*ctlpb.Registered, clientStream, error) {
	stream, err := ctlpb.NewControlClient(conn).Session(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := stream.Send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Register{Register: reg}}); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	} // after io.EOF, Recv has the reason
	first, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	switch m := first.M.(type) {
	case *ctlpb.FromMaster_Registered:
		return m.Registered, stream, nil
	case *ctlpb.FromMaster_Refused:
		return nil, nil, &RefusedError{Reason: m.Refused.GetReason()}
	}
	return nil, nil, fmt.Errorf("the master's first message is a %T, want Registered or Refused", first.M)
}

// send is the session's only goroutine: it moves what Send queued to the stream.
func (s *Session) send() {
	defer close(s.done)
	for {
		select {
		case m := <-s.out:
			if s.stream.Send(m) != nil {
				s.cancel() // Recv reports why
				return
			}
		case <-s.quit:
			s.drain()
			return
		}
	}
}

func (s *Session) drain() {
	for {
		select {
		case m := <-s.out:
			if s.stream.Send(m) != nil {
				return
			}
		default:
			_ = s.stream.CloseSend()
			return
		}
	}
}

// Send queues m. It waits while the queue is full, and fails when the session is over.
func (s *Session) Send(m *ctlpb.FromAgent) error {
	if err := s.over(); err != nil {
		return err
	}
	select {
	case s.out <- m:
		return nil
	case <-s.quit:
	case <-s.done:
	}
	return s.over()
}

// over says why nothing can be sent any more, or nil.
func (s *Session) over() error {
	select {
	case <-s.quit:
		return ErrClosed
	default:
	}
	select {
	case <-s.done:
		return errBroken
	default:
		return nil
	}
}

// Recv returns the master's next message. After an error the session is over: io.EOF where the master ended it in order.
func (s *Session) Recv() (*ctlpb.FromMaster, error) {
	m, err := s.stream.Recv()
	if err != nil {
		s.cancel()
		if !errors.Is(err, io.EOF) {
			err = fmt.Errorf("the session with the ApplicationMaster broke: %w", err)
		}
		return nil, err
	}
	return m, nil
}

// closeWait bounds how long Close lets queued messages go out.
const closeWait = 2 * time.Second

// Close sends what is queued and ends the session, within two seconds. It waits until that is done.
// Recv must go on being called until it fails: the master's answer shows that everything has arrived.
func (s *Session) Close() error {
	s.once.Do(func() {
		close(s.quit)
		t := time.AfterFunc(closeWait, s.cancel)
		<-s.done
		<-s.ended // by Recv, at the master's answer to the end of our side, or by the timer
		t.Stop()
		_ = s.conn.Close()
	})
	return nil
}
