package nettest

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/netstack"
)

// The program is the test itself, run again in a namespace with roleEnv set.
const roleEnv = "HEDDLE_NETTEST_ROLE"

// port is where producers listen, each in a namespace of its own.
const port = "7000"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := serve(role, os.Stdin, json.NewEncoder(os.Stdout)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// setting is the first line that an agent reads.
type setting struct {
	Keepalive, Timeout time.Duration
	Channels           int
	Compression        string
	Checksum           bool
	Ahead              time.Duration // of the agent's clock
	TLS                *keyPair      // nil: without
}

// order is each further line.
type order struct {
	Do       string // run, half-close, reset
	ID       string
	Segments int           // of each channel; 0: no end
	Pause    time.Duration // of the producer before each segment, but the first
	Follow   bool          // each segment is short and has a note
}

// outcome is what an agent answers to run, and, with only Began set, once it has moved the first segments.
type outcome struct {
	Began      bool
	Segments   int
	Err        string
	Remote     bool // the error is a RemoteError
	Kind       string
	Used       int // segments that are not back after all was closed
	Conns      int // connections after the fault
	Goroutines int // before the stack, and after all was closed
	Files      int

	// Of the segments that were followed: their way's phases, and the offset of the clocks that the last told.
	Hops          int
	Credit, Wire  time.Duration // the middle ones
	Least         time.Duration // of any phase
	Ahead, Within time.Duration
}

// agentState is an agent's process.
type agentState struct {
	role  string
	set   setting
	stack *netstack.Stack
	out   *json.Encoder

	mu    sync.Mutex // guards conns and cancel
	conns []*net.TCPConn
}

func serve(role string, in io.Reader, out *json.Encoder) error {
	lines := json.NewDecoder(bufio.NewReader(in))
	a := &agentState{role: role, out: out}
	if err := lines.Decode(&a.set); err != nil {
		return err
	}
	if warm, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		warm.Close() // the runtime's poller now has its descriptors
	}
	goroutines, files := runtime.NumGoroutine(), openFiles()
	cfg := netstack.Config{
		Identity: role, Auth: netstack.Auth{Key: []byte("0123456789abcdef0123456789abcdef")}, SegmentBytes: 32 << 10, MemorySegments: 256,
		KeepaliveInterval: a.set.Keepalive, KeepaliveTimeout: a.set.Timeout, ConnectTimeout: 20 * time.Second, HandshakeTimeout: 20 * time.Second,
		Compression: a.set.Compression, Checksum: a.set.Checksum,
		Clock: func() time.Time { return time.Now().Add(a.set.Ahead) },
	}
	if a.set.TLS != nil {
		var err error
		if cfg.TLS, err = a.set.TLS.config(); err != nil {
			return err
		}
	}
	if role == "producer" {
		l, err := net.Listen("tcp", net.JoinHostPort(addrA, port))
		if err != nil {
			return err
		}
		cfg.Listener = listener{l, a}
	} else {
		cfg.Listen = addrB + ":0"
		cfg.Dial = a.dial
	}
	stack, err := netstack.New(cfg)
	if err != nil {
		return err
	}
	a.stack = stack
	var runs sync.WaitGroup
	for {
		var o order
		if err := lines.Decode(&o); err != nil {
			break
		}
		switch o.Do {
		case "run":
			runs.Go(func() { a.report(a.run(o)) })
		case "half-close":
			a.each((*net.TCPConn).CloseWrite)
		case "reset":
			a.each(func(c *net.TCPConn) error { c.SetLinger(0); return c.Close() })
		}
	}
	runs.Wait()
	stack.Close()
	last := outcome{Used: stack.Stats().SegmentsUsed}
	for range 100 { // what the runtime has to tidy up
		if last.Goroutines, last.Files = runtime.NumGoroutine()-goroutines, openFiles()-files; last.Goroutines <= 0 && last.Files <= 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	a.report(last)
	return nil
}

func openFiles() int {
	fds, _ := os.ReadDir("/proc/self/fd")
	return len(fds)
}

func (a *agentState) report(o outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out.Encode(o)
}

func (a *agentState) keep(nc net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns = append(a.conns, nc.(*net.TCPConn))
}

func (a *agentState) each(do func(*net.TCPConn) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		do(c)
	}
	a.conns = nil
}

func (a *agentState) dial(ctx context.Context, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil {
		a.keep(nc)
	}
	return nc, err
}

type listener struct {
	net.Listener
	a *agentState
}

func (l listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		l.a.keep(nc)
	}
	return nc, err
}

// run moves segments once, to the end or to a fault.
func (a *agentState) run(o order) (res outcome) {
	var err error
	if a.role == "producer" {
		res.Segments, err = a.produce(o)
	} else {
		res.Segments, err = a.consume(o, &res)
	}
	if err != nil {
		res.Err = err.Error()
		if e, ok := errors.AsType[*netstack.RemoteError](err); ok {
			res.Remote, res.Kind = true, e.Kind.String()
		}
	}
	for range 200 { // late segments come back with their batch
		st := a.stack.Stats()
		if res.Used, res.Conns = st.SegmentsUsed, st.Connections; res.Used == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return res
}

func (a *agentState) produce(o order) (n int, err error) {
	p, err := a.stack.NewPartition(netstack.PartitionConfig{ID: o.ID, Subpartitions: a.set.Channels})
	if err != nil {
		return 0, err
	}
	defer p.Release()
	for seq := 0; o.Segments == 0 || seq < o.Segments; seq++ {
		for until := time.Now().Add(o.Pause); seq > 3 && time.Now().Before(until) && p.Err() == nil; {
			time.Sleep(5 * time.Millisecond)
		}
		for sub := range a.set.Channels {
			seg, err := p.Get(context.Background(), sub)
			if err != nil {
				return n, err
			}
			b := seg.Bytes()
			var note []byte
			if o.Follow {
				b, note = b[:1024], []byte("followed") // one packet: a new connection's window holds but a few
			}
			fill(b, sub, seq)
			if err := p.PutNoted(sub, seg, len(b), note); err != nil {
				return n, err
			}
			n++
		}
		if seq == 3 {
			a.report(outcome{Began: true})
		}
	}
	return n, p.Finish(context.Background())
}

func (a *agentState) consume(o order, res *outcome) (n int, err error) {
	var seen []*netstack.Hop
	defer func() { res.tell(seen) }()
	wake := make(chan struct{}, 1)
	cfg := netstack.GateConfig{Wake: func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}}
	for sub := range a.set.Channels {
		cfg.Channels = append(cfg.Channels, netstack.ChannelConfig{Partition: o.ID, Subpartition: sub, Addr: net.JoinHostPort(addrA, port)})
	}
	g, err := a.stack.NewGate(cfg)
	if err != nil {
		return 0, err
	}
	defer g.Close()
	seqs := make([]int, a.set.Channels)
	for left := a.set.Channels; left > 0; {
		it, ok, err := g.Next()
		switch {
		case err != nil:
			return n, err
		case !ok:
			<-wake
		case it.End:
			if seqs[it.Channel] != o.Segments {
				return n, fmt.Errorf("channel %d ended after %d segments", it.Channel, seqs[it.Channel])
			}
			left--
		case it.Segment != nil:
			if it.Hop != nil {
				seen = append(seen, it.Hop)
			}
			if err := verify(it.Payload, it.Channel, seqs[it.Channel]); err != nil {
				return n, err
			}
			seqs[it.Channel]++
			if n++; n == 3 {
				a.report(outcome{Began: true})
			}
			g.Recycle(it)
		}
	}
	return n, nil
}

// tell enters what hops tell.
func (o *outcome) tell(hops []*netstack.Hop) {
	if o.Hops = len(hops); o.Hops == 0 {
		return
	}
	var credit, wire []time.Duration
	for _, h := range hops {
		credit, wire = append(credit, h.Credited.Sub(h.Put)), append(wire, h.Received.Sub(h.Written))
		o.Least = min(o.Least, h.Credited.Sub(h.Put), h.Written.Sub(h.Credited), h.Received.Sub(h.Written), h.Taken.Sub(h.Received))
		o.Ahead, o.Within = h.Clock.Ahead, h.Clock.Within
	}
	slices.Sort(credit)
	slices.Sort(wire)
	o.Credit, o.Wire = credit[len(credit)/2], wire[len(wire)/2]
}

// fill writes a checksummed payload that names sub and seq. Half of it can be compressed.
func fill(b []byte, sub, seq int) {
	binary.LittleEndian.PutUint32(b, uint32(sub))
	binary.LittleEndian.PutUint32(b[4:], uint32(seq))
	x := uint32(sub*7919 + seq)
	for i := 12; i < len(b); i++ {
		if i > len(b)/2 {
			x = x*1664525 + 1013904223
		}
		b[i] = byte(x >> 24)
	}
	binary.LittleEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[12:]))
}

func verify(b []byte, sub, seq int) error {
	if s, q := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:])); s != sub || q != seq {
		return fmt.Errorf("corrupt: segment %d of channel %d came as %d of %d", q, s, seq, sub)
	}
	if binary.LittleEndian.Uint32(b[8:]) != crc32.ChecksumIEEE(b[12:]) {
		return fmt.Errorf("corrupt: segment %d of channel %d", seq, sub)
	}
	return nil
}

// agent is an agent's process as the test sees it.
type agent struct {
	t    *testing.T
	role string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  chan outcome
	log  strings.Builder
}

// start starts an agent on a host of w.
func (w *world) start(role string, set setting) *agent {
	w.t.Helper()
	h := w.hosts[0]
	if role == "consumer" {
		h = w.hosts[1]
	}
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	a := &agent{t: w.t, role: role, cmd: exec.Command("ip", "netns", "exec", h.ns, exe), out: make(chan outcome, 100)}
	a.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	a.cmd.Stderr = &a.log
	in, err := a.cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	a.in = in
	read := make(chan struct{})
	go func() {
		defer close(read)
		for d := json.NewDecoder(out); ; {
			var o outcome
			if d.Decode(&o) != nil {
				close(a.out)
				return
			}
			a.out <- o
		}
	}()
	w.t.Cleanup(func() {
		a.cmd.Process.Kill() // ip has become the agent
		<-read
		a.cmd.Wait()
	})
	a.tell(set)
	return a
}

func (a *agent) tell(v any) {
	a.t.Helper()
	if err := json.NewEncoder(a.in).Encode(v); err != nil {
		a.t.Fatalf("cannot tell the %s: %v\n%s", a.role, err, a.log.String())
	}
}

// hear waits for the next outcome.
func (a *agent) hear(within time.Duration) outcome {
	a.t.Helper()
	select {
	case o, ok := <-a.out:
		if !ok {
			a.t.Fatalf("the %s is gone:\n%s", a.role, a.log.String())
		}
		return o
	case <-time.After(within):
		a.t.Fatalf("the %s says nothing for %v\n%s", a.role, within, a.log.String())
	}
	return outcome{}
}

// stop ends the agent and checks that nothing is left.
func (a *agent) stop() {
	a.t.Helper()
	a.in.Close()
	if o := a.hear(20 * time.Second); o.Used != 0 || o.Goroutines > 0 || o.Files > 0 {
		a.t.Errorf("the %s leaves %+v", a.role, o)
	}
}
