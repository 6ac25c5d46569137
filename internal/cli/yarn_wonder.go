package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/explain"
)

// When an application that waits is asked about.
const (
	wonderAfter = 5 * time.Second  // a healthy start is over by then
	wonderEvery = 10 * time.Second // and again
	wonderTime  = 8 * time.Second  // for all the questions
)

// wonder finds out why an application waits, once that takes longer than it should.
func (f *follower) wonder(ctx context.Context, s *sight) {
	waits := s.snap != nil && (s.snap.State == "created" || s.snap.State == "waiting") || s.snap == nil && f.state == yarnclient.StateAccepted
	now := time.Now()
	switch {
	case !waits:
		f.waits, f.wondered, f.why = time.Time{}, time.Time{}, nil
		return
	case f.waits.IsZero():
		f.waits = now
	}
	if now.Sub(f.waits) >= f.patience && now.Sub(f.wondered) >= wonderEvery {
		f.wondered = now
		ctx, cancel := context.WithTimeout(ctx, wonderTime)
		defer cancel()
		if facts, _, err := f.h.factsOf(ctx, f.id, true); err == nil {
			f.why = gist(explain.Explain(facts))
		}
	}
	s.why = f.why
}

// gist is the finding of a report that tells most; nil if none says more than YARN or the ApplicationMaster do by themselves.
func gist(r explain.Report) *explain.Finding {
	i := slices.IndexFunc(r.Findings, func(x explain.Finding) bool {
		return x.Grade == explain.Blocks || x.Grade == explain.Delays && x.Kind != "unknown" && x.Kind != "starting" && x.Kind != "not-accepted"
	})
	if i < 0 {
		return nil
	}
	return &r.Findings[i]
}

// tellWhy says what blocks the application, when that is found out, and returns what the line that is rewritten shows of a reason.
func (r *yarnRun) tellWhy(why *explain.Finding) string {
	if why == nil {
		return ""
	}
	was := r.why
	r.why = why
	isNew := was == nil || was.Kind != why.Kind
	if why.Grade != explain.Blocks {
		if isNew {
			r.progress.spoken = time.Time{} // to be said now, in a pipe too
		}
		return printable(why.Text)
	}
	if isNew {
		text := fmt.Sprintf("%s: blocked: %s", r.id, printable(why.Text))
		if why.Fix != "" {
			text += "\n  what helps: " + printable(why.Fix)
		}
		if r.patience > 0 {
			text += fmt.Sprintf("\n  the job fails when it has waited for its slots for %s (slot.request-timeout)", r.patience)
		}
		r.progress.say(text)
	}
	return "it is blocked, as told above"
}

// whyHints repeat what the application waited for, with what helps.
func (r *yarnRun) whyHints() []string {
	if r.why == nil {
		return nil
	}
	word := "it waited: "
	if r.why.Grade == explain.Blocks {
		word = "blocked: "
	}
	hints := []string{word + printable(r.why.Text)}
	if r.why.Fix != "" {
		hints = append(hints, printable(r.why.Fix))
	}
	return hints
}

// blocked reports whether the application waited for what can't come.
func (r *yarnRun) blocked() bool { return r.why != nil && r.why.Grade == explain.Blocks }
