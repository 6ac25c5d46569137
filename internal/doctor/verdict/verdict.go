// Package verdict judges what the probes of `heddle doctor` saw: whether a precondition is met, what it means if it is not, and how to mend it.
// It asks nobody; package doctor does that.
package verdict

import (
	"fmt"
	"strings"
)

// Status is how a precondition was found.
type Status string

// Statuses, the best first.
const (
	Pass    Status = "pass"
	Warn    Status = "warn"    // it works, and something had better be mended
	Fail    Status = "fail"    // a job that needs it won't run
	Skipped Status = "skipped" // not looked at, for a reason
)

// Verdict is what is to be said of a precondition.
type Verdict struct {
	Status    Status
	Diagnosis string // what is wrong, in a word that stays the same between versions, such as kdc-unreachable; "" where nothing is
	Means     string // what was found, and what that means
	Fix       string // how to mend it
}

func pass(format string, args ...any) Verdict {
	return Verdict{Status: Pass, Means: fmt.Sprintf(format, args...)}
}

func warn(diagnosis, fix, format string, args ...any) Verdict {
	return Verdict{Warn, diagnosis, fmt.Sprintf(format, args...), fix}
}

func fail(diagnosis, fix, format string, args ...any) Verdict {
	return Verdict{Fail, diagnosis, fmt.Sprintf(format, args...), fix}
}

// Skip is the verdict on what was not looked at.
func Skip(why string) Verdict { return Verdict{Status: Skipped, Means: why} }

// TimedOut is the verdict on what did not end in its time.
func TimedOut(limit string) Verdict {
	return fail("no-answer", "look whether a firewall drops packets on the way; those that refuse answer at once", "no answer within %s", limit)
}

// All joins verdicts on parts of one thing: the worst status counts, with its diagnosis, and all that is not well is told.
func All(vs []Verdict) Verdict {
	rank := map[Status]int{Skipped: 0, Pass: 1, Warn: 2, Fail: 3}
	var out Verdict
	var good, bad, fixes []string
	for _, v := range vs {
		if rank[v.Status] > rank[out.Status] || out.Status == "" {
			out.Status, out.Diagnosis = v.Status, v.Diagnosis
		}
		if v.Status == Pass {
			good = append(good, v.Means)
			continue
		}
		bad = append(bad, v.Means)
		if v.Fix != "" && !contains(fixes, v.Fix) {
			fixes = append(fixes, v.Fix)
		}
	}
	out.Means, out.Fix = strings.Join(append(bad, good...), "; "), strings.Join(fixes, "; ")
	return out
}

func contains(all []string, s string) bool {
	for _, a := range all {
		if a == s {
			return true
		}
	}
	return false
}

// count writes a number with a noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
