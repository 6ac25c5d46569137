package kafkasource

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// CommitTo commits offsets to a consumer group every kafka.commit-interval, so that Kafka's own tools show how far the job is, and
// Start(Committed(group, …)) goes on where it was. An offset is committed once everything before it has left every sink. What can't be committed
// is a warning, and counted; it does not fail the job. No other consumer may be a member of the group.
//
// What windows hold that are open, and other state, is not in the group's offsets: a job that starts from them lacks it. Such a job says so when it starts.
func (s *Source) CommitTo(group string) *Source {
	if s.group = group; group == "" {
		s.err = fmt.Errorf("kafkasource.CommitTo names no group")
	}
	return s
}

// CommitInterval says how often to commit, in place of the option kafka.commit-interval; 0 means never.
func (s *Source) CommitInterval(d time.Duration) *Source {
	if d < 0 {
		s.err = fmt.Errorf("kafkasource.CommitInterval is %v: want a duration above 0, or 0 for never", d)
	}
	s.commitEvery = &d
	return s
}

// Commits implements flow.Committing.
func (s *Source) Commits() bool {
	return s.group != "" && (s.commitEvery == nil || *s.commitEvery > 0)
}

func (s *Source) commitInterval(cfg kafka.Config) time.Duration {
	switch {
	case s.group == "":
		return 0
	case s.commitEvery != nil:
		return *s.commitEvery
	}
	return cfg.CommitInterval
}

// Finalize implements flow.Finalizer: of a bounded source that has been read to its end and whose job has finished, the end is committed.
func (s *Source) Finalize(env flow.EnumeratorEnv, splits []flow.Split) error {
	cfg, err := s.config(env.Option)
	if err != nil || s.commitInterval(cfg) == 0 || !s.Bounded() {
		return err
	}
	ends := map[kafka.TP]int64{}
	for _, sp := range splits {
		state, err := parseSplit(sp)
		if err != nil {
			return err
		}
		if state.Stop != noStop {
			ends[state.TP] = state.Stop
		}
	}
	client, err := kafka.NewClient(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), finalizeTimeout)
	defer cancel()
	return client.Commit(ctx, s.group, ends)
}

const finalizeTimeout = 15 * time.Second

// warnOfState says what a job that starts from committed offsets will lack.
func (s *Source) warnOfState(env flow.EnumeratorEnv) {
	g := env.Node.Graph()
	if g == nil || !s.Commits() {
		return
	}
	if keeps := g.Keeps(); len(keeps) > 0 {
		env.Warn(fmt.Sprintf("offsets are committed to group %q, but %s hold records back: a job that starts from these offsets lacks what was held when it stopped, such as the records of windows that were open",
			s.group, strings.Join(keeps, ", ")))
	}
}

// mark is where splits stood when the stream was marked.
type mark struct {
	id  uint64
	pos map[*split]int64 // of those that had moved since the mark before
}

// maxMarks bounds how many marks may be under way. With more, sinks hang, and the last stands for those before it.
const maxMarks = 100

// CommitEvery implements flow.Committer.
func (r *reader) CommitEvery() time.Duration { return r.commitEvery }

// Mark implements flow.Committer.
func (r *reader) Mark(id uint64) {
	m := mark{id: id, pos: map[*split]int64{}}
	if n := len(r.marks); n >= maxMarks {
		m.pos = r.marks[n-1].pos
		r.marks = r.marks[:n-1]
	}
	for _, s := range r.splits {
		if s.pos != s.marked {
			s.marked = s.pos
			m.pos[s] = s.pos
		}
	}
	r.marks = append(r.marks, m)
}

// Delivered implements flow.Committer.
func (r *reader) Delivered(id uint64) {
	offsets := map[kafka.TP]int64{}
	n := 0
	for ; n < len(r.marks) && r.marks[n].id <= id; n++ {
		for s, pos := range r.marks[n].pos {
			offsets[s.target.TP] = pos
		}
	}
	r.marks = append(r.marks[:0], r.marks[n:]...)
	if len(offsets) > 0 && r.committer != nil {
		r.committer.Commit(offsets)
	}
}
