package netstack

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/testnet"
	"github.com/heddle-stream/heddle/netstack/credit"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// talker is one end of a connection driven frame by frame; a real stack is at the other.
type talker struct {
	t  *testing.T
	nc net.Conn
	rd *frameReader
}

// talk connects a talker with a stack s named "s" on a network of their own.
// The talker dials as a consumer, or, with listen, is what the stack dials at "peer".
func talk(t *testing.T, listen bool, edit func(*Config)) (*Stack, *talker) {
	t.Helper()
	return talkWith(t, listen, 0, edit)
}

// talkWith is talk with a talker that says it has features beside those of its configuration.
func talkWith(t *testing.T, listen bool, features uint32, edit func(*Config)) (*Stack, *talker) {
	t.Helper()
	n := testnet.New()
	config := func(name string) Config {
		return Config{Auth: Auth{Key: testKey}, SegmentBytes: 1024, MemorySegments: 64, ExclusivePerChannel: 2, Identity: name, Listener: n.Listen(name), Dial: n.Dial}
	}
	cfg := config("s")
	if edit != nil {
		edit(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	lender := config("mute")
	lender.Checksum, lender.Compression = cfg.Checksum, cfg.Compression
	mute, err := New(lender) // lends its handshake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	mute.features = features
	tk := &talker{t: t}
	t.Cleanup(func() { tk.nc.Close() })
	if !listen {
		nc, err := n.Dial(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		tk.nc = nc
		c, err := mute.greet(nc, connKey{addr: "s"})
		if err != nil {
			t.Fatal(err)
		}
		tk.rd = c.rd
		return s, tk
	}
	l := n.Listen("peer")
	accepted := make(chan error, 1)
	go func() {
		nc, err := l.Accept()
		if err == nil {
			tk.nc = nc
			var c *conn
			if c, err = mute.welcome(nc); err == nil {
				tk.rd = c.rd
				tk.rd.maxData = 1000
			}
		}
		accepted <- err
	}()
	s.connect(&channel{gate: &Gate{stack: s, closed: true}, key: connKey{addr: "peer"}}) // nobody's: it only makes the connection
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the dial is settled", func() bool {
		s.dials.mu.Lock()
		defer s.dials.mu.Unlock()
		e := s.dials.entries[connKey{addr: "peer"}]
		return e != nil && e.conn != nil
	})
	return s, tk
}

func (tk *talker) send(frames ...[]byte) {
	tk.t.Helper()
	for _, f := range frames {
		if _, err := tk.nc.Write(f); err != nil {
			tk.t.Fatalf("cannot send: %v", err)
		}
	}
}

// want reads one frame and holds it against typ; 0 is any.
func (tk *talker) want(reason string, typ wire.Type) (wire.Header, []byte) {
	tk.t.Helper()
	tk.nc.SetReadDeadline(time.Now().Add(time.Minute))
	h, err := tk.rd.header()
	if err != nil {
		tk.t.Fatalf("%s: %v, want %s frame", reason, err, typ)
	}
	b := make([]byte, h.Length)
	sums, sum := tk.rd.sums, wire.NewSum(h)
	tk.rd.sums = false // here they are checked over the pieces
	defer func() { tk.rd.sums = sums }()
	for i := 0; i < len(b) && err == nil; {
		var p []byte
		p, err = tk.rd.control(wire.Header{Length: uint32(min(len(b)-i, wire.MaxControl))})
		i += copy(b[i:], p)
	}
	if sum.Add(b); sums && err == nil {
		err = sum.Check(h)
	}
	if err != nil || (h.Type != typ && typ != 0) {
		tk.t.Fatalf("%s: got %s frame %q, %v, want %s", reason, h.Type, b, err, typ)
	}
	return h, b
}

// idle checks that nothing comes: the stack answers a frame that it must answer, and nothing before.
func (tk *talker) idle(reason string) {
	tk.t.Helper()
	tk.nc.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if h, err := tk.rd.header(); err == nil {
		tk.t.Fatalf("%s: got %s frame on channel %d, want nothing", reason, h.Type, h.Channel)
	}
}

func frame(h wire.Header, payload string) []byte {
	h.Length = uint32(len(payload))
	return append(wire.AppendHeader(nil, h), payload...)
}

func data(ch, seq uint32, payload string) []byte {
	return frame(wire.Header{Type: wire.Data, Channel: ch, Seq: seq}, payload)
}

// request reads a Request frame and returns the channel's number.
func (tk *talker) request(partition string, credit uint32) uint32 {
	tk.t.Helper()
	h, b := tk.want("request of "+partition, wire.Request)
	r, err := wire.ParseRequest(b)
	if err != nil || r.Partition != partition || r.Credit != credit {
		tk.t.Fatalf("got %+v, %v, want partition %s with credit %d", r, err, partition, credit)
	}
	return h.Channel
}

func gate(t *testing.T, s *Stack, partitions ...string) (*Gate, waker) {
	t.Helper()
	w := newWaker()
	cfg := GateConfig{Wake: w.wake}
	for _, p := range partitions {
		cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: p, Addr: "peer"})
	}
	g, err := s.NewGate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g, w
}

func wantItem(t *testing.T, g *Gate, w waker, channel int, payload string) Item {
	t.Helper()
	it, err := next(g, w)
	got := it.Payload
	if it.Segment == nil {
		got = it.Event
	}
	if err != nil || it.Channel != channel || string(got) != payload {
		t.Fatalf("got %q of channel %d, %v, want %q of channel %d", got, it.Channel, err, payload, channel)
	}
	return it
}

func TestConsumerConversation(t *testing.T) {
	s, tk := talk(t, true, nil)
	g, w := gate(t, s, "a", "b")
	a, b := tk.request("a", 2), tk.request("b", 2)
	tk.send(data(a, 0, "one"), frame(wire.Header{Type: wire.Event, Channel: a, Seq: 1}, "ev"), data(b, 0, "two"))
	eventually(t, "all is received", func() bool { return g.Queued() == 2 })
	it := wantItem(t, g, w, 0, "one")
	two := wantItem(t, g, w, 1, "two")
	wantItem(t, g, w, 0, "ev")
	g.Recycle(it)
	if _, p := tk.want("credit for a recycled segment", wire.Credit); string(p) != string(wire.AppendCredit(nil, []wire.Grant{{Channel: a, Credit: 1}})[wire.HeaderSize:]) {
		t.Errorf("got credit %v", p)
	}
	g.Recycle(two)
	tk.want("credit for the other channel", wire.Credit)

	tk.send(frame(wire.Header{Type: wire.Event, Flags: wire.FlagEnd, Channel: a, Seq: 2}, ""))
	if it, err := next(g, w); err != nil || !it.End || it.Channel != 0 {
		t.Fatalf("got %+v, %v, want the end of channel 0", it, err)
	}
	if h, _ := tk.want("end was taken", wire.Done); h.Channel != a {
		t.Errorf("done for channel %d, want %d", h.Channel, a)
	}
	tk.send(data(a, 3, "late"), frame(wire.Header{Type: 99}, "from the future"), frame(wire.Header{Type: wire.Backlog, Channel: 77}, ""), data(b, 1, "still"))
	wantItem(t, g, w, 1, "still")
	if n := s.Stats().StrayFrames; n != 3 {
		t.Errorf("%d stray frames counted, want 3", n)
	}
	g.Close()
	if h, _ := tk.want("gate closed", wire.Cancel); h.Channel != b {
		t.Errorf("cancel of channel %d, want %d", h.Channel, b)
	}
}

func TestBacklogBringsFloatingSegments(t *testing.T) {
	s, tk := talk(t, true, func(c *Config) { c.FloatingPerGate = 5 })
	g, w := gate(t, s, "a")
	a := tk.request("a", 2)
	tk.send(frame(wire.Header{Type: wire.Data, Channel: a, Backlog: 100}, "x"))
	_, p := tk.want("credit for the backlog", wire.Credit)
	if gr, _, err := wire.ParseGrant(p); err != nil || gr.Credit != 5 {
		t.Errorf("granted %+v, %v, want 5", gr, err)
	}
	g.Recycle(wantItem(t, g, w, 0, "x"))
	tk.idle("one of seven recycled is not worth a frame")
}

// TestFloatingSegmentsGoOn has two channels want the one floating segment there is: they have it in turns, though who has had it could use it again.
func TestFloatingSegmentsGoOn(t *testing.T) {
	s, tk := talk(t, true, func(c *Config) { c.ExclusivePerChannel, c.FloatingPerGate = -1, 1 })
	g, w := gate(t, s, "a", "b")
	ids := []uint32{tk.request("a", 0), tk.request("b", 0)}
	for _, id := range ids {
		tk.send(frame(wire.Header{Type: wire.Backlog, Channel: id, Backlog: 9}, ""))
	}
	var seqs [2]uint32
	for range 12 { // whose channel is granted the segment sends, and has more
		_, p := tk.want("credit", wire.Credit)
		gr, rest, err := wire.ParseGrant(p)
		ch := slices.Index(ids, gr.Channel)
		if err != nil || len(rest) > 0 || ch < 0 || gr.Credit != 1 {
			t.Fatalf("granted %+v and %d bytes more, %v, want one credit", gr, len(rest), err)
		}
		tk.send(frame(wire.Header{Type: wire.Data, Channel: gr.Channel, Seq: seqs[ch], Backlog: 9}, "x"))
		seqs[ch]++
		g.Recycle(wantItem(t, g, w, ch, "x"))
	}
	if seqs[0] < 5 || seqs[1] < 5 {
		t.Errorf("one had it %d times, the other %d", seqs[0], seqs[1])
	}
}

// TestBreachLeavesOthersAlone sends what breaks the protocol on one channel.
func TestBreachLeavesOthersAlone(t *testing.T) {
	for name, bad := range map[string]func(a uint32) [][]byte{
		"gap":            func(a uint32) [][]byte { return [][]byte{data(a, 0, "x"), data(a, 2, "y")} },
		"repeated":       func(a uint32) [][]byte { return [][]byte{data(a, 0, "x"), data(a, 0, "x")} },
		"without credit": func(a uint32) [][]byte { return [][]byte{data(a, 0, "x"), data(a, 1, "y"), data(a, 2, "z")} },
		"after the end": func(a uint32) [][]byte {
			return [][]byte{frame(wire.Header{Type: wire.Event, Channel: a, Flags: wire.FlagEnd}, ""), data(a, 1, "x")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, tk := talk(t, true, nil)
			ga, _ := gate(t, s, "a")
			a := tk.request("a", 2)
			gb, wb := gate(t, s, "b")
			b := tk.request("b", 2)
			tk.send(bad(a)...)
			h, p := tk.want("breach", wire.Error)
			if f, err := wire.ParseError(p); h.Channel != a || err != nil || f.Code != wire.Protocol {
				t.Errorf("got %+v, %v on channel %d", f, err, h.Channel)
			}
			if name != "after the end" {
				_, _, err := ga.Next()
				if e, ok := errors.AsType[*RemoteError](err); !ok || e.Kind != cluster.Corrupt {
					t.Errorf("gate a: got %v", err)
				}
			}
			tk.send(data(b, 0, "fine"))
			gb.Recycle(wantItem(t, gb, wb, 0, "fine"))
			ga.Close()
			gb.Close()
			eventually(t, "all segments are back", func() bool { return s.Stats().SegmentsUsed == 0 })
		})
	}
}

func TestGarbageFailsTheConnection(t *testing.T) {
	for name, bad := range map[string]string{
		"magic":          "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n",
		"length":         string(wire.AppendHeader(nil, wire.Header{Type: wire.Data, Channel: 1, Length: 1 << 31})),
		"second hello":   string(wire.AppendHeader(nil, wire.Header{Type: wire.Hello})),
		"end of frame":   string(wire.AppendHeader(nil, wire.Header{Type: wire.Event, Channel: 1, Length: 50})),
		"end of segment": string(wire.AppendHeader(nil, wire.Header{Type: wire.Data, Channel: 1, Length: 50})) + "abc",
	} {
		t.Run(name, func(t *testing.T) {
			s, tk := talk(t, true, nil)
			g, w := gate(t, s, "a")
			tk.request("a", 2)
			tk.nc.Write([]byte(bad))
			tk.nc.Close()
			_, err := next(g, w)
			if e, ok := errors.AsType[*RemoteError](err); !ok || e.Kind != cluster.Lost || !strings.Contains(e.Peer, "mute@peer") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestProducerConversation(t *testing.T) {
	s, tk := talk(t, false, nil)
	p, err := s.NewPartition(PartitionConfig{ID: "p", Subpartitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	put := func(payload string) {
		t.Helper()
		seg, err := p.Get(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Put(0, seg, copy(seg.Bytes(), payload)); err != nil {
			t.Fatal(err)
		}
	}
	event := func(payload string, opt EventOptions) {
		t.Helper()
		if err := p.Event(0, []byte(payload), opt); err != nil {
			t.Fatal(err)
		}
	}
	wantFrame := func(reason string, typ wire.Type, seq, backlog uint32, payload string) {
		t.Helper()
		h, b := tk.want(reason, typ)
		if h.Channel != 9 || h.Seq != seq || h.Backlog != backlog || string(b) != payload {
			t.Fatalf("%s: got %+v %q, want number %d, backlog %d, %q", reason, h, b, seq, backlog, payload)
		}
	}
	event("first", EventOptions{})
	put("one")
	put("two")
	event("w1", EventOptions{Coalesce: true})
	event("w2", EventOptions{Coalesce: true})
	event("w3", EventOptions{Coalesce: true})
	tk.send(wire.AppendRequest(nil, 9, wire.PartitionRequest{Partition: "p"}))
	wantFrame("an event next in line needs no credit", wire.Event, 0, 2, "first")
	tk.idle("the consumer knows of the backlog: the event told it")
	event("barrier", EventOptions{Priority: true})
	wantFrame("a priority event overtakes data without credit", wire.Event, 1, 2, "barrier")
	tk.send(wire.AppendCredit(nil, []wire.Grant{{Channel: 9, Credit: 2}}))
	wantFrame("credit", wire.Data, 2, 1, "one")
	wantFrame("credit", wire.Data, 3, 0, "two")
	wantFrame("watermarks have coalesced", wire.Event, 4, 0, "w3")
	put("three")
	h, _ := tk.want("data without credit is announced", wire.Backlog)
	if h.Backlog != 1 || h.Channel != 9 {
		t.Errorf("got %+v", h)
	}
	put("four")
	tk.idle("once is enough")
	finished := make(chan error, 1)
	go func() { finished <- p.Finish(t.Context()) }()
	tk.send(wire.AppendCredit(nil, []wire.Grant{{Channel: 9, Credit: 5}}))
	wantFrame("credit", wire.Data, 5, 1, "three")
	wantFrame("credit", wire.Data, 6, 0, "four")
	if h, _ := tk.want("end", wire.Event); h.Flags != wire.FlagEnd || h.Seq != 7 {
		t.Errorf("got %+v", h)
	}
	select {
	case err := <-finished:
		t.Fatalf("finished before the consumer had taken the end: %v", err)
	default:
	}
	tk.send(wire.AppendHeader(nil, wire.Header{Type: wire.Done, Channel: 9}))
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	tk.send(wire.AppendHeader(nil, wire.Header{Type: wire.Cancel, Channel: 9})) // late
	tk.send(wire.AppendCredit(nil, []wire.Grant{{Channel: 9, Credit: 1}}))
	tk.send(wire.AppendRequest(nil, 10, wire.PartitionRequest{Partition: "p", Subpartition: 3}))
	if _, b := tk.want("no such subpartition", wire.Error); !strings.Contains(string(b), "has 1 subpartitions") {
		t.Errorf("got %q", b)
	}
	tk.send(wire.AppendRequest(nil, 11, wire.PartitionRequest{Partition: "p"}))
	if _, b := tk.want("second consumer", wire.Error); !strings.Contains(string(b), "has a consumer already") {
		t.Errorf("got %q", b)
	}
	if n := s.Stats().StrayFrames; n != 2 {
		t.Errorf("%d stray frames counted, want 2", n)
	}
}

func TestProducerSeesCreditOverflow(t *testing.T) {
	s, tk := talk(t, false, nil)
	p, err := s.NewPartition(PartitionConfig{ID: "p", Subpartitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	tk.send(wire.AppendRequest(nil, 1, wire.PartitionRequest{Partition: "p", Credit: 1}))
	tk.send(wire.AppendCredit(nil, []wire.Grant{{Channel: 1, Credit: 1<<32 - 1}}))
	tk.want("overflow", wire.Error)
	err = p.Finish(t.Context())
	if e, ok := errors.AsType[*RemoteError](err); !ok || e.Kind != cluster.Corrupt {
		t.Errorf("got %v", err)
	}
}

// TestProducerRefusesAnOverlargeRequest has a request bring more credit than the protocol allows: it fails, and the partition waits for
// another consumer.
func TestProducerRefusesAnOverlargeRequest(t *testing.T) {
	s, tk := talk(t, false, nil)
	p := mustPartition(t, s, "p", 1)
	tk.send(wire.AppendRequest(nil, 1, wire.PartitionRequest{Partition: "p", Credit: 1<<20 + 1}))
	h, b := tk.want("overlarge request", wire.Error)
	if f, err := wire.ParseError(b); h.Channel != 1 || err != nil || f.Code != wire.Protocol {
		t.Errorf("got %+v, %v for channel %d", f, err, h.Channel)
	}
	tk.send(wire.AppendRequest(nil, 2, wire.PartitionRequest{Partition: "p", Credit: 1 << 20}))
	p.Event(0, []byte("hello"), EventOptions{})
	if h, b := tk.want("event", wire.Event); h.Channel != 2 || string(b) != "hello" {
		t.Errorf("got %q on channel %d", b, h.Channel)
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

// TestBreachBeforeTheRequest has a peer send on a channel that is not quite connected: that fails the channel, and nothing else.
func TestBreachBeforeTheRequest(t *testing.T) {
	dialing := make(chan struct{})
	s := start(t, func(c *Config) {
		c.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
			close(dialing)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	g, w := open(t, s, "p", "peer", 0)
	<-dialing
	g.breach(&g.channels[0], credit.ErrNoCredit)
	_, err := next(g, w)
	wantRemote(t, "data before the request", err, cluster.Corrupt)
}
