// Package amrm is the ApplicationMaster's session with the ResourceManager: it registers, sends heartbeats, and unregisters. What heartbeats say is
// package book's matter; this package carries them, follows the ResourceManager through restarts and failovers, and never lets anything delay them.
package amrm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Protocol is the name of the protocol with the ResourceManager's scheduler.
const Protocol = "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB"

// Config is what a session needs to know.
type Config struct {
	Addrs       []string    // host:port of every ResourceManager's scheduler
	Token       token.Token // YARN_AM_RM_TOKEN
	Host        string      // that reports name as the master's
	Port        int         // -1: none
	TrackingURL string      // of the master's pages; "": none

	Busy time.Duration // between heartbeats while something is wanted; 0: 250 ms
	Idle time.Duration // between heartbeats otherwise; 0: 3 s
	// Expiry is how long the ResourceManager waits for a heartbeat; no interval is longer than a third of it. 0: 10 min
	Expiry time.Duration

	Protection []string
	Dial       func(ctx context.Context, addr string) (net.Conn, error)
	Logger     *slog.Logger
	// Heard is called with what each answer brought, if it brought anything, one after the other and never under a lock. It may take its time: heartbeats go on.
	Heard func(book.Outcome)
	// Registered is called after each registration, the first and those with a ResourceManager that has forgotten this master. It must return at once.
	Registered func(Registration)
	// Rejected is called when the ResourceManager will not take an ask, which is dropped. It must return at once.
	Rejected func(book.Key, error)
}

// Registration is what the ResourceManager told the master at first.
type Registration struct {
	MaxMemoryMB int64
	MaxVCores   int32
	Queue       string
	Kept        []book.Grant // containers of earlier attempts
	ClientKey   []byte       // verifies the tokens of those who call the master; empty on clusters without security
	Types       []string     // names of the cluster's kinds of resources
	Message     *pb.RegisterApplicationMasterResponseProto
}

// ErrOver says that the ResourceManager has ended this attempt: another runs, or the application is over. The
// master must end without unregistering.
var ErrOver = errors.New("the ResourceManager has ended this attempt of the application")

// Session is a registered master. Its methods are for concurrent use and none waits for the ResourceManager, Finish and Close apart.
type Session struct {
	// Immutable.
	cfg    Config
	client *hrpc.Client
	log    *slog.Logger
	wake   chan struct{} // there is something to say
	finish chan finish
	done   chan struct{} // the loop has ended
	stop   context.CancelFunc
	wg     sync.WaitGroup // the loop and the teller
	tells  chan struct{}  // there is something to tell, or the loop has ended

	// Guarded by mu.
	mu    sync.Mutex
	book  *book.Book
	heard []book.Outcome // not told yet
	hurry time.Time      // until then, heartbeats follow each other as if something were wanted
	err   error          // why the loop ended; nil after Finish
}

// finish asks the loop to unregister.
type finish struct {
	ctx    context.Context
	req    *pb.FinishApplicationMasterRequestProto
	result chan error // room for one
}

// Register registers and begins to send heartbeats, until Finish, Close or the attempt's end. ctx bounds the registration alone.
func Register(ctx context.Context, cfg Config) (*Session, Registration, error) {
	if cfg.Busy == 0 {
		cfg.Busy = 250 * time.Millisecond
	}
	if cfg.Idle == 0 {
		cfg.Idle = 3 * time.Second
	}
	if cfg.Expiry == 0 {
		cfg.Expiry = 10 * time.Minute
	}
	cfg.Busy, cfg.Idle = min(cfg.Busy, cfg.Expiry/3), min(cfg.Idle, cfg.Expiry/3)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Session{cfg: cfg, log: cfg.Logger, wake: make(chan struct{}, 1), finish: make(chan finish), done: make(chan struct{}), tells: make(chan struct{}, 1), book: book.New(cfg.Token)}
	s.client = hrpc.New(hrpc.Config{
		Protocol: Protocol, Addrs: cfg.Addrs, Auth: []hrpc.Authenticator{hrpc.ByToken(cfg.Token)}, Protection: cfg.Protection, Dial: cfg.Dial, Logger: cfg.Logger,
		ConnectTimeout: 10 * time.Second, CallTimeout: min(30*time.Second, cfg.Expiry/3), IdleTimeout: max(2*cfg.Idle, 10*time.Second),
		// One round through all servers; the loop has its own pauses.
		Retry: hrpc.Retry{Attempts: 2 * len(cfg.Addrs), Base: 100 * time.Millisecond, Max: time.Second, RepeatLost: true},
	})
	reg, err := s.registerUntil(ctx)
	if err != nil {
		_ = s.client.Close()
		return nil, Registration{}, err
	}
	run, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wg.Add(2)
	go s.loop(run)
	go s.teller()
	return s, reg, nil
}

// Want sets how many containers of a kind are still wanted.
func (s *Session) Want(a book.Ask) { s.change(func(b *book.Book) { b.Want(a) }) }

// Release gives a container back.
func (s *Session) Release(c yarnid.Container) { s.change(func(b *book.Book) { b.Release(c) }) }

// Hurry has news sooner: for so long, heartbeats follow each other as if something were wanted.
func (s *Session) Hurry(d time.Duration) {
	s.mu.Lock()
	s.hurry = time.Now().Add(d)
	s.mu.Unlock()
	s.rouse()
}

// Blacklist sets the hosts to get no containers on.
func (s *Session) Blacklist(hosts []string) { s.change(func(b *book.Book) { b.Blacklist(hosts) }) }

// Progress sets what part of the work is done. It is told with the next heartbeat, and is no reason for one.
func (s *Session) Progress(p float32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.Progress(p)
}

// NMToken returns the token for a node's NodeManager.
func (s *Session) NMToken(node string) (token.Token, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.NMToken(node)
}

func (s *Session) change(f func(*book.Book)) {
	s.mu.Lock()
	f(s.book)
	s.mu.Unlock()
	s.rouse()
}

// rouse has a heartbeat sent at once.
func (s *Session) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Done is closed when the session is over.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err is why the session is over: nil after Finish, ErrOver if the attempt is, context.Canceled after Close.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Finish unregisters: the application is over, with this status and these diagnostics. It returns when the ResourceManager has confirmed it. The
// session is over then, whether or not it worked.
func (s *Session) Finish(ctx context.Context, status pb.FinalApplicationStatusProto, diagnostics, url string) error {
	f := finish{ctx, &pb.FinishApplicationMasterRequestProto{FinalApplicationStatus: &status, Diagnostics: &diagnostics, TrackingUrl: &url}, make(chan error, 1)}
	select {
	case s.finish <- f:
	case <-s.done:
		return fmt.Errorf("cannot unregister: %w", errors.Join(s.Err(), ErrOver))
	case <-ctx.Done():
		return fmt.Errorf("cannot unregister: %w", ctx.Err())
	}
	return <-f.result
}

// Close ends the session without unregistering and waits for its goroutines. The ResourceManager will take the attempt for lost after a while.
func (s *Session) Close() {
	s.stop()
	s.wg.Wait()
	_ = s.client.Close()
}

// registerUntil registers, and tries again while no ResourceManager answers.
func (s *Session) registerUntil(ctx context.Context) (Registration, error) {
	for {
		reg, err := s.register(ctx)
		if err == nil {
			return reg, nil
		}
		if !passing(err) || ctx.Err() != nil {
			return Registration{}, fmt.Errorf("cannot register the application's master: %w", err)
		}
		s.log.Warn("cannot reach the ResourceManager to register, trying again", "err", err)
		if !sleep(ctx, s.cfg.Busy) {
			return Registration{}, fmt.Errorf("cannot register the application's master: %w", err)
		}
	}
}

// register registers once. It is also what a resync does.
func (s *Session) register(ctx context.Context) (Registration, error) {
	req := &pb.RegisterApplicationMasterRequestProto{Host: &s.cfg.Host, RpcPort: proto.Int32(int32(s.cfg.Port)), TrackingUrl: &s.cfg.TrackingURL}
	var resp pb.RegisterApplicationMasterResponseProto
	err := s.client.Call(ctx, "registerApplicationMaster", req, &resp)
	if hrpc.ClassOf(err) == hrpc.ClassInvalidAMRequest && alreadyRegistered.MatchString(err.Error()) {
		// The answer to the registration was lost.
		s.log.Info("the ResourceManager has this master registered already")
		err = nil
	}
	if err != nil {
		return Registration{}, err
	}
	s.mu.Lock()
	out := s.book.Registered(&resp)
	s.mu.Unlock()
	reg := Registration{MaxMemoryMB: resp.GetMaximumCapability().GetMemory(), MaxVCores: resp.GetMaximumCapability().GetVirtualCores(),
		Queue: resp.GetQueue(), Kept: out.Kept, ClientKey: resp.GetClientToAmTokenMasterKey(), Message: &resp}
	for _, t := range resp.GetResourceTypes() {
		reg.Types = append(reg.Types, t.GetName())
	}
	if s.cfg.Registered != nil {
		s.cfg.Registered(reg)
	}
	return reg, nil
}

var (
	alreadyRegistered = regexp.MustCompile(`(?i)already registered`)
	constraints       = regexp.MustCompile(`(?i)placement constraint|constraint handler|SchedulingRequest`)
	expectedResponse  = regexp.MustCompile(`expect responseId to be (-?\d+)`)
)

// passing reports whether an error may pass by itself: no answer, or a server in trouble. What YARN or security refuses stays refused.
func passing(err error) bool {
	if _, ok := errors.AsType[*hrpc.ConnError](err); ok {
		return true
	}
	switch hrpc.ClassOf(err) {
	case hrpc.ClassStandby, hrpc.ClassRetriable, "java.io.IOException", "java.net.SocketTimeoutException":
		return true
	}
	return false
}

// sleep waits; false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// keyName is for logs.
func keyName(k book.Key) string {
	return "priority " + strconv.Itoa(int(k.Priority)) + ", request " + strconv.FormatInt(k.Request, 10)
}
