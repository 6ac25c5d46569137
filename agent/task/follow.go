package task

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry"
	"github.com/heddle-stream/heddle/netstack"
)

// Follow says which records are followed through the tasks, to be seen in traces and to time the exchange.
type Follow struct {
	Provider *telemetry.Provider // of the process; nil: records are only timed
	Rate     float64             // records a second that each subtask of a source chooses; 0: none
	Ratio    float64             // beside those, the share of all records
	MaxRate  float64             // most records a second that are followed by Ratio, or since they came with a sampled trace; 0: 1,000
}

// on reports whether there is anything to follow.
func (f *Follow) on() bool { return f.Rate > 0 || f.Ratio > 0 || f.Provider.Traces() }

var phaseSpans = [telemetry.Phases]string{"fill segment", "wait for credit", "send queue", "write and wire", "receive queue", "alignment"}

// follower is what a task does about records that are followed. The task's goroutine owns it, but for the histograms.
type follower struct {
	// Immutable.
	task   *Task
	cfg    Follow
	tracer *flow.Tracer
	attrs  telemetry.Fixed // of the task's spans
	chain  telemetry.Fixed // of the spans of the chain
	phases telemetry.Parts // of the spans of phases

	polls   map[poll]telemetry.Fixed // of the spans of a source's polls
	polled  poll                     // that came last, whose is
	asPoll  telemetry.Fixed
	read    []flow.TraceAttr // of the poll whose span is being recorded
	next    float64          // when the next record of a source is due, in milliseconds
	skip    int              // records that come before the next of the share that is followed
	admit   float64          // records that may yet be followed because they came so, or were drawn
	admitAt time.Time

	trail  *telemetry.Trail // while a record is followed: the span of the chain is being recorded
	logged sharedContext    // that span, for those who log

	deliveries deliveries // that are under way

	in      *input // whose segment is being read, if it has marks
	hop     *netstack.Hop
	shift   time.Duration // from the hop's clock to the task's
	channel int
	size    int
	marks   []mark
	indexes []int
}

// poll is what of a poll's span is the same again and again.
type poll struct{ topic, split string } // topic is "" if the source is not Kafka

// maxPolls bounds follower.polls.
const maxPolls = 1000

// mark is a followed record in a segment, as the segment's note tells.
type mark struct {
	context flow.TraceContext
	index   int
	filled  time.Duration // from when it was written to when the segment was put
	written time.Time     // at the producer's only
}

func newFollower(t *Task, cfg Follow) *follower {
	f := &follower{task: t, cfg: cfg}
	if f.cfg.MaxRate == 0 {
		f.cfg.MaxRate = 1000
	}
	f.admit, f.skip = f.cfg.MaxRate, passed(f.cfg.Ratio)
	f.tracer = flow.NewTracer(f)
	// Job, application and agent are the process's: see the resource.
	f.attrs = telemetry.Fix(f.taskAttrs()...)
	f.trail = cfg.Provider.Trail()
	f.chain = telemetry.FixSpan(t.vertex.Name, telemetry.Internal, f.taskAttrs()...)
	for p, name := range telemetry.PhaseNames {
		f.phases[p] = telemetry.FixSpan(phaseSpans[p], telemetry.Internal, telemetry.A("heddle.phase", name))
	}
	return f
}

func (f *follower) taskAttrs() []flow.TraceAttr {
	t := f.task
	return []flow.TraceAttr{
		telemetry.A("heddle.vertex", t.vertex.Name), telemetry.A("heddle.vertex.id", t.spec.ID.Vertex),
		telemetry.A("heddle.subtask", t.spec.ID.Subtask), telemetry.A("heddle.attempt", t.spec.ID.Attempt),
	}
}

func (f *follower) now() time.Time { return f.task.env.Clock() }

// Due implements flow.Follower.
func (f *follower) Due(n int, now int64) (index int, ok bool, again int64) {
	if n < 1 {
		return 0, false, flow.MinTime
	}
	ms, gap := float64(now), 1000/f.cfg.Rate
	if ms < f.next-gap-1 { // the clock was set back
		f.next = ms
	}
	if f.cfg.Rate > 0 && ms >= f.next {
		f.next = max(f.next, ms-1) + gap // the clock is no finer than a millisecond
		index, ok = rand.IntN(n), true
	}
	switch {
	case f.cfg.Ratio > 0:
		again = flow.MinTime
	case f.cfg.Rate > 0:
		again = int64(math.Ceil(f.next))
	default:
		again = flow.MaxTime
	}
	return index, ok, again
}

// Drawn implements flow.Follower.
func (f *follower) Drawn(n int) (index int, ok bool) {
	switch {
	case f.cfg.Ratio <= 0:
		return 0, false
	case f.skip >= n:
		f.skip -= n
		return 0, false
	}
	index = f.skip
	f.skip = passed(f.cfg.Ratio)
	return index, true
}

// passed is how many records are passed over before the next of which each is drawn with a probability.
func passed(ratio float64) int {
	if ratio >= 1 {
		return 0
	}
	return int(min(math.Log(1-rand.Float64())/math.Log1p(-ratio), math.MaxInt32))
}

// Admit implements flow.Follower.
func (f *follower) Admit() bool {
	now := f.now()
	f.admit = min(f.cfg.MaxRate, f.admit+max(0, now.Sub(f.admitAt).Seconds())*f.cfg.MaxRate)
	f.admitAt = now
	if f.admit < 1 {
		return false
	}
	f.admit--
	return true
}

// Recording implements flow.Follower.
func (f *follower) Recording() bool { return f.cfg.Provider.Traces() }

// begin begins the span of the chain and returns what names it to those after it.
func (f *follower) begin(st *telemetry.Start) flow.TraceContext {
	c := f.trail.Begin(st)
	if f.trail.Recording() {
		f.logged.store(&c)
	}
	return c
}

// Read implements flow.Follower.
func (f *follower) Read(a flow.Arrival) flow.TraceContext {
	if !f.Recording() {
		return flow.TraceContext{}
	}
	now, from := f.now(), poll{split: a.Split}
	f.read = f.read[:0]
	for _, attr := range a.Attrs {
		if attr.Key == "messaging.destination.name" {
			from.topic = attr.Value.(string)
			continue
		}
		f.read = append(f.read, attr)
	}
	root := f.trail.Root(&telemetry.Start{Parent: a.Parent, At: f.task.stepped, Attrs: f.read, Fixed: f.pollAttrs(from)}, now)
	return f.begin(&telemetry.Start{Parent: root, At: now, Fixed: f.chain})
}

// pollAttrs is what all polls of a split have in common.
func (f *follower) pollAttrs(from poll) telemetry.Fixed {
	if from != f.polled || f.asPoll.None() {
		f.polled, f.asPoll = from, f.findPoll(from)
	}
	return f.asPoll
}

func (f *follower) findPoll(from poll) telemetry.Fixed {
	if fixed, ok := f.polls[from]; ok {
		return fixed
	}
	if f.polls == nil || len(f.polls) == maxPolls {
		f.polls = map[poll]telemetry.Fixed{}
	}
	title := f.task.ops[0].node.Title()
	attrs := append(f.taskAttrs(), telemetry.A("heddle.operator", title), telemetry.A("heddle.split", from.split))
	if from.topic == "" {
		f.polls[from] = telemetry.FixSpan("poll "+title, telemetry.Internal, attrs...)
	} else { // the conventions have the kind client for what is received, and consumer for what is processed
		f.polls[from] = telemetry.FixSpan("poll "+from.topic, telemetry.Client, append(attrs, telemetry.A("messaging.destination.name", from.topic),
			telemetry.A("messaging.system", "kafka"), telemetry.A("messaging.operation.name", "poll"), telemetry.A("messaging.operation.type", "receive"))...)
	}
	return f.polls[from]
}

// Arrive implements flow.Follower.
func (f *follower) Arrive(i int) flow.TraceContext {
	m, h, now := &f.marks[i], f.hop, f.now()
	times := f.times(m.filled, now)
	for p := range telemetry.Phases {
		if h.Local && p > telemetry.PhaseFill && p < telemetry.PhaseReceive || p == telemetry.PhaseAlign && h.Held == 0 {
			continue
		}
		f.in.hops[p].Observe(max(0, times[p+1].Sub(times[p])))
	}
	if !m.context.Sampled() || !f.Recording() {
		return flow.TraceContext{}
	}
	t := f.trail
	hop := t.Begin(&telemetry.Start{Parent: m.context, At: times[0], Fixed: f.channelAttrs()})
	for i, n := range [...]int{f.size, m.index, f.in.gate.Queued(), h.Backlog} {
		t.Int(i, n)
	}
	if !h.Local {
		t.Int(4, h.Credit)
		t.Float(5, h.Clock.Ahead.Seconds())
		t.Float(6, h.Clock.Within.Seconds())
	}
	t.Cut(&f.phases, &times)
	return f.begin(&telemetry.Start{Parent: hop, At: now, Fixed: f.chain})
}

// hopNumbers are what Arrive says of each hop, in order; the first hopNumbersLocal of one that never left the process.
var hopNumbers = []telemetry.Number{
	{Key: "heddle.segment.bytes"}, {Key: "heddle.segment.record"}, {Key: "heddle.queue.received"}, {Key: "heddle.backlog"},
	{Key: "heddle.credit"}, {Key: "heddle.clock.offset", Float: true}, {Key: "heddle.clock.offset.error", Float: true},
}

const hopNumbersLocal = 4

// times are those between the phases of the hop, by the task's clock; now is the last. The exchange's clock is without the steps of the wall clock, by
// which a task tells when its spans begin: so what the exchange says is moved by what the two differed when the segment came.
func (f *follower) times(filled time.Duration, now time.Time) [telemetry.Phases + 1]time.Time {
	h, received := f.hop, f.hop.Received.Add(f.shift)
	aligning := now.Add(-h.Held)
	if aligning.Before(received) {
		aligning = received
	}
	put := h.Put.Add(f.shift)
	return [telemetry.Phases + 1]time.Time{put.Add(-filled), put, h.Credited.Add(f.shift), h.Written.Add(f.shift), received, aligning, now}
}

// channelAttrs are the attributes of all hops by the channel that is being read.
func (f *follower) channelAttrs() telemetry.Fixed {
	if f.in.traced == nil {
		f.in.traced = make([]telemetry.Fixed, len(f.in.spec.Channels))
	}
	if fixed := f.in.traced[f.channel]; !fixed.None() {
		return fixed
	}
	c := f.in.spec.Channels[f.channel]
	attrs := append(f.taskAttrs(), telemetry.A("heddle.edge", f.in.edge.ID), telemetry.A("heddle.channel", f.channel),
		telemetry.A("heddle.producer.subtask", c.Producer), telemetry.A("heddle.exchange.local", f.hop.Local))
	numbers := hopNumbers[:hopNumbersLocal]
	if !f.hop.Local {
		attrs = append(attrs, telemetry.A("heddle.connection", int(c.ConnIndex)))
		attrs = append(attrs, peerAttrs(c.Addr)...)
		numbers = hopNumbers
	}
	f.in.traced[f.channel] = telemetry.FixSpan("exchange", telemetry.Consumer, attrs...).With(numbers...)
	return f.in.traced[f.channel]
}

// peerAttrs says whom a channel is connected with, by OpenTelemetry's semantic conventions: the port is an attribute of its own.
func peerAttrs(addr string) []flow.TraceAttr {
	attrs := []flow.TraceAttr{telemetry.A("network.transport", "tcp")}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return append(attrs, telemetry.A("network.peer.address", addr))
	}
	attrs = append(attrs, telemetry.A("network.peer.address", host))
	if n, err := strconv.Atoi(port); err == nil {
		attrs = append(attrs, telemetry.A("network.peer.port", n))
	}
	return attrs
}

// Fire implements flow.Follower. The trace of the last record goes on; the others are linked.
func (f *follower) Fire(name string, links []flow.TraceContext) flow.TraceContext {
	last := len(links) - 1
	return f.begin(&telemetry.Start{Parent: links[last], Name: name, Links: links[:last], At: f.now(), Fixed: f.attrs,
		Attrs: []flow.TraceAttr{telemetry.A("heddle.links", last)}})
}

// Done implements flow.Follower.
func (f *follower) Done(err error) {
	if !f.trail.Recording() {
		return
	}
	if err != nil {
		f.trail.Fail("the chain failed; the job's failure tells why")
	}
	f.logged.store(&flow.TraceContext{})
	f.trail.End(f.now())
	f.trail.Flush()
}

// abandon ends the span of a record at which the task ended: by a panic, or since a function ended the goroutine.
func (f *follower) abandon() {
	if f != nil {
		f.Done(ErrExited)
	}
}

// giveUp ends the spans of deliveries that a task which has been closed has left.
func (f *follower) giveUp() {
	if f != nil {
		f.deliveries.giveUp()
	}
}

// Attr implements flow.Follower.
func (f *follower) Attr(attrs ...flow.TraceAttr) { f.trail.Set(attrs...) }

// Send implements flow.Follower.
func (f *follower) Send(name string, attrs ...flow.TraceAttr) flow.Delivery {
	if !f.trail.Recording() {
		return nil
	}
	span := f.cfg.Provider.Child(telemetry.Start{Parent: f.trail.Context(), Name: name, Kind: telemetry.Producer, At: f.now(), Attrs: attrs, Fixed: f.attrs})
	return f.deliveries.begin(span)
}

// blocked notes that the record being followed waited for room in the output.
func (f *follower) blocked(from time.Time, out int) {
	f.cfg.Provider.Record(telemetry.Start{Parent: f.trail.Context(), Name: "wait for a segment", At: from,
		Attrs: []flow.TraceAttr{telemetry.A("heddle.edge", f.task.spec.Outputs[out].Edge)}}, f.now())
}

// Wrote implements flow.Follower.
func (f *follower) Wrote(out, ch, index int, c flow.TraceContext) {
	o := f.task.outs[out]
	if o.marks == nil {
		o.marks = map[int][]mark{}
	}
	if len(o.marks[ch]) == 0 {
		o.marked++
	}
	o.marks[ch] = append(o.marks[ch], mark{context: c, index: index, written: f.now()})
}

// Full implements flow.Follower.
func (f *follower) Full(out, ch int) bool { return len(f.task.outs[out].marks[ch]) >= mostMarks }

// arriving takes note of the marks of a segment that is about to be read.
func (f *follower) arriving(in *input, it *Item) {
	f.in, f.hop, f.channel, f.size, f.shift = in, it.Hop, it.Channel, len(it.Payload), 0
	if !it.Hop.Taken.IsZero() {
		f.shift = f.now().Sub(it.Hop.Taken)
	}
	f.marks = parseNote(f.marks[:0], it.Hop.Note)
	f.indexes = f.indexes[:0]
	for _, m := range f.marks {
		f.indexes = append(f.indexes, m.index)
	}
	f.tracer.Marks(f.indexes)
}

// arrived ends arriving.
func (f *follower) arrived() {
	f.tracer.Marks(nil)
	f.hop = nil
}

// mostMarks is how many marks a note has room for, whatever they are; mostFilled bounds what they tell.
const (
	mostMarks  = netstack.MaxNote / maxMark
	maxMark    = 1 + 5 + 6 + 16 + 8
	mostFilled = time.Hour
)

// appendMark appends a mark, as a note has one after the other: flags (1 byte), index and the nanoseconds that the segment
// was filled after it (uvarints) and, if it is sampled, trace (16) and span (8).
func appendMark(b []byte, m mark) []byte {
	b = append(b, m.context.Flags&flow.TraceSampled)
	b = binary.AppendUvarint(b, uint64(m.index))
	b = binary.AppendUvarint(b, uint64(min(max(0, m.filled), mostFilled)))
	if m.context.Sampled() {
		b = append(append(b, m.context.Trace[:]...), m.context.Span[:]...)
	}
	return b
}

// parseNote appends the marks of a note. What can't be read ends it: a note is of use to people only.
func parseNote(marks []mark, b []byte) []mark {
	for len(b) > 0 {
		m := mark{context: flow.TraceContext{Flags: b[0] & flow.TraceSampled}}
		index, n := binary.Uvarint(b[1:])
		if n <= 0 || index > 1<<31 {
			return marks
		}
		b = b[1+n:]
		filled, n := binary.Uvarint(b)
		if n <= 0 || filled > uint64(mostFilled) {
			return marks
		}
		b = b[n:]
		m.index, m.filled = int(index), time.Duration(filled)
		if m.context.Flags != 0 {
			if len(b) < 24 {
				return marks
			}
			copy(m.context.Trace[:], b)
			copy(m.context.Span[:], b[16:])
			b = b[24:]
		}
		if len(marks) > 0 && m.index <= marks[len(marks)-1].index {
			return marks
		}
		marks = append(marks, m)
	}
	return marks
}

// note makes the note of a segment that is put now. Marks for which there is no room are left out rather than fail the task; Full sees to it that there are none.
func (o *edgeOut) note(ch int) []byte {
	marks := o.marks[ch][:min(len(o.marks[ch]), mostMarks)]
	now := o.task.follow.now()
	o.buf = o.buf[:0]
	for i := range marks {
		marks[i].filled = now.Sub(marks[i].written)
		o.buf = appendMark(o.buf, marks[i])
	}
	o.marks[ch] = marks[:0]
	o.marked--
	return o.buf
}
