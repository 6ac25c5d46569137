package netstack

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/testnet"
	"github.com/heddle-stream/heddle/netstack/wire"
)

var (
	machineSteps = flag.Int("machine.steps", 250_000, "steps of the protocol machine under random interleavings")
	machineSeed  = flag.Uint64("machine.seed", 1, "seed of the interleavings")
)

// TestMachine drives the protocol step by step on one goroutine, in random order, over connections that are byte queues:
// producers put, each end of each connection gathers a batch, writes it or reads one frame, consumers take, hold and
// recycle, and now and then something is cancelled, fails or loses its connection. A plain model of what each channel
// must bring is held against what comes, and the invariants against the machine's state.
func TestMachine(t *testing.T) {
	shapes := []Config{
		{ExclusivePerChannel: 2, FloatingPerGate: 4, MaxPerChannel: 6, MaxPerSubpartition: 4},
		{ExclusivePerChannel: -1, FloatingPerGate: 1, MaxPerChannel: 1, MaxPerSubpartition: 1},
		{ExclusivePerChannel: -1, FloatingPerGate: 5, MaxPerChannel: 3, MaxPerSubpartition: 8},
		{ExclusivePerChannel: 1, FloatingPerGate: -1, MaxPerSubpartition: 2},
		{ExclusivePerChannel: 3, FloatingPerGate: 20, MaxConnections: 2, Compression: "lz4", Checksum: true},
	}
	for i, cfg := range shapes {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := newMachine(t, cfg, *machineSeed+uint64(i)<<32)
			for m.step = 0; m.step < *machineSteps/len(shapes); m.step++ {
				m.any()
				if m.step%16 == 0 {
					m.check()
				}
			}
			m.drain()
		})
	}
}

// machine is the state of one run.
type machine struct {
	t      *testing.T
	rnd    *rand.Rand
	cfg    Config
	a, b   *Stack // producers are at a; consumers at b, and some at a
	links  []*link
	groups []*group
	made   int
	step   int
	got    int // items taken
	faults int
}

func newMachine(t *testing.T, cfg Config, seed uint64) *machine {
	m := &machine{t: t, rnd: rand.New(rand.NewPCG(seed, 7))}
	cfg.Auth, cfg.SegmentBytes, cfg.MemorySegments = Auth{Key: testKey}, 1024, 300
	cfg.PartitionRequestTimeout, cfg.KeepaliveInterval, cfg.KeepaliveTimeout, cfg.IdleTimeout = time.Hour, time.Hour, 2*time.Hour, time.Hour
	n := testnet.New()
	for _, name := range []string{"a", "b"} {
		cfg.Listener, cfg.Dial, cfg.Identity = n.Listen(name), n.Dial, name
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if m.a == nil {
			m.a = s
		} else {
			m.b = s
		}
	}
	m.cfg = m.a.cfg
	m.a.admitMost, m.a.admitFew = 500, 200
	for i := range m.cfg.MaxConnections {
		m.connect(uint32(i))
	}
	return m
}

// connect makes a connection, as if its handshake were done.
func (m *machine) connect(index uint32) {
	l := &link{index: index}
	c, p := &end{rnd: m.rnd}, &end{rnd: m.rnd}
	c.peer, p.peer = p, c
	l.ends = [2]*end{c, p}
	c.conn = newConn(m.b, c, &frameReader{nc: c, maxData: 1024}, true, "a")
	p.conn = newConn(m.a, p, &frameReader{nc: p, maxData: 1024}, false, "b")
	c.conn.key = connKey{m.a.Addr(), index}
	p.conn.compress = m.cfg.Compression
	c.conn.traces, p.conn.traces = true, true
	p.conn.try = p
	for _, e := range l.ends {
		e.conn.rd.sums, e.conn.out.sums = m.cfg.Checksum, m.cfg.Checksum
	}
	m.b.dials.mu.Lock()
	m.b.dials.entries[c.conn.key] = &dialEntry{conn: c.conn}
	m.b.dials.mu.Unlock()
	m.links = append(m.links, l)
}

func (m *machine) open() {
	g := &group{}
	m.made++
	producers, consumers := 1+m.rnd.IntN(3), 1+m.rnd.IntN(3)
	late := m.rnd.IntN(2) == 0 // consumers first
	if !late {
		m.openParts(g, producers, consumers)
	}
	for sub := range consumers {
		mg := &modelGate{stack: m.b, sub: sub, chans: make([]modelChannel, producers)}
		if m.rnd.IntN(4) == 0 {
			mg.stack = m.a
		}
		cfg := GateConfig{Wake: func() { mg.woken = true }}
		for i := range producers {
			cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: fmt.Sprint(m.made, "-", i), Subpartition: sub, Addr: m.a.Addr(), ConnIndex: m.rnd.Uint32()})
		}
		gate, err := mg.stack.NewGate(cfg)
		if err != nil {
			m.t.Fatal(err)
		}
		mg.g = gate
		g.gates = append(g.gates, mg)
	}
	if late {
		m.openParts(g, producers, consumers)
	}
	m.groups = append(m.groups, g)
}

func (m *machine) openParts(g *group, producers, consumers int) {
	for i := range producers {
		mp := &modelPart{denied: map[int]bool{}}
		p, err := m.a.NewPartition(PartitionConfig{ID: fmt.Sprint(m.made, "-", i), Subpartitions: consumers, Wake: func() { mp.woken = true }})
		if err != nil {
			m.t.Fatal(err)
		}
		mp.p = p
		g.parts = append(g.parts, mp)
	}
}

// any makes one random step.
func (m *machine) any() {
	if len(m.groups) == 0 || (len(m.groups) < 3 && m.rnd.IntN(500) == 0) {
		m.open()
	}
	g := m.groups[m.rnd.IntN(len(m.groups))]
	if (g.bad || g.ended) && m.rnd.IntN(20) == 0 {
		m.finish(g)
		return
	}
	switch k := m.rnd.IntN(1000); {
	case k < 250:
		m.produce(g)
	case k < 500:
		l := m.links[m.rnd.IntN(len(m.links))]
		m.write(l, l.ends[m.rnd.IntN(2)])
	case k < 720:
		l := m.links[m.rnd.IntN(len(m.links))]
		m.read(l, l.ends[m.rnd.IntN(2)])
	case k < 880:
		m.take(g, g.gates[m.rnd.IntN(len(g.gates))])
	case k < 885:
		mg := g.gates[m.rnd.IntN(len(g.gates))]
		i := m.rnd.IntN(len(mg.chans))
		m.block(mg, i, !mg.chans[i].blocked)
	case k < 996:
		m.recycle(g.gates[m.rnd.IntN(len(g.gates))])
	case k < 999:
		if g.ended || m.rnd.IntN(20) == 0 {
			m.finish(g)
		}
	default:
		if m.rnd.IntN(20) == 0 {
			m.fault(g)
		}
	}
}

func (m *machine) produce(g *group) {
	for _, l := range m.links { // by chance, not by the clock
		l.ends[1].conn.wroteDirect = time.Hour * time.Duration(m.rnd.IntN(3)-1)
	}
	i, sub := m.rnd.IntN(len(g.parts)), m.rnd.IntN(len(g.gates))
	mp := g.parts[i]
	mc := &g.gates[sub].chans[i]
	n := uint32(m.rnd.Uint32())
	payload := binary.LittleEndian.AppendUint32(nil, n)
	if g.ended {
		return
	}
	event := func(kind byte, opt EventOptions) bool {
		err := mp.p.Event(sub, append([]byte{kind}, payload...), opt)
		if err != nil && !g.bad {
			m.t.Fatalf("step %d: event: %v", m.step, err)
		}
		return err == nil
	}
	switch m.rnd.IntN(8) {
	case 0:
		if event('e', EventOptions{}) {
			mc.add(modelItem{'e', n})
		}
	case 1:
		if event('w', EventOptions{Coalesce: true}) {
			mc.add(modelItem{'w', n})
		}
	case 2:
		if m.rnd.IntN(10) == 0 {
			passed, err := mp.p.Overtake(sub, append([]byte{'p'}, payload...))
			if err == nil {
				mc.priority = append(mc.priority, modelPriority{n, mc.added, m.readOut(passed)})
			} else if !g.bad {
				m.t.Fatalf("step %d: overtake: %v", m.step, err)
			}
		}
	default:
		if mp.woken {
			clear(mp.denied)
		}
		mp.woken = false
		seg := mp.p.TryGet(sub)
		if seg == nil {
			if mp.p.Err() == nil {
				mp.denied[sub] = true
			} else if !g.bad {
				m.t.Fatalf("step %d: partition failed: %v", m.step, mp.p.Err())
			}
			return
		}
		delete(mp.denied, sub)
		b := append(seg.Bytes()[:0], payload...)
		for j := range m.rnd.IntN(200) {
			b = append(b, pattern(n, j))
		}
		if err := mp.p.PutNoted(sub, seg, len(b), noteOf(n)); err == nil {
			mc.add(modelItem{'d', n})
		} else if !g.bad {
			m.t.Fatalf("step %d: put: %v", m.step, err)
		}
	}
}

// noteOf is the note of payload n: every eighth has one.
func noteOf(n uint32) []byte {
	if n%8 != 0 {
		return nil
	}
	return binary.LittleEndian.AppendUint32(nil, n)
}

// checkHop holds what the note of payload n brought against what it must.
func (m *machine) checkHop(n uint32, h *Hop) {
	note := noteOf(n)
	if h == nil || note == nil {
		if (h == nil) != (note == nil) {
			m.t.Fatalf("step %d: payload %d has note %v, came with %+v", m.step, n, note, h)
		}
		return
	}
	if string(h.Note) != string(note) {
		m.t.Fatalf("step %d: payload %d came with note %v, want %v", m.step, n, h.Note, note)
	}
	if at := []time.Time{h.Put, h.Credited, h.Written, h.Received, h.Taken}; !slices.IsSortedFunc(at, time.Time.Compare) {
		m.t.Fatalf("step %d: the times of payload %d go back: %v", m.step, n, at)
	}
}

// pattern is the j-th byte of a payload. Every second payload can be compressed.
func pattern(n uint32, j int) byte {
	if n%2 == 0 {
		return byte(n)
	}
	return byte(n) + byte(j*j)
}

// write gathers a batch at e, or writes the one that was gathered.
func (m *machine) write(l *link, e *end) {
	if l.dead {
		return
	}
	if e.loaded {
		e.loaded = false
		if err := e.conn.send(&e.conn.out); err != nil {
			m.t.Fatalf("step %d: write: %v", m.step, err)
		}
		return
	}
	select {
	case <-e.conn.wake:
		e.asleep = false
	default:
	}
	if e.asleep {
		return
	}
	_, e.loaded = e.conn.gather(&e.conn.out)
	e.asleep = !e.loaded
}

// read has e read one frame, if there is a whole one.
func (m *machine) read(l *link, e *end) {
	if l.dead || len(e.frames) == 0 {
		return
	}
	e.frames = e.frames[1:]
	step := e.conn.stepProducer
	if e.conn.dialed {
		step = e.conn.stepConsumer
	}
	if err := step(); err != nil {
		m.t.Fatalf("step %d: read: %v", m.step, err)
	}
}

func (m *machine) take(g *group, mg *modelGate) {
	if mg.closed || (mg.asleep && !mg.woken) {
		return
	}
	mg.woken, mg.asleep = false, false
	it, ok, err := mg.g.Next()
	switch {
	case err != nil && g.bad:
		m.closeGate(mg)
		return
	case err != nil:
		m.t.Fatalf("step %d: gate: %v", m.step, err)
	case !ok:
		mg.asleep = true
		return
	}
	m.got++
	mc := &mg.chans[it.Channel]
	if mc.ended {
		m.t.Fatalf("step %d: item after the end", m.step)
	}
	got := modelItem{'z', 0}
	switch {
	case it.End:
	case it.Segment != nil:
		got = modelItem{'d', binary.LittleEndian.Uint32(it.Payload)}
		for j, c := range it.Payload[4:] {
			if c != pattern(got.n, j) {
				m.t.Fatalf("step %d: payload is corrupt", m.step)
			}
		}
		m.checkHop(got.n, it.Hop)
		mg.held = append(mg.held, it)
	default:
		got = modelItem{it.Event[0], binary.LittleEndian.Uint32(it.Event[1:])}
	}
	if got.kind == 'p' {
		if len(mc.priority) == 0 || mc.priority[0].n != got.n {
			m.t.Fatalf("step %d: priority event %d, want %v", m.step, got.n, mc.priority)
		}
		pr := mc.priority[0]
		var want []modelItem // what was sent before the event and not taken yet
		for _, it := range mc.due[:max(0, pr.before-(mc.added-len(mc.due)))] {
			if it.kind != 'w' {
				want = append(want, it)
			}
		}
		if passed := append(m.readOut(mg.g.Overtaken(it)), pr.passed...); !g.bad && !slices.Equal(passed, want) {
			m.t.Fatalf("step %d: the event has overtaken %v, read out %v", m.step, want, passed)
		}
		mc.priority = mc.priority[1:]
		return
	}
	if mc.blocked {
		m.t.Fatalf("step %d: %c came from a blocked channel", m.step, got.kind)
	}
	for got.kind == 'w' && len(mc.due) > 1 && mc.due[0] != got && mc.due[0].kind == 'w' && mc.due[1].kind == 'w' {
		mc.due = mc.due[1:] // replaced by the next
	}
	if len(mc.due) == 0 || mc.due[0] != got {
		m.t.Fatalf("step %d: got %c %d, want %v", m.step, got.kind, got.n, mc.due[:min(3, len(mc.due))])
	}
	mc.due = mc.due[1:]
	if got.kind == 'z' {
		if len(mc.due)+len(mc.priority) > 0 {
			m.t.Fatalf("step %d: ended with %d items due", m.step, len(mc.due)+len(mc.priority))
		}
		mc.ended = true
		if mg.done++; mg.done == len(mg.chans) {
			for len(mg.held) > 0 {
				m.recycle(mg)
			}
			m.closeGate(mg)
		}
	}
}

func (m *machine) recycle(mg *modelGate) {
	if len(mg.held) == 0 {
		return
	}
	i := m.rnd.IntN(len(mg.held))
	mg.g.Recycle(mg.held[i])
	mg.held = append(mg.held[:i], mg.held[i+1:]...)
}

func (m *machine) closeGate(mg *modelGate) {
	if mg.closed {
		return
	}
	mg.closed = true
	mg.g.Close()
	for len(mg.held) > 0 { // late, as a task may
		m.recycle(mg)
	}
}

// readOut names what was overtaken, but for watermarks, and releases it.
func (m *machine) readOut(passed []Overtaken) (items []modelItem) {
	for i := range passed {
		o := &passed[i]
		if !o.IsEvent() {
			b, err := o.Append(nil)
			if err != nil {
				m.t.Fatal(err)
			}
			items = append(items, modelItem{'d', binary.LittleEndian.Uint32(b)})
		} else if o.Event[0] == 'e' {
			items = append(items, modelItem{'e', binary.LittleEndian.Uint32(o.Event[1:])})
		}
		o.Release()
	}
	return items
}

// block blocks a channel, or resumes it.
func (m *machine) block(mg *modelGate, channel int, on bool) {
	if mg.chans[channel].blocked = on; on {
		mg.g.Block(channel)
	} else {
		mg.g.Resume(channel)
	}
}

// finish ends a group's partitions, and forgets the group once its consumers have taken all.
func (m *machine) finish(g *group) {
	if !g.ended {
		g.ended = true
		for i, mp := range g.parts {
			for sub, mg := range g.gates {
				if err := mp.p.event(sub, nil, wire.FlagEnd); err != nil && !g.bad {
					m.t.Fatalf("step %d: end: %v", m.step, err)
				}
				mg.chans[i].add(modelItem{'z', 0})
			}
		}
	}
	for _, mg := range g.gates {
		if !mg.closed {
			return
		}
	}
	for _, mp := range g.parts {
		mp.p.mu.Lock()
		left := mp.p.remaining
		mp.p.mu.Unlock()
		if left > 0 && !g.bad {
			return // Done is on its way
		}
	}
	for _, mp := range g.parts {
		mp.p.Release()
	}
	for i := range m.groups {
		if m.groups[i] == g {
			m.groups = append(m.groups[:i], m.groups[i+1:]...)
			break
		}
	}
}

// fault makes something go wrong.
func (m *machine) fault(g *group) {
	m.faults++
	switch m.rnd.IntN(4) {
	case 0:
		g.bad = true
		m.closeGate(g.gates[m.rnd.IntN(len(g.gates))])
	case 1:
		g.bad = true
		g.parts[m.rnd.IntN(len(g.parts))].p.Fail(io.ErrNoProgress)
	case 2:
		g.bad = true
		g.parts[m.rnd.IntN(len(g.parts))].p.Release()
	case 3:
		l := m.links[m.rnd.IntN(len(m.links))]
		for _, g := range m.groups {
			g.bad = true
		}
		m.cut(l)
		m.connect(l.index)
	}
}

func (m *machine) cut(l *link) {
	l.dead = true
	for _, e := range l.ends {
		e.closed = true
		e.conn.send(&e.conn.out) // fails, and gives its segments back
		e.conn.fail(io.ErrUnexpectedEOF)
	}
	for i := range m.links {
		if m.links[i] == l {
			m.links = append(m.links[:i], m.links[i+1:]...)
			break
		}
	}
}

// drain produces no more and has everything come to its end: nothing may stall, and everything must come back.
func (m *machine) drain() {
	for _, g := range m.groups {
		for _, mg := range g.gates {
			for i := range mg.chans {
				m.block(mg, i, false)
			}
		}
	}
	for round := 0; len(m.groups) > 0; round++ {
		if round > 100_000 {
			for _, g := range m.groups {
				for _, mg := range g.gates {
					m.t.Logf("gate of %d channels, %d ended, closed=%v, asleep=%v, woken=%v", len(mg.chans), mg.done, mg.closed, mg.asleep, mg.woken)
				}
			}
			m.t.Fatal("stalled")
		}
		for _, g := range append([]*group(nil), m.groups...) {
			m.finish(g)
			for _, mg := range g.gates {
				m.take(g, mg)
				m.recycle(mg)
				if g.bad {
					m.closeGate(mg)
				}
			}
		}
		for _, l := range m.links {
			for _, e := range l.ends {
				m.write(l, e)
				m.read(l, e)
			}
		}
		if round%16 == 0 {
			m.check()
		}
	}
	for len(m.links) > 0 {
		m.cut(m.links[0])
	}
	for _, s := range []*Stack{m.a, m.b} {
		if st := s.Stats(); st.SegmentsUsed != 0 || st.SegmentsReserved != 0 || st.SegmentsFloating != 0 || st.Waiting != 0 || st.Gates != 0 || st.Partitions != 0 {
			m.t.Errorf("at the end: %+v", st)
		}
	}
	m.t.Logf("%d items taken, %d groups, %d faults", m.got, m.made, m.faults)
}
