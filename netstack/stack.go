package netstack

import (
	"context"
	"crypto/fips140"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// Stack is the exchange of one process.
type Stack struct {
	// Immutable after New.
	cfg                 Config
	pool                *bufpool.Pool
	listener            net.Listener
	addr                string // advertised
	sockets             sockets
	dialer              func(ctx context.Context, addr string) (net.Conn, error)
	ownRecords          bool                                   // TLS records are protected here (takeOver), and not by the FIPS module, which wants to choose nonces itself
	launch              func(f func(ctx context.Context)) bool // starts a goroutine of the stack; false once it is closed
	cancel              context.CancelFunc
	wg                  sync.WaitGroup // every goroutine of the stack
	versions            [2]uint16      // of the protocol, oldest and newest
	features            uint32         // that it always has
	admitMost, admitFew int            // for each connection: see admission
	greeters            chan struct{}  // one slot for each handshake on its way
	began               time.Time
	epoch               int64 // ns since the Unix epoch when it began
	dials               dialPool

	tls                     atomic.Pointer[TLS] // nil without TLS
	untaken                 atomic.Int64        // segments received and not taken
	stray                   atomic.Int64        // frames that were unknown or came late, and were ignored
	spent                   struct{ read, written atomic.Uint64 }
	plainBytes, packedBytes atomic.Uint64 // of what was put to compression

	// Guarded by mu.
	mu         sync.Mutex
	closed     bool
	partitions map[string]*Partition
	waiting    map[string][]*view // requests for partitions that are not there yet
	gone       graveyard
	conns      map[*conn]struct{}
	gates      map[*Gate]struct{}
}

// New returns a stack that listens.
func New(cfg Config) (*Stack, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, &LocalError{Op: "take the options", Kind: cluster.Invalid, Err: err}
	}
	l, socks := cfg.Listener, cfg.sockets()
	if l == nil {
		if l, err = socks.listenSpec(cfg.Listen); err != nil {
			return nil, &LocalError{Op: "listen on " + cfg.Listen, Kind: cluster.Unavailable, Err: err}
		}
	}
	hostname, _ := os.Hostname() // "" will do
	ctx, cancel := context.WithCancel(context.Background())
	s := &Stack{
		cfg: cfg, pool: bufpool.New(cfg.room(), wire.HeaderSize, cfg.MemorySegments), listener: l, addr: advertise(cfg.Advertise, l.Addr().String(), hostname),
		began: time.Now(), epoch: cfg.Clock().UnixNano(), sockets: socks, dialer: cfg.Dial, cancel: cancel, greeters: make(chan struct{}, maxGreeters),
		versions: [2]uint16{wire.MinVersion, wire.Version}, features: wire.Traces,
		admitMost: admitMost, admitFew: admitMost / 2,
		dials:      dialPool{entries: make(map[connKey]*dialEntry)},
		partitions: make(map[string]*Partition), waiting: make(map[string][]*view),
		conns: make(map[*conn]struct{}), gates: make(map[*Gate]struct{}),
	}
	if s.dialer == nil {
		s.dialer = s.sockets.dial
	}
	if cfg.TLS != nil {
		s.tls.Store(tlsConfigs(cfg.TLS))
		s.ownRecords = !fips140.Enabled()
	}
	s.launch = func(f func(ctx context.Context)) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			s.wg.Go(func() { f(ctx) })
		}
		return !s.closed
	}
	s.wg.Go(func() { s.accept(ctx) })
	s.wg.Go(func() { s.watch(ctx) })
	if cfg.DebloatTarget > 0 {
		s.wg.Go(func() { s.debloat(ctx) })
	}
	return s, nil
}

// Addr is the address that peers are told.
func (s *Stack) Addr() string { return s.addr }

// SegmentRoom is how many bytes of payload a segment holds: a multiple of 8.
func (s *Stack) SegmentRoom() int { return s.pool.SegmentBytes() }

func (s *Stack) identity() string {
	if s.cfg.Identity != "" {
		return s.cfg.Identity
	}
	return s.addr
}

// Close ends everything: connections in order (what is queued on them is sent), gates and partitions with ErrClosed.
// It returns when every goroutine of the stack has ended.
func (s *Stack) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.closed = true
	var partitions []*Partition
	for _, p := range s.partitions {
		partitions = append(partitions, p)
	}
	var gates []*Gate
	for g := range s.gates {
		gates = append(gates, g)
	}
	conns := s.connsLocked()
	s.mu.Unlock()
	for _, g := range gates { // first, so that gates of this process see it as this process's doing
		g.Close()
	}
	for _, p := range partitions {
		p.Release()
	}
	for _, c := range conns {
		c.close()
	}
	err := s.listener.Close()
	s.cancel()
	s.wg.Wait()
	return err
}

func (s *Stack) connsLocked() []*conn {
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// Stats are a stack's figures.
type Stats struct {
	Connections           int // open, dialed and accepted
	Channels              int // remote ones: consumed and served
	Partitions, Gates     int
	Waiting               int // requests for partitions that are not there yet
	BytesRead, BytesSent  uint64
	PlainBytes            uint64        // of payloads that compression was tried on
	PackedBytes           uint64        // what was sent of them
	Delay                 time.Duration // with a debloat target: the longest Debloat.Delay of a gate
	SmallestRoom          int           // and the smallest Debloat.Room
	StrayFrames           int64         // unknown or late, ignored
	SegmentBytes          int
	SegmentsTotal         int
	SegmentsUsed          int
	SegmentsReserved      int
	SegmentsFloating      int
	SegmentsEverAllocated int
}

// Stats returns the current figures.
func (s *Stack) Stats() Stats {
	b := s.pool.Stats()
	st := Stats{
		StrayFrames: s.stray.Load(), SegmentBytes: s.cfg.SegmentBytes, SegmentsTotal: b.Total, SegmentsUsed: b.Used,
		SegmentsReserved: b.Reserved, SegmentsFloating: b.Floating, SegmentsEverAllocated: b.Made,
		PlainBytes: s.plainBytes.Load(), PackedBytes: s.packedBytes.Load(),
		BytesRead: s.spent.read.Load(), BytesSent: s.spent.written.Load(),
	}
	s.mu.Lock()
	conns := s.connsLocked()
	st.Connections, st.Partitions, st.Gates = len(conns), len(s.partitions), len(s.gates)
	for _, w := range s.waiting {
		st.Waiting += len(w)
	}
	s.mu.Unlock()
	if s.cfg.DebloatTarget > 0 {
		st.SmallestRoom = s.pool.SegmentBytes()
		for _, g := range s.allGates() {
			d := g.Debloat()
			st.Delay, st.SmallestRoom = max(st.Delay, d.Delay), min(st.SmallestRoom, d.Room)
		}
	}
	for _, c := range conns {
		st.Channels += c.users()
		st.BytesRead += c.rd.bytes.Load()
		st.BytesSent += c.written.Load()
	}
	return st
}

// maxGreeters is how many peers may be proving themselves at once; more wait, most of them in the listener's backlog.
const maxGreeters = 256

// accept takes connections until the listener is closed.
func (s *Stack) accept(ctx context.Context) {
	for {
		nc, err := s.listener.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if err == nil {
				nc.Close()
			}
			return
		}
		if err != nil { // out of descriptors, mostly
			s.cfg.Logger.Error("cannot accept exchange connection", "err", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		select {
		case s.greeters <- struct{}{}:
		case <-ctx.Done():
			nc.Close()
			return
		}
		if !s.launch(func(ctx context.Context) { s.serveAccepted(ctx, nc) }) {
			nc.Close()
		}
	}
}

func (s *Stack) serveAccepted(ctx context.Context, nc net.Conn) {
	raw := nc
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	nc.SetDeadline(time.Now().Add(s.cfg.HandshakeTimeout))
	var under *cork
	if s.cfg.TLS != nil {
		under = newCork(nc)
		nc = tls.Server(under, s.tls.Load().Server)
	}
	var c *conn
	err := s.sockets.tune(raw)
	if err == nil {
		c, err = s.welcome(nc)
	}
	<-s.greeters
	alive := stop()
	if err != nil {
		level := slog.LevelWarn
		if errors.Is(err, errSilent) { // it only looked whether somebody listens, as the ApplicationMaster does
			level = slog.LevelDebug
		}
		s.cfg.Logger.Log(ctx, level, "exchange connection refused", "peer", raw.RemoteAddr().String(), "err", err)
		raw.Close()
		return
	}
	nc.SetDeadline(time.Time{})
	c.seal(under)
	if !alive || !s.track(c) {
		raw.Close()
		return
	}
	c.run()
}

// track counts an open connection; false if the stack is closed.
func (s *Stack) track(c *conn) bool {
	now := time.Now()
	c.watch = connWatch{readAt: now, wrote: now, idleSince: now, asked: now}
	s.mu.Lock()
	open := !s.closed
	if open {
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	c.log.Debug("exchange connection made", "dialed", c.dialed, "open", open)
	return open
}

// forget drops a connection that has ended.
func (s *Stack) forget(c *conn) {
	if c.dialed {
		s.dials.evict(c)
	}
	s.spent.read.Add(c.rd.bytes.Load())
	s.spent.written.Add(c.written.Load())
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

func (s *Stack) adopt(g *Gate) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.gates[g] = struct{}{}
	}
	return !s.closed
}

func (s *Stack) disown(g *Gate) {
	s.mu.Lock()
	delete(s.gates, g)
	s.mu.Unlock()
}

// register makes p known and hands it to those who wait for it.
func (s *Stack) register(p *Partition) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	if s.partitions[p.id] != nil {
		s.mu.Unlock()
		return fmt.Errorf("partition %s exists already", p.id)
	}
	s.partitions[p.id] = p
	views := s.waiting[p.id]
	delete(s.waiting, p.id)
	for _, v := range views {
		v.part.Store(p)
	}
	s.mu.Unlock()
	for _, v := range views {
		p.attach(v)
	}
	return nil
}

func (s *Stack) unregister(p *Partition, f wire.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partitions[p.id] == p {
		delete(s.partitions, p.id)
		s.gone.bury(p.id, f)
	}
}

// request attaches v to its partition, or has it wait for that.
func (s *Stack) request(v *view) {
	s.mu.Lock()
	if v.cancelled {
		s.mu.Unlock()
		return
	}
	if p := s.partitions[v.partition]; p != nil {
		v.part.Store(p)
		s.mu.Unlock()
		p.attach(v)
		return
	}
	if f, ok := s.gone.find(v.partition); ok || s.closed {
		if !ok {
			f = wire.Fault{Code: wire.Gone, Kind: uint8(cluster.Lost), Message: "this agent is closing"}
		}
		s.mu.Unlock()
		v.fail(f)
		return
	}
	v.deadline = time.Now().Add(s.cfg.PartitionRequestTimeout)
	s.waiting[v.partition] = append(s.waiting[v.partition], v)
	s.mu.Unlock()
}

// leave ends v, whether it was attached or waits. lost is nil if its consumer wants no more, else how it was lost.
func (s *Stack) leave(v *view, lost error) {
	s.mu.Lock()
	v.cancelled = true
	if w := s.waiting[v.partition]; len(w) > 0 {
		s.waiting[v.partition] = without(w, v)
		if len(s.waiting[v.partition]) == 0 {
			delete(s.waiting, v.partition)
		}
	}
	s.mu.Unlock()
	if p := v.part.Load(); p != nil {
		p.detach(v, lost)
	}
}

func without(vs []*view, v *view) []*view {
	out := vs[:0]
	for _, o := range vs {
		if o != v {
			out = append(out, o)
		}
	}
	return out
}

// graveyard remembers partitions that were released, so that who asks for one late isn't left waiting.
type graveyard struct {
	faults map[string]wire.Fault
	order  queue[string]
}

const maxGraves = 4096

func (g *graveyard) bury(id string, f wire.Fault) {
	if g.faults == nil {
		g.faults = make(map[string]wire.Fault)
	}
	if _, ok := g.faults[id]; !ok {
		g.order.push(id)
	}
	g.faults[id] = f
	if g.order.len() > maxGraves {
		delete(g.faults, g.order.pop())
	}
}

func (g *graveyard) find(id string) (wire.Fault, bool) {
	f, ok := g.faults[id]
	return f, ok
}
