package flow

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLeastMark(t *testing.T) {
	at := func(mark int64) ReaderMark { return ReaderMark{Known: true, Mark: mark} }
	for _, c := range []struct {
		name    string
		readers []ReaderMark
		least   int64
		ok      bool
	}{
		{"nobody", nil, MaxTime, true},
		{"the slowest counts", []ReaderMark{at(30), at(10), at(20)}, 10, true},
		{"one is still to say where it stands", []ReaderMark{at(30), {}}, 0, false},
		{"one has finished without a word", []ReaderMark{at(30), {Ended: true}}, 30, true},
		{"what a finished one said counts no more", []ReaderMark{at(30), {Known: true, Ended: true, Mark: 5}}, 30, true},
		{"idle ones hold nobody", []ReaderMark{at(MaxTime), at(7)}, 7, true},
		{"all are idle", []ReaderMark{at(MaxTime), at(MaxTime)}, MaxTime, true},
		{"before the epoch", []ReaderMark{at(-5), at(7)}, -5, true},
	} {
		if least, ok := LeastMark(c.readers); least != c.least || ok != c.ok {
			t.Errorf("%s: got %d %v, want %d %v", c.name, least, ok, c.least, c.ok)
		}
	}
}

// groupedRuntime is the runtime of a subtask of a group.
type groupedRuntime struct {
	*testRuntime
	held int
}

func (r *groupedRuntime) HeldBack() func() { return func() { r.held++ } }

// groupTest is a source that waits for others.
type groupTest struct {
	sourceTest
	rt  *groupedRuntime
	log *strings.Builder
}

// newGroupTest starts one; whole says that its reader can't leave splits alone.
func newGroupTest(t *testing.T, whole bool) *groupTest {
	g := &groupTest{rt: &groupedRuntime{testRuntime: newTestRuntime()}, log: &strings.Builder{}}
	w := Watermarks[event]{New: BoundedDelay[event](0)}.WithAlignment("g", 100*time.Millisecond).WithIdle(time.Second)
	g.sourceTest = sourceTest{t: t, rt: g.rt.testRuntime, src: &scripted{wait: SourceWait}, log: &strings.Builder{}}
	out := &logOut[event]{log: g.sourceTest.log, show: func(e event) string { return "" }}
	var in Input[event] = pausing{g.src, g.log}
	if whole {
		in = g.src
	}
	g.inst = start(t, NewSource[event](in, &w, nil, nil), g.rt, Out[event](out))
	return g
}

// put queues a batch, and polls after a while.
func (g *groupTest) put(split string, times ...int64) {
	g.t.Helper()
	g.rt.now += 2 * alignInterval
	g.emit(split, times...)
}

func (g *groupTest) hear(least int64) {
	g.t.Helper()
	if err := g.inst.Source.(Aligned).Align(least); err != nil {
		g.t.Fatal(err)
	}
}

func (g *groupTest) wantTold(what, text string) {
	g.t.Helper()
	told := strings.Fields(strings.ReplaceAll(g.log.String(), " waits", "~waits"))
	slices.Sort(told) // splits are looked at in any order
	if got := strings.ReplaceAll(strings.Join(told, " "), "~", " "); got != text {
		g.t.Errorf("%s: got %q, want %q", what, got, text)
	}
	g.log.Reset()
}

func (g *groupTest) wantMark(what string, mark int64, held int) {
	g.t.Helper()
	if got, ok := g.inst.Source.(Aligned).AlignMark(); got != mark || !ok {
		g.t.Errorf("%s: its mark is %d %v, want %d", what, got, ok, mark)
	}
	if g.rt.held != held {
		g.t.Errorf("%s: it asked %d times, want %d", what, g.rt.held, held)
	}
}

// TestGroup: a split waits for the slowest of the group, wherever that is, and tells who coordinates once all its splits wait.
func TestGroup(t *testing.T) {
	g := newGroupTest(t, false)
	g.add("a", "b")
	g.put("a", 1000)
	g.put("a", 1100)
	g.wantTold("not beyond the first record yet", "")
	g.put("a", 1102)
	g.wantTold("nothing was heard: no further than the drift from the first record", "a waits:true")
	if mark, ok := g.inst.Source.(Aligned).AlignMark(); ok || g.rt.held > 0 {
		t.Errorf("it says that it is at %d, though one of its splits is only about to be read", mark)
	}
	g.put("b", 1110)
	g.wantTold("nor the other", "b waits:true")
	g.wantMark("now all wait", 1101, 1)
	g.hear(1080)
	g.wantTold("the group is heard of", "a waits:false b waits:false")
	g.put("b", 1300)
	g.wantTold("ahead of the group, and of its neighbour", "b waits:true")
	g.wantMark("one goes on", 1101, 1)
	g.hear(MaxTime)
	g.wantTold("nobody else is to be waited for, but its neighbour", "")
	g.put("a", 1290)
	g.wantTold("which comes near", "b waits:false")
	g.hear(-1000)
	g.wantTold("somebody slow has come", "a waits:true b waits:true")
	g.wantMark("all wait", 1289, 2)
	g.advance(g.rt.now + 5000)
	g.wantTold("waiting is not idleness", "")
	g.wantMark("and asks once", 1289, 2)
	g.hear(1280)
	g.wantTold("the slow one has come near", "a waits:false b waits:false")
	if got := g.rt.counters[HeldBackTime].Load(); got < 5000 || got > 5200 {
		t.Errorf("%d ms were counted as held back, want about 5000", got)
	}
	g.advance(g.rt.now + 3000)
	g.wantMark("silent splits hold nobody", MaxTime, 2)
	g.src.queue, g.src.wait = nil, SourceEnd
	g.poll()
	g.wantMark("nor does one that has ended, which is told at once", MaxTime, 3)
}

// TestGroupStatus: a split says how long it has waited, also after its end.
func TestGroupStatus(t *testing.T) {
	g := newGroupTest(t, false)
	g.add("a")
	g.put("a", 1000)
	g.put("a", 2000)
	op := g.inst.Source.(*sourceOp[event])
	g.advance(g.rt.now + 500)
	status := func() SplitStatus { return op.aligned([]SplitStatus{{ID: "a"}})[0] }
	if s := status(); !s.Paused || s.PausedFor < 480*time.Millisecond || s.PausedFor > 600*time.Millisecond {
		t.Errorf("got %+v, want paused for about 500ms", s)
	}
	g.src.queue = []scriptedBatch{{split: "a", ended: true}}
	g.poll()
	if s := status(); s.Paused || s.PausedFor < 480*time.Millisecond {
		t.Errorf("after its end: got %+v", s)
	}
}

// TestGroupOfWholeReaders: a reader that can't leave a split alone is not polled while its slowest split is too far ahead of the group.
func TestGroupOfWholeReaders(t *testing.T) {
	g := newGroupTest(t, true)
	g.add("a", "b")
	g.put("b", 1000)
	g.put("b", 1050)
	g.put("a", 5000)
	g.wantMark("its slowest split is not too far, and all have had a record", 1049, 1)
	g.put("b", 4000)
	g.wantMark("now it is", 3999, 2)
	g.src.queue = append(g.src.queue, scriptedBatch{split: "b", times: []int64{4001}})
	if st := g.poll(); st != SourceWait || len(g.src.queue) != 1 {
		t.Errorf("it was polled (status %v, %d batches left)", st, len(g.src.queue))
	}
	g.hear(3950)
	if g.poll(); len(g.src.queue) != 0 {
		t.Errorf("it is not polled though the group has come near")
	}
	g.hear(-1 << 62)
	g.src.queue = append(g.src.queue, scriptedBatch{split: "b", times: []int64{4002}})
	if g.poll(); len(g.src.queue) != 1 {
		t.Errorf("it was polled though the group is far behind")
	}
	g.hear(MaxTime)
	if g.poll(); len(g.src.queue) != 0 {
		t.Errorf("it is not polled though there is nobody to wait for")
	}
}

// TestGroupStarts: a split that stays without a record is waited for at the start, but not for long.
func TestGroupStarts(t *testing.T) {
	g := newGroupTest(t, false)
	g.add("a", "empty")
	g.put("a", 1000)
	known := func() bool { _, ok := g.inst.Source.(Aligned).AlignMark(); return ok }
	g.inst.Source.(*sourceOp[event]).splits.marks.Idle = 0
	g.advance(g.rt.now + firstRecords/2)
	if known() {
		t.Errorf("it has said where it stands too early")
	}
	g.advance(g.rt.now + firstRecords)
	g.wantMark("it waits no longer", 999, 1)
}

// TestGroupWithoutMaster: where nobody tells subtasks of each other, as in tests of jobs, they don't wait.
func TestGroupWithoutMaster(t *testing.T) {
	w := Watermarks[event]{New: BoundedDelay[event](0)}.WithAlignment("g", 100*time.Millisecond)
	s := newSourceTest(t, w)
	s.add("a")
	for i := range 10 {
		s.rt.now += 2 * alignInterval
		s.emit("a", int64(1000*i))
	}
	if len(s.src.queue) != 0 {
		t.Errorf("%d batches were left", len(s.src.queue))
	}
	if _, ok := s.inst.Source.(Aligned).AlignMark(); ok {
		t.Errorf("it has a mark")
	}
}

// decorated can pause only if what it decorates can.
type decorated struct {
	MessageReader
	inner MessageReader
}

func (d decorated) Unwrap() MessageReader { return d.inner }
func (decorated) Pause(string, bool)      {}

type pausable struct{ MessageReader }

func (pausable) Pause(string, bool) {}

func TestPauserOf(t *testing.T) {
	var plain struct{ MessageReader }
	for _, c := range []struct {
		reader any
		can    bool
	}{{plain, false}, {pausable{}, true}, {decorated{inner: plain}, false}, {decorated{inner: pausable{}}, true}} {
		if got := pauserOf(c.reader) != nil; got != c.can {
			t.Errorf("%T over %T: can pause %v, want %v", c.reader, innermost(c.reader), got, c.can)
		}
	}
}

// simReader is a subtask of TestGroupSimulated: a source of splits that move on in event time at their own speeds.
type simReader struct {
	*groupedRuntime
	op     Instance
	splits []*simSplit
	next   int
	asked  int // of held that were passed on
	ended  bool
	cut    int64 // until when nothing gets through between it and the master
}

type simSplit struct {
	id          string
	at, end     int64
	step        int64 // event time of a batch
	pause       int64 // processing time between batches
	due         int64
	paused, out bool
}

func (r *simReader) NewReader(context.Context, ReaderEnv) (Reader[event], error) { return r, nil }
func (r *simReader) Enumerator(context.Context, EnumeratorEnv) (Enumerator, error) {
	return nil, nil
}
func (r *simReader) Bounded() bool            { return true }
func (r *simReader) Describe() string         { return "simulated" }
func (r *simReader) AddSplits([]Split) error  { return nil }
func (r *simReader) NoMoreSplits() error      { return nil }
func (r *simReader) Splits() []SplitStatus    { return nil }
func (r *simReader) Close() error             { return nil }
func (r *simReader) Pause(id string, on bool) { r.find(id).paused = on }

func (r *simReader) find(id string) *simSplit {
	for _, s := range r.splits {
		if s.id == id {
			return s
		}
	}
	panic("paused a split that is not there: " + id)
}

func (r *simReader) Poll(emit Emit[event]) (SourceStatus, error) {
	left := false
	for range r.splits {
		s := r.splits[r.next%len(r.splits)]
		r.next++
		left = left || !s.out
		if s.out || s.paused || s.due > r.now {
			continue
		}
		s.at += s.step
		s.due = r.now + s.pause
		s.out = s.at >= s.end
		return SourceMore, emit(s.id, Batch[event]{Recs: []event{{Key: s.id}}, Times: []int64{s.at}}, s.out)
	}
	if !left {
		return SourceEnd, nil
	}
	return SourceWait, nil
}
