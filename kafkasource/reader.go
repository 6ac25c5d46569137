package kafkasource

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// reader reads the splits of one subtask. The Puller fetches in the background; decoding is done here, by the task's goroutine.
type reader struct {
	// Immutable.
	rt      flow.Runtime
	puller  *kafka.Puller
	want    flow.MessageFields
	traced  bool // look for traces in headers
	check   bool // skip what belongs to aborted transactions
	bytes   *flow.Counter
	rate    float64 // records a second of each split; 0: no bound
	maxHeld int

	commitEvery time.Duration    // 0: never
	committer   *kafka.Committer // nil: there is nothing to commit to

	// Owned by the task's goroutine.
	splits    []*split
	byTarget  map[*kafka.Target]*split
	finished  []*split // reached their end, to be told
	open      int      // splits that have not
	noMore    bool
	stopped   []*split // fetching of which is stopped
	turn      int      // among stopped
	heldBytes int
	marks     []mark // not yet delivered

	resp    *kafka.Response // being decoded, nil: none
	part    int             // of resp: the next
	busy    bool            // with work
	work    work
	split   *split // whose work it is
	rest    []byte // of work: batches not yet begun
	batch   []byte // the one before rest
	header  batch.Header
	cursor  batch.Cursor
	unpack  batch.Decompressor
	m       flow.Messages
	headers []batch.RecordHeader // scratch
	empty   flow.Messages
}

func newReader(ctx context.Context, s *Source, env flow.ReaderEnv, want flow.MessageFields) (*reader, error) {
	cfg, err := s.config(env.Runtime.Option)
	if err != nil {
		return nil, err
	}
	rt := env.Runtime
	r := &reader{rt: rt, want: want | flow.FieldOffset, check: !s.uncommitted, bytes: rt.Counter("fetched bytes"), byTarget: map[*kafka.Target]*split{},
		rate: s.rateLimit(cfg), maxHeld: cfg.FetchMemory, traced: want&flow.FieldTrace != 0 && flow.TracerOf(rt).Recording()}
	if r.traced {
		r.want |= flow.FieldHeaders
	}
	r.puller, err = kafka.NewPuller(ctx, cfg, kafka.PullerConfig{
		Committed: !s.uncommitted,
		OnLoss:    s.onLoss,
		Logger:    rt.Logger().With("component", "kafkasource"),
		Wake:      rt.Wake,
		Waiting:   rt.Counter("waiting partitions"),
		Resets:    rt.Counter("data losses"),
		Throttled: rt.Counter("throttled ms"),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up %s: %w", s.Describe(), err)
	}
	if r.commitEvery = s.commitInterval(cfg); r.commitEvery > 0 {
		r.committer, err = kafka.NewCommitter(ctx, cfg, kafka.CommitterConfig{Group: s.group, Logger: rt.Logger(),
			Commit: rt.Counter("commits"), Failed: rt.Counter("failed commits")})
		if err != nil {
			r.puller.Close()
			return nil, fmt.Errorf("cannot set up %s: %w", s.Describe(), err)
		}
	}
	return r, nil
}

// AddSplits implements flow.MessageReader.
func (r *reader) AddSplits(splits []flow.Split) error {
	var targets []*kafka.Target
	for _, s := range splits {
		state, err := parseSplit(s)
		if err != nil {
			return err
		}
		t := kafka.NewTarget(state.TP, state.Start, state.Stop)
		sp := &split{target: t, id: s.ID, pos: state.Start, marked: -1, rate: bucket{rate: r.rate}}
		r.splits = append(r.splits, sp)
		r.byTarget[t] = sp
		r.open++
		if sp.pos >= t.Stop {
			r.finish(sp)
			continue
		}
		targets = append(targets, t)
	}
	if len(targets) > 0 {
		r.puller.Add(targets)
	}
	return nil
}

// NoMoreSplits implements flow.MessageReader.
func (r *reader) NoMoreSplits() error {
	r.noMore = true
	return nil
}

// Splits implements flow.MessageReader.
func (r *reader) Splits() []flow.SplitStatus {
	out := make([]flow.SplitStatus, len(r.splits))
	for i, s := range r.splits {
		f := s.target.Figures()
		out[i] = flow.SplitStatus{ID: s.id, Position: s.pos, End: s.target.High(), Trouble: s.target.Trouble(), Paused: s.paused,
			Committed: r.committed(s), Records: s.records, Bytes: f.Bytes, Fetches: f.Fetches, FetchTime: f.Waited, EmptyPolls: f.Empty}
	}
	return out
}

// committed is what was committed of a split, 0 if nothing.
func (r *reader) committed(s *split) int64 {
	if r.committer == nil {
		return 0
	}
	return r.committer.Committed(s.target.TP)
}

// Close implements flow.MessageReader.
func (r *reader) Close() error {
	r.puller.Close()
	if r.committer != nil {
		r.committer.Close()
	}
	return nil
}

// Poll implements flow.MessageReader.
func (r *reader) Poll(emit flow.EmitMessages) (flow.SourceStatus, error) {
	for {
		if n := len(r.finished); n > 0 {
			s := r.finished[n-1]
			r.finished = r.finished[:n-1]
			return flow.SourceMore, emit(s.id, &r.empty, true)
		}
		if r.busy {
			if s := r.split; s.paused || s.rate.rate > 0 && !r.mayGoOn(s) {
				r.putBack()
				continue
			}
			ok, err := r.decode()
			if err != nil {
				return 0, err
			}
			if ok {
				return flow.SourceMore, emit(r.split.id, &r.m, false)
			}
			continue
		}
		if len(r.stopped) > 0 && r.takeUp() {
			continue
		}
		if r.resp != nil {
			r.nextPart()
			continue
		}
		if r.noMore && r.open == 0 {
			return flow.SourceEnd, nil
		}
		resp, err := r.puller.Next()
		if err != nil {
			return 0, err
		}
		if resp == nil {
			return flow.SourceWait, nil
		}
		r.resp, r.part = resp, 0
	}
}

func (r *reader) mayGoOn(s *split) bool {
	no, _ := s.suspended(r.rt.Now())
	return !no
}

// decode does a piece of the work, and reports whether that gave records.
func (r *reader) decode() (bool, error) {
	if !r.cursor.Done() {
		return r.fill()
	}
	if len(r.rest) > 0 {
		return false, r.nextBatch()
	}
	r.endWork()
	return false, nil
}

// fill decodes some records of the current batch, and reports whether there were any.
func (r *reader) fill() (bool, error) {
	s, limit := r.split, flow.BatchBytes
	if s.rate.few() {
		limit = 1
	}
	if err := r.cursor.Fill(&r.m, r.want, limit, s.pos, s.target.Stop); err != nil {
		return false, r.corrupt(err)
	}
	if r.traced {
		r.findTraces(&r.m)
	}
	n := r.m.Len()
	if n > 0 {
		s.pos = r.m.Offsets[n-1] + 1
		s.records += int64(n)
		s.rate.take(n)
	}
	if r.cursor.Done() {
		s.pos = max(s.pos, min(r.header.NextOffset(), s.target.Stop))
	}
	return n > 0, nil
}

// nextPart begins the next part of the response, or gives that back.
func (r *reader) nextPart() {
	if r.part == len(r.resp.Parts) {
		r.resp.Release()
		r.resp = nil
		return
	}
	p := &r.resp.Parts[r.part]
	r.part++
	r.bytes.Add(int64(len(p.Batches)))
	s := r.byTarget[p.Target]
	if p.Gen < s.since || s.ended {
		return
	}
	w := work{batches: p.Batches, aborted: p.Aborted, next: p.Next, epoch: p.Epoch, reset: p.Reset}
	if s.dry {
		r.hold(s, w, false)
		return
	}
	r.begin(s, w)
}

// begin begins some work.
func (r *reader) begin(s *split, w work) {
	if !w.begun {
		s.abort.Reset(w.aborted)
		w.begun = true
	}
	r.split, r.work, r.rest, r.busy = s, w, w.batches, true
	r.m.Topic, r.m.Partition = s.target.Topic, s.target.Partition
}

// endWork moves the split to where the work ends, over what had no record.
func (r *reader) endWork() {
	s, w := r.split, &r.work
	if w.reset {
		s.pos = w.next
	}
	s.pos = max(s.pos, min(w.next, s.target.Stop))
	r.heldBytes -= w.owned
	r.busy, r.work = false, work{}
	if s.pos >= s.target.Stop {
		r.drop(s)
		r.finish(s)
	}
}

func (r *reader) finish(s *split) {
	if !s.ended {
		s.ended = true
		r.open--
		r.finished = append(r.finished, s)
	}
}

// nextBatch makes the cursor stand before the next batch of the part, if its records are for us.
func (r *reader) nextBatch() (err error) {
	if r.header, err = batch.Parse(r.rest); err != nil {
		return r.corrupt(err)
	}
	b := r.rest[:r.header.Size]
	r.batch, r.rest = b, r.rest[r.header.Size:]
	if r.header.NextOffset() <= r.split.pos || r.header.BaseOffset >= r.split.target.Stop {
		if !r.header.Control() {
			return nil
		}
	}
	if err := batch.Verify(b); err != nil {
		return r.corrupt(err)
	}
	records, err := r.unpack.Unpack(r.header.Codec(), b[batch.HeaderSize:])
	if err != nil {
		return r.corrupt(err)
	}
	visible := !r.header.Control()
	if r.check {
		visible = r.split.abort.Visible(&r.header, records)
	}
	if !visible {
		r.split.pos = max(r.split.pos, min(r.header.NextOffset(), r.split.target.Stop))
		return nil
	}
	if err := r.cursor.Walk(&r.header, records); err != nil {
		return r.corrupt(err)
	}
	return nil
}

func (r *reader) corrupt(err error) error {
	return fmt.Errorf("cannot read %s at offset %d: %w", r.split.id, r.split.pos, err)
}
