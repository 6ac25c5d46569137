package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
)

// check is one precondition. What run finds out for later checks it keeps in the patient before it returns.
type check struct {
	name, title string
	needs       []string // checks that must not have failed, nor have been skipped
	wants       []string // the same, but those that were skipped since there is nothing to look at do not matter
	after       []string // checks whose outcome does not matter, only that they are over
	slow        int      // how many limits it may take; 0: 1
	// run returns what was tried and how it is to be judged.
	run func(ctx context.Context) (tried string, v verdict.Verdict)
}

// perform runs checks side by side, each after those it needs, and returns their results in order. Every goroutine has ended when it returns.
func perform(ctx context.Context, checks []check, limit time.Duration, tell func(Result)) []Result {
	results := make([]Result, len(checks))
	done := make([]chan struct{}, len(checks))
	for i := range checks {
		done[i] = make(chan struct{})
	}
	at := func(name string) int {
		return slices.IndexFunc(checks, func(c check) bool { return c.name == name })
	}
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			defer close(done[i])
			for _, n := range slices.Concat(c.needs, c.wants, c.after) {
				<-done[at(n)]
			}
			if why := unmet(checks, results, c, at); why != "" {
				results[i] = result(c, "", verdict.Skip(why), 0)
				return
			}
			results[i] = one(ctx, c, limit*time.Duration(max(1, c.slow)))
		})
	}
	for i := range checks {
		<-done[i]
		if tell != nil {
			tell(results[i])
		}
	}
	wg.Wait()
	return results
}

// unmet says which needed check keeps one from running, "" if none does.
func unmet(checks []check, results []Result, c check, at func(string) int) string {
	var missing []string
	for i, n := range slices.Concat(c.needs, c.wants) {
		switch r := results[at(n)]; r.Status {
		case verdict.Fail:
			missing = append(missing, checks[at(n)].title)
		case verdict.Skipped:
			of, failed := strings.CutPrefix(r.Means, needsPrefix)
			switch {
			case failed:
				missing = append(missing, of)
			case i < len(c.needs):
				return r.Means // there is nothing to look at here either
			}
		}
	}
	if len(missing) == 0 {
		return ""
	}
	slices.Sort(missing)
	return needsPrefix + strings.Join(slices.Compact(missing), ", ")
}

const needsPrefix = "needs "

// one runs a check within its limit.
func one(ctx context.Context, c check, limit time.Duration) Result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	tried, v := c.run(ctx)
	if v.Status == verdict.Fail && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		late := verdict.TimedOut(limit.String())
		v.Means += "; " + late.Means
		if v.Fix == "" {
			v.Fix = late.Fix
		}
	}
	return result(c, tried, v, time.Since(start))
}

func result(c check, tried string, v verdict.Verdict, took time.Duration) Result {
	return Result{Check: c.name, Title: c.title, Status: v.Status, Diagnosis: v.Diagnosis, Tried: tried, Means: v.Means, Fix: v.Fix, Millis: took.Milliseconds()}
}
