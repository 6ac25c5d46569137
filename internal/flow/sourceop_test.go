package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// scripted is a source whose reader emits what the test queues.
type scripted struct {
	Input[event]
	queue []scriptedBatch
	wait  SourceStatus // once the queue is empty
	times bool         // what the environment asked for
	err   error
}

type scriptedBatch struct {
	split string
	times []int64
	ended bool
}

func (s *scripted) Describe() string { return "script" }
func (s *scripted) NewReader(_ context.Context, env ReaderEnv) (Reader[event], error) {
	s.times = env.Times
	return s, s.err
}
func (s *scripted) AddSplits([]Split) error { return nil }
func (s *scripted) NoMoreSplits() error     { return nil }
func (s *scripted) Splits() []SplitStatus   { return nil }
func (s *scripted) Close() error            { return nil }
func (s *scripted) Poll(emit Emit[event]) (SourceStatus, error) {
	if len(s.queue) == 0 {
		return s.wait, nil
	}
	b := s.queue[0]
	s.queue = s.queue[1:]
	out := Batch[event]{Times: b.times}
	for _, t := range b.times {
		out.Recs = append(out.Recs, event{Key: b.split, N: t})
	}
	return SourceMore, emit(b.split, out, b.ended)
}

// sourceTest converses with a source operator.
type sourceTest struct {
	t    *testing.T
	rt   *testRuntime
	src  *scripted
	inst Instance
	log  *strings.Builder
}

func newSourceTest(t *testing.T, w Watermarks[event]) *sourceTest {
	s := &sourceTest{t: t, rt: newTestRuntime(), src: &scripted{wait: SourceWait}, log: &strings.Builder{}}
	out := &logOut[event]{log: s.log, show: func(e event) string { return fmt.Sprintf("%s@%d", e.Key, e.N) }}
	s.inst = start(t, NewSource[event](s.src, &w, nil, nil), s.rt, Out[event](out))
	return s
}

func (s *sourceTest) add(ids ...string) {
	s.t.Helper()
	var splits []Split
	for _, id := range ids {
		splits = append(splits, Split{ID: id})
	}
	if err := s.inst.Source.AddSplits(splits); err != nil {
		s.t.Fatal(err)
	}
}

// emit polls until the queue is empty.
func (s *sourceTest) emit(split string, times ...int64) {
	s.t.Helper()
	s.src.queue = append(s.src.queue, scriptedBatch{split: split, times: times})
	s.poll()
}

func (s *sourceTest) poll() SourceStatus {
	s.t.Helper()
	for {
		st, err := s.inst.Source.Poll()
		if err != nil {
			s.t.Fatal(err)
		}
		if st != SourceMore {
			return st
		}
	}
}

func (s *sourceTest) advance(now int64) {
	s.t.Helper()
	if err := s.rt.advanceTo(now, s.inst.Op); err != nil {
		s.t.Fatal(err)
	}
}

// want checks and forgets what came out.
func (s *sourceTest) want(reason, want string) {
	s.t.Helper()
	got := strings.ReplaceAll(strings.TrimSpace(s.log.String()), "\n", "; ")
	got = strings.ReplaceAll(got, "— ", "")
	if got != want {
		s.t.Errorf("%s: got %q, want %q", reason, got, want)
	}
	s.log.Reset()
}

// sourceTimes takes event times from the source, with watermarks 10 ms behind.
func sourceTimes() Watermarks[event] {
	return Watermarks[event]{New: BoundedDelay[event](10 * time.Millisecond)}
}

func TestSourceWithoutSplitsIsIdle(t *testing.T) { // K-10
	s := newSourceTest(t, sourceTimes())
	s.poll()
	s.want("no split yet", "idle")
	s.poll()
	s.want("it is told once", "")
	s.advance(1000)
	s.add("a")
	s.want("the first split", "active")
	s.emit("a", 100)
	s.want("records", "a@100 @100; watermark 89")
	s.add("late")
	s.advance(2000)
	s.emit("a", 200)
	s.want("a new split holds the watermark where it was", "a@200 @200")
	s.emit("late", 50)
	s.want("and does not make it go back", "late@50 @50")
	s.emit("late", 300)
	s.want("until it has caught up", "late@300 @300; watermark 189")
}

func TestUnreadSplitHoldsWatermarkBack(t *testing.T) { // K-11
	s := newSourceTest(t, sourceTimes())
	s.add("a", "b")
	s.poll()
	s.emit("a", 100)
	s.want("only one of two splits is read", "a@100 @100")
	s.advance(1000)
	s.want("time alone changes nothing", "")
	s.emit("b", 10, 60)
	s.want("both are read", "b@10 @10; b@60 @60; watermark 49")
}

func TestSourceWatermarkInterval(t *testing.T) {
	s := newSourceTest(t, sourceTimes())
	s.add("a")
	s.emit("a", 100)
	s.want("the first watermark goes out at once", "a@100 @100; watermark 89")
	for i := range int64(5) {
		s.emit("a", 200+i)
	}
	s.want("no other so soon", "a@200 @200; a@201 @201; a@202 @202; a@203 @203; a@204 @204")
	s.advance(199)
	s.want("nor just before the interval", "")
	s.advance(200)
	s.want("the timer sends it, with nothing to read", "watermark 193")
	s.advance(10000)
	s.want("and nothing while nothing changes", "")
}

func TestIdleSplits(t *testing.T) {
	s := newSourceTest(t, sourceTimes().WithIdle(time.Second))
	s.add("a", "b")
	s.emit("a", 100)
	s.want("b is awaited", "a@100 @100")
	s.advance(999)
	s.emit("a", 101)
	s.want("still", "a@101 @101")
	s.advance(1000)
	s.want("b is idle", "watermark 90")
	s.advance(1999)
	s.want("a is idle as well", "idle")
	s.emit("b", 20)
	s.want("b comes back, late", "active; b@20 @20")
	s.emit("a", 500)
	s.want("and holds back again", "a@500 @500")
	s.emit("b", 400)
	s.want("then goes on", "b@400 @400; watermark 389")
}

func TestWatermarksAtTheEndsOfTime(t *testing.T) { // K-12
	s := newSourceTest(t, sourceTimes())
	s.add("a", "b", "c")
	s.emit("a", MaxTime, MaxTime-1)
	s.emit("b", MinTime, MinTime+5)
	s.want("one end each", fmt.Sprintf("a@%d @max; a@%d @max-1; b@%d @min; b@%d @%d", MaxTime, MaxTime-1, MinTime, MinTime+5, MinTime+5))
	s.src.queue = []scriptedBatch{{split: "b", ended: true}, {split: "c", times: []int64{7}, ended: true}}
	s.poll()
	s.want("finished splits hold nothing back", fmt.Sprintf("c@7 @7; watermark %d", MaxTime-11))
	s.src.wait = SourceEnd
	if st := s.poll(); st != SourceEnd {
		t.Errorf("got %v at the end", st)
	}
	s.want("the end", "watermark max")
	if st := s.poll(); st != SourceEnd {
		t.Errorf("got %v after the end", st)
	}
	s.advance(100000)
	s.want("nothing after it", "")
}

func TestSourceWithoutWatermarks(t *testing.T) {
	s := newSourceTest(t, Watermarks[event]{})
	if s.src.times {
		t.Error("the reader is asked for times that nobody wants")
	}
	s.add("a")
	s.emit("a", 1, 2)
	s.src.wait = SourceEnd
	s.poll()
	s.want("records without times", "a@1; a@2; watermark max")
}

func TestSourceTimesFromRecords(t *testing.T) {
	w := Watermarks[event]{New: BoundedDelay[event](0), Time: func(e event) time.Time {
		if e.N == 13 {
			panic("unlucky")
		}
		return time.UnixMilli(e.N * 1000)
	}}
	s := newSourceTest(t, w)
	if s.src.times {
		t.Error("the reader is asked for times although the author gives a function")
	}
	s.add("a")
	s.emit("a", 1, 2)
	s.want("times by function", "a@1 @1000; a@2 @2000; watermark 1999")
	s.src.queue = []scriptedBatch{{split: "a", times: []int64{13}}}
	_, err := s.inst.Source.Poll()
	if err == nil || !strings.Contains(err.Error(), "panic: unlucky") || !strings.Contains(err.Error(), "record: {Key:a N:13}") {
		t.Errorf("panic in the time function: got %v", err)
	}
}

func TestSourceMistakes(t *testing.T) {
	s := newSourceTest(t, sourceTimes())
	s.add("a")
	s.src.queue = []scriptedBatch{{split: "b", times: []int64{1}}}
	if _, err := s.inst.Source.Poll(); err == nil || !strings.Contains(err.Error(), `records of split "b"`) {
		t.Errorf("unknown split: got %v", err)
	}
	failing := &scripted{err: errors.New("refused")}
	inst, err := NewSource[event](failing, &Watermarks[event]{}, nil, nil)(newTestRuntime(), []any{Out[event](&discardOut[event]{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.Op.Open(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "cannot open source window 3 (job/main.go:7): refused") {
		t.Errorf("got %v", err)
	}
	if err := inst.Op.Close(); err != nil {
		t.Errorf("Close after Open failed: %v", err)
	}
}

func TestAssigner(t *testing.T) {
	w := Watermarks[event]{New: BoundedDelay[event](10 * time.Millisecond), Time: func(e event) time.Time { return time.UnixMilli(e.N) }, Idle: time.Second}
	rt, log := newTestRuntime(), &strings.Builder{}
	out := &logOut[event]{log: log, show: func(e event) string { return fmt.Sprint(e.N) }}
	inst := start(t, NewAssigner(&w), rt, Out[event](out))
	in := inst.Inputs[0].(Out[event])
	s := &sourceTest{t: t, rt: rt, inst: inst, log: log}
	push := func(n int64) {
		t.Helper()
		if err := in.Push(Batch[event]{Recs: []event{{N: n}}}); err != nil {
			t.Fatal(err)
		}
	}
	control := func(c Control) {
		t.Helper()
		if err := in.Control(c); err != nil {
			t.Fatal(err)
		}
	}
	push(100)
	push(150)
	s.want("the first watermark at once", "100 @100; watermark 89; 150 @150")
	control(Control{Kind: Watermark, Time: 5000})
	s.want("what came before is replaced", "")
	s.advance(200)
	s.want("the interval", "watermark 139")
	s.advance(1000)
	s.want("silence", "idle")
	push(300)
	s.want("back", "active; 300 @300; watermark 289")
	control(Control{Kind: Idle})
	control(Control{Kind: Active})
	s.want("idleness from before passes", "idle; active")
	control(Control{Kind: Watermark, Time: MaxTime})
	control(Control{Kind: End})
	s.want("the end", "watermark max; end")
	s.advance(10000)
	s.want("nothing after it", "")
}

func TestSinkFlushesAndFinishes(t *testing.T) {
	to := &scriptedSink{}
	in := start(t, NewSink[event](to), newTestRuntime()).Inputs[0].(Out[event])
	if err := in.Push(Batch[event]{Recs: []event{{N: 1}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Control{{Kind: Watermark, Time: 1}, {Kind: Barrier}, {Kind: Idle}, {Kind: End}} {
		if err := in.Control(c); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(to.calls, " "); got != "write flush flush finish" {
		t.Errorf("calls: %s", got)
	}
	to.err = errors.New("full")
	err := in.Push(Batch[event]{Recs: []event{{N: 1}}})
	if want := "cannot write to script of sink window 3 (job/main.go:7): full"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

type scriptedSink struct {
	calls []string
	err   error
}

func (s *scriptedSink) call(c string) error { s.calls = append(s.calls, c); return s.err }

func (s *scriptedSink) NewWriter(context.Context, Runtime) (SinkWriter[event], error) { return s, nil }
func (s *scriptedSink) Describe() string                                              { return "script" }
func (s *scriptedSink) Write(Batch[event]) error                                      { return s.call("write") }
func (s *scriptedSink) Flush(context.Context) error                                   { return s.call("flush") }
func (s *scriptedSink) Finish(context.Context) error                                  { return s.call("finish") }
func (s *scriptedSink) Close() error                                                  { return nil }

// punctuated takes watermarks from records with a key "mark".
type punctuated struct{ at int64 }

func (g *punctuated) Observe(recs []event, times []int64) {
	for i, r := range recs {
		if r.Key == "mark" {
			g.at = max(g.at, times[i])
		}
	}
}

func (g *punctuated) Watermark(int64) int64 { return g.at }

func TestAuthorsGenerator(t *testing.T) {
	w := Watermarks[event]{New: func() Generator[event] { return &punctuated{MinTime} }}.WithInterval(time.Millisecond)
	s := newSourceTest(t, w)
	s.add("a", "mark")
	s.emit("a", 5)
	s.emit("mark", 3)
	s.want("one split never marks", "a@5 @5; mark@3 @3")
	s.src.queue = []scriptedBatch{{split: "a", ended: true}}
	s.poll()
	s.want("until it ends", "watermark 3")
	s.advance(1)
	s.emit("mark", 7)
	s.want("the next", "mark@7 @7; watermark 7")
}

// pausing is a scripted reader that is told which splits wait.
type pausing struct {
	*scripted
	log *strings.Builder
}

func (p pausing) NewReader(context.Context, ReaderEnv) (Reader[event], error) { return p, nil }
func (p pausing) Pause(split string, on bool)                                 { fmt.Fprintf(p.log, "%s waits:%v ", split, on) }

// TestDrift: splits that are too far ahead in event time wait for the slowest, also at the ends of time (K-12).
func TestDrift(t *testing.T) {
	log := &strings.Builder{}
	w := Watermarks[event]{New: BoundedDelay[event](0)}.WithMaxDrift(100 * time.Millisecond).WithIdle(time.Second)
	s := &sourceTest{t: t, rt: newTestRuntime(), src: &scripted{wait: SourceWait}, log: &strings.Builder{}}
	out := &logOut[event]{log: s.log, show: func(e event) string { return "" }}
	s.inst = start(t, NewSource[event](pausing{s.src, log}, &w, nil, nil), s.rt, Out[event](out))
	want := func(what, text string) {
		t.Helper()
		if got := strings.TrimSpace(log.String()); got != text {
			t.Errorf("%s: got %q, want %q", what, got, text)
		}
		log.Reset()
	}
	emit := func(split string, times ...int64) {
		t.Helper()
		s.rt.now += 2 * alignInterval
		s.emit(split, times...)
	}
	s.add("a", "b", "c")
	emit("a", 1000)
	want("others have said nothing", "")
	emit("b", 990)
	emit("a", 1090)
	want("at the limit", "")
	emit("a", 1091)
	want("beyond the limit", "a waits:true")
	emit("b", 1000)
	want("not yet well within", "")
	emit("b", 1030)
	want("well within", "a waits:false")
	emit("a", MaxTime-1)
	want("to the end of time", "a waits:true")
	s.rt.now += 3000
	if err := s.inst.Op.Timer(s.rt.now); err != nil {
		t.Fatal(err)
	}
	want("the slow one has fallen silent", "a waits:false")
	emit("b", MinTime+5)
	s.rt.now += 2 * alignInterval
	if err := s.inst.Op.Timer(s.rt.now); err != nil {
		t.Fatal(err)
	}
	want("it is back", "a waits:true")
	s.src.queue = append(s.src.queue, scriptedBatch{split: "b", ended: true}, scriptedBatch{split: "c", ended: true})
	s.rt.now += 2 * alignInterval
	s.poll()
	want("the others have ended", "a waits:false")
}
