package hrpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// Config is what a client needs to know. Zero values of the numbers mean Hadoop's defaults.
type Config struct {
	Protocol   string          // such as org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB
	Addrs      []string        // host:port of every server of the service; the first is tried first
	Auth       []Authenticator // that we have, SetAuth replaces them
	Protection []string        // qualities of protection that will do (auth, auth-int, auth-conf); empty: any, the strongest offered
	// Dial connects; nil: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	ConnectTimeout   time.Duration // 20 s
	HandshakeTimeout time.Duration // 20 s
	CallTimeout      time.Duration // for each attempt of a call; 2 min, negative: none but the context's
	WriteTimeout     time.Duration // 30 s
	PingInterval     time.Duration // silence after which a server that owes an answer is pinged; 1 min
	IdleTimeout      time.Duration // 10 s
	MaxResponse      int           // bytes; 128 MiB

	Retry  Retry
	Logger *slog.Logger // nil: none
}

// Retry says how often and how fast a call is tried again. The zero value is not at all.
type Retry struct {
	Attempts   int           // in all; 0 and 1: one
	Base, Max  time.Duration // pause before the second try at a server, doubled each time up to Max; 100 ms, 10 s
	RepeatLost bool          // a call is tried again even if it may have been carried out
}

// Client makes calls. It is for concurrent use.
type Client struct {
	// Immutable.
	cfg      Config
	clientID []byte
	log      *slog.Logger
	life     context.Context // ends with Close; it bounds the dials, which no call owns
	end      context.CancelFunc
	wg       sync.WaitGroup // dials and their clean-up

	// Guarded by mu.
	mu     sync.Mutex
	auth   []Authenticator
	at     int   // index of the server in use
	nextID int32 // of calls
	conn   *conn // nil: none
	dial   *dial // nil: none under way
	old    []*conn
	closed bool
}

// dial is a connection being made, which all calls wait for.
type dial struct {
	done chan struct{}
	conn *conn // after done
	err  error // after done
}

// New returns a client. It connects at the first call.
func New(cfg Config) *Client {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&cfg.ConnectTimeout, 20*time.Second)
	def(&cfg.HandshakeTimeout, 20*time.Second)
	def(&cfg.CallTimeout, 2*time.Minute)
	def(&cfg.WriteTimeout, 30*time.Second)
	def(&cfg.PingInterval, time.Minute)
	def(&cfg.IdleTimeout, 10*time.Second)
	def(&cfg.Retry.Base, 100*time.Millisecond)
	def(&cfg.Retry.Max, 10*time.Second)
	if cfg.MaxResponse == 0 {
		cfg.MaxResponse = defaultMaxFrame
	}
	if cfg.Dial == nil {
		var d net.Dialer
		cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{cfg: cfg, clientID: make([]byte, 16), log: cfg.Logger, auth: cfg.Auth}
	rand.Read(c.clientID)
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// SetAuth replaces what later connections authenticate by. The present connection stays.
func (c *Client) SetAuth(auth ...Authenticator) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.auth = auth
}

// Addr is the server that the next call goes to.
func (c *Client) Addr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cfg.Addrs) == 0 {
		return ""
	}
	return c.cfg.Addrs[c.at]
}

// Close ends the connection, fails what is under way and waits for the client's goroutines.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	cn, old := c.conn, c.old
	c.conn, c.old = nil, nil
	c.mu.Unlock()
	c.end()
	for _, x := range append(old, cn) {
		if x != nil {
			x.close(ErrClosed)
		}
	}
	c.wg.Wait()
	return nil
}

// Call makes a call and fills resp with its answer. It tries again and at other servers as the configuration's Retry says.
func (c *Client) Call(ctx context.Context, method string, req, resp proto.Message) error {
	if len(c.cfg.Addrs) == 0 {
		return fmt.Errorf("cannot call %s: no server is configured", method)
	}
	id := c.callID()
	var pause backoff
	for try := 1; ; try++ {
		at := c.index()
		err := c.once(ctx, at, id, int32(try-1), method, req, resp)
		if err == nil {
			return nil
		}
		v := judge(err, c.cfg.Retry.RepeatLost)
		if v == failOver {
			c.moveOn(at)
		}
		if v == giveUp || try >= c.cfg.Retry.Attempts || errors.Is(err, ErrClosed) {
			return err
		}
		// A server not tried yet is tried at once.
		if v == failOver && try < len(c.cfg.Addrs) {
			continue
		}
		d := pause.next(c.cfg.Retry)
		c.log.Debug("call failed, trying again", "method", method, "server", c.cfg.Addrs[at], "pause", d, "err", err)
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%w (and then %w)", err, ctx.Err())
		case <-c.life.Done():
			t.Stop()
			return ErrClosed
		}
	}
}

func (c *Client) callID() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextID
	c.nextID = (c.nextID + 1) & 0x7FFFFFFF
	return id
}

func (c *Client) index() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// moveOn turns to the next server, unless another call did so already.
func (c *Client) moveOn(from int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != from {
		return
	}
	c.at = (c.at + 1) % len(c.cfg.Addrs)
	if c.conn != nil && len(c.cfg.Addrs) > 1 {
		c.old = append(c.old, c.conn) // calls under way may still end; it ends when idle
		c.conn = nil
	}
}

// once makes one attempt at the server of an index.
func (c *Client) once(ctx context.Context, at int, id, retry int32, method string, req, resp proto.Message) error {
	version := uint64(1)
	frame, err := appendFrame(nil, requestHeader(id, c.clientID, retry),
		&pb.RequestHeaderProto{MethodName: &method, DeclaringClassProtocolName: &c.cfg.Protocol, ClientProtocolVersion: &version}, req)
	if err != nil {
		return fmt.Errorf("cannot call %s: %w", method, err)
	}
	cn, r, err := c.send(ctx, at, id, frame)
	if err != nil {
		return err
	}
	if r.header.GetStatus() != pb.RpcResponseHeaderProto_SUCCESS {
		return remoteError(cn.addr, method, r.header)
	}
	if echo := r.header.GetClientId(); len(echo) > 0 && string(echo) != string(c.clientID) {
		return fmt.Errorf("cannot call %s at %s: the answer is for another client", method, cn.addr)
	}
	if err := proto.Unmarshal(r.body, resp); err != nil {
		return fmt.Errorf("cannot read the answer to %s from %s: %w", method, cn.addr, err)
	}
	return nil
}

// send sends a frame on the connection and waits for the answer. A connection that ended while it was not in use, as
// idle ones do at either side, is no fault of the server's: it is made anew.
func (c *Client) send(ctx context.Context, at int, id int32, frame []byte) (*conn, response, error) {
	for {
		cn, fresh, err := c.connect(ctx, at)
		if err != nil {
			return nil, response{}, err
		}
		r, err := cn.call(ctx, id, frame)
		if ce, ok := errors.AsType[*ConnError](err); ok && !ce.Sent && !fresh && !errors.Is(err, errCallTimeout) {
			continue
		}
		return cn, r, err
	}
}

// connect returns the connection, made if there is none, and whether it was made for this call.
func (c *Client) connect(ctx context.Context, at int) (cn *conn, fresh bool, err error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, false, ErrClosed
		}
		if c.conn != nil && c.conn.usable() {
			cn := c.conn
			c.mu.Unlock()
			return cn, false, nil
		}
		if c.conn != nil {
			c.old = append(c.old, c.conn)
			c.conn = nil
		}
		d := c.dial
		mine := d == nil
		if mine {
			d = &dial{done: make(chan struct{})}
			c.dial = d
			old := c.old
			c.old = c.old[:0:0]
			auth := c.auth
			c.wg.Add(1)
			go c.makeConn(d, c.cfg.Addrs[at], auth, old)
		}
		c.mu.Unlock()
		select {
		case <-d.done:
		case <-ctx.Done():
			return nil, false, fmt.Errorf("cannot connect to %s: %w", c.cfg.Addrs[at], ctx.Err())
		}
		if d.err != nil {
			return nil, false, d.err
		}
		if d.conn.usable() {
			return d.conn, mine, nil
		}
		if mine {
			return nil, false, d.conn.ended()
		}
	}
}

// makeConn is the goroutine of one dial. It also waits for connections that are over.
func (c *Client) makeConn(d *dial, addr string, auth []Authenticator, old []*conn) {
	defer c.wg.Done()
	for _, o := range old {
		if o.usable() {
			c.keep(o)
		} else {
			o.wg.Wait()
		}
	}
	cn, err := c.open(addr, auth)
	c.mu.Lock()
	c.dial = nil
	closed := c.closed
	if err == nil && !closed {
		c.conn = cn
	}
	c.mu.Unlock()
	if closed {
		if cn != nil {
			cn.close(ErrClosed)
		}
		cn, err = nil, ErrClosed
	}
	d.conn, d.err = cn, err
	close(d.done)
}

func (c *Client) keep(o *conn) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.old = append(c.old, o)
	}
	c.mu.Unlock()
	if closed {
		o.close(ErrClosed)
	}
}

// open connects and logs in.
func (c *Client) open(addr string, auth []Authenticator) (*conn, error) {
	ctx, cancel := context.WithTimeout(c.life, c.cfg.ConnectTimeout)
	defer cancel()
	nc, err := c.cfg.Dial(ctx, addr)
	if err != nil {
		return nil, &ConnError{Addr: addr, Err: err}
	}
	// Close ends a login under way, too.
	stop := context.AfterFunc(c.life, func() { nc.Close() })
	defer stop()
	if err := nc.SetDeadline(time.Now().Add(c.cfg.HandshakeTimeout)); err != nil {
		nc.Close()
		return nil, &ConnError{Addr: addr, Err: err}
	}
	hctx, done := context.WithTimeout(c.life, c.cfg.HandshakeTimeout)
	defer done()
	layer, err := login(hctx, nc, addr, c.cfg.Protocol, auth, c.cfg.Protection, c.cfg.MaxResponse)
	if err == nil {
		err = nc.SetDeadline(time.Time{})
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	cn, err := newConn(nc, addr, layer, &c.cfg, c.clientID)
	if err != nil {
		nc.Close()
	}
	return cn, err
}
