package history

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

// When a report is written before the end.
const (
	look    = time.Second      // between looks at the application
	first   = 10 * time.Second // after the start, so that one that dies soon leaves something
	changed = 30 * time.Second // between two because the job's state changed
	writing = 30 * time.Second // that one may take
)

// Keeper writes the reports of one application.
type Keeper struct {
	Base  Report        // what does not change
	Every time.Duration // between two reports; 0: only at the end
	// Follows says that another ApplicationMaster may go on with the application when this one's context has ended.
	Follows bool
	Shelf   Shelf
	Limit   Limits
	Log     *slog.Logger

	recalled bool // owned by Run, and after it by End
}

// Run writes reports until ctx ends, and then one more that says why: the process may be killed soon. view returns nil while there is nothing to see.
func (k *Keeper) Run(ctx context.Context, view func() *appmaster.Snapshot) {
	begun := time.Now()
	var was written
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if s := view(); s != nil && !final(s.State) {
				r := k.report(s)
				r.Ending = context.Cause(ctx).Error()
				k.write(context.WithoutCancel(ctx), r)
			}
			return
		case <-tick.C:
		}
		s := view()
		if s == nil || !was.due(time.Now(), begun, s, k.Every) {
			continue
		}
		was = written{time.Now(), s.State, len(s.Failures)}
		k.write(ctx, k.report(s))
	}
}

// written is what the last report said.
type written struct {
	at       time.Time // zero: there is none
	state    string
	failures int
}

// due reports whether another report is to be written. That of the end is not written here.
func (w written) due(now, begun time.Time, s *appmaster.Snapshot, every time.Duration) bool {
	switch {
	case every == 0 || final(s.State):
		return false
	case w.at.IsZero():
		return now.Sub(begun) >= min(first, every)
	case s.State != w.state || len(s.Failures) != w.failures:
		return now.Sub(w.at) >= min(changed, every)
	}
	return now.Sub(w.at) >= every
}

// End writes the last report, and removes reports of others that are beyond the limits. ctx is that of the ApplicationMaster, and may have ended.
func (k *Keeper) End(ctx context.Context, s *appmaster.Snapshot, ended time.Time) {
	if s == nil {
		return
	}
	r := k.report(s)
	if why := context.Cause(ctx); why != nil && k.Follows {
		r.Ending = why.Error()
	} else {
		r.Complete, r.Ended = true, ended
	}
	ctx = context.WithoutCancel(ctx)
	k.write(ctx, r)
	ctx, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	if _, err := Prune(ctx, k.Shelf, time.Now(), k.Limit); err != nil {
		k.Log.Warn("cannot remove old reports of applications", "err", err)
	}
}

func (k *Keeper) report(s *appmaster.Snapshot) *Report {
	r := k.Base
	r.Format, r.App, r.Job, r.State, r.Started, r.Attempt, r.Snapshot = Format, s.App, s.Job, s.State, s.Started, s.MasterAttempt, s
	return &r
}

// recall takes what an earlier attempt's report says, once, before that is replaced.
func (k *Keeper) recall(ctx context.Context, r *Report) {
	if k.recalled || r.Attempt == 0 {
		return
	}
	k.recalled = true
	data, err := k.Shelf.Get(ctx, r.App)
	if err != nil {
		return // it was killed before it wrote one
	}
	if old, err := Decode(data); err == nil && old.Attempt < r.Attempt {
		k.Base.Earlier = append(old.Earlier, old.sum())
	}
}

// write stores a report. That it fails is no reason for the job to.
func (k *Keeper) write(ctx context.Context, r *Report) {
	r.Written = time.Now()
	ctx, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	if k.recall(ctx, r); k.Base.Earlier != nil {
		r.Earlier = k.Base.Earlier
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = k.Shelf.Put(ctx, r.App, append(data, '\n'))
	}
	if err != nil {
		k.Log.Warn("cannot write the application's report for heddle history", "err", err)
	}
}

func final(state string) bool { return state == "finished" || state == "failed" || state == "canceled" }
