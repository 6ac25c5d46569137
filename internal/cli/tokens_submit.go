package cli

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/creds"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// endless reports whether a job goes on until somebody ends it: one of its sources does not end by itself.
func endless(g *flow.Graph) bool {
	for _, n := range g.Nodes {
		if n.Source != nil && !n.Source.Bounded() {
			return true
		}
	}
	return false
}

// shortLife is a maximum life of tokens that is told of whatever the job.
const shortLife = 12 * time.Hour

// lifeNote tells how long an application without a keytab can run, and what to do; "": it has one, it needs no tokens, or they are good for longer than
// a job that ends by itself is likely to take.
func lifeNote(c token.Credentials, id, program string, endless bool, now time.Time) string {
	if c.Secret(kerberosSecret) != nil {
		return ""
	}
	notes, err := creds.Notes(c)
	if err != nil {
		return ""
	}
	var needed []creds.Held
	for _, h := range creds.Describe(c, notes) {
		if !minorToken(h.Kind) {
			needed = append(needed, h)
		}
	}
	first, ok := creds.First(needed)
	left := first.Until.Sub(now)
	if !ok || !endless && left >= shortLife {
		return ""
	}
	return fmt.Sprintf("without a keytab, the job can run until %s (%s from now), when its token for %s ends for good: hand in fresh ones before by %s tokens push %s, or submit it with --kerberos.keytab",
		first.Until.Local().Format(clock), roughly(left), first.Service, program, id)
}

// roughly is a long time for people.
func roughly(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	case d >= time.Hour:
		return d.Round(time.Minute).String()
	}
	return d.Round(time.Second).String()
}
