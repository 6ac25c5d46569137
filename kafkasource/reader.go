package kafkasource

import (
	"context"
	"fmt"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// reader reads the splits of one subtask. The Puller fetches in the background; decoding is done here, by the task's goroutine.
type reader struct {
	// Immutable.
	puller *kafka.Puller
	want   flow.MessageFields
	check  bool // skip what belongs to aborted transactions
	bytes  *flow.Counter

	// Owned by the task's goroutine.
	splits   []*split
	byTarget map[*kafka.Target]*split
	finished []*split // reached their end, to be told
	open     int      // splits that have not
	noMore   bool

	resp   *kafka.Response // being decoded, nil: none
	part   int             // of resp
	rest   []byte          // batches of the part not yet begun
	split  *split          // whose part it is
	header batch.Header
	cursor batch.Cursor
	unpack batch.Decompressor
	abort  batch.Aborted
	m      flow.Messages
	empty  flow.Messages
}

// split is one partition being read.
type split struct {
	target *kafka.Target
	id     string
	pos    int64 // next offset to emit
	ended  bool
}

func newReader(ctx context.Context, s *Source, env flow.ReaderEnv, want flow.MessageFields) (*reader, error) {
	cfg, err := s.config(env.Runtime.Option)
	if err != nil {
		return nil, err
	}
	rt := env.Runtime
	r := &reader{want: want | flow.FieldOffset, check: !s.uncommitted, bytes: rt.Counter("fetched bytes"), byTarget: map[*kafka.Target]*split{}}
	r.puller, err = kafka.NewPuller(ctx, cfg, kafka.PullerConfig{
		Committed: !s.uncommitted,
		OnLoss:    s.onLoss,
		Logger:    rt.Logger(),
		Wake:      rt.Wake,
		Waiting:   rt.Counter("waiting partitions"),
		Resets:    rt.Counter("data losses"),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up %s: %w", s.Describe(), err)
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
		sp := &split{target: t, id: s.ID, pos: state.Start}
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
		out[i] = flow.SplitStatus{ID: s.id, Position: s.pos, End: s.target.High(), Trouble: s.target.Trouble()}
	}
	return out
}

// Close implements flow.MessageReader.
func (r *reader) Close() error {
	r.puller.Close()
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
		if !r.cursor.Done() {
			ok, err := r.fill()
			if err != nil {
				return 0, err
			}
			if ok {
				return flow.SourceMore, emit(r.split.id, &r.m, false)
			}
			continue
		}
		if r.resp != nil {
			if err := r.advance(); err != nil {
				return 0, err
			}
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
		r.resp, r.part = resp, -1
	}
}

// fill decodes some records of the current batch, and reports whether there were any.
func (r *reader) fill() (bool, error) {
	s := r.split
	if err := r.cursor.Fill(&r.m, r.want, flow.BatchBytes, s.pos, s.target.Stop); err != nil {
		return false, r.corrupt(err)
	}
	n := r.m.Len()
	if n > 0 {
		s.pos = r.m.Offsets[n-1] + 1
	}
	if r.cursor.Done() {
		s.pos = max(s.pos, min(r.header.NextOffset(), s.target.Stop))
	}
	return n > 0, nil
}

// advance begins the next batch, or else the next part, or else gives the response back.
func (r *reader) advance() error {
	if len(r.rest) > 0 {
		return r.nextBatch()
	}
	if r.part >= 0 {
		r.endPart(&r.resp.Parts[r.part])
	}
	if r.part++; r.part == len(r.resp.Parts) {
		r.resp.Release()
		r.resp = nil
		return nil
	}
	p := &r.resp.Parts[r.part]
	r.split, r.rest = r.byTarget[p.Target], p.Batches
	r.m.Topic, r.m.Partition = p.Target.Topic, p.Target.Partition
	r.abort.Reset(p.Aborted)
	r.bytes.Add(int64(len(p.Batches)))
	return nil
}

// endPart moves the split to where the part ends, over what had no record.
func (r *reader) endPart(p *kafka.Part) {
	s := r.split
	if p.Reset {
		s.pos = p.Next
	}
	s.pos = max(s.pos, min(p.Next, s.target.Stop))
	if s.pos >= s.target.Stop {
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
	r.rest = r.rest[r.header.Size:]
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
		visible = r.abort.Visible(&r.header, records)
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
