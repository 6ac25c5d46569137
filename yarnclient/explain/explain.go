// Package explain says in words why an application's containers, or its master, are not coming, and what helps. It is pure: it
// judges what the ResourceManager reported (package report), and knows its texts.
//
// A finding that blocks is one that waiting does not mend; one that delays passes when others give back what they have.
package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/yarnclient/report"
)

// Facts are what is known. Parts that could not be had are empty: what depends on them is not judged.
type Facts struct {
	App        report.App
	Scheduler  report.Scheduler
	Nodes      []report.Node // of every state
	Labels     []string      // of the cluster
	NoLabels   bool          // Labels is not known
	Activities []report.Diagnostic

	Now     time.Time
	Manager time.Time     // when the active ResourceManager started
	Expiry  time.Duration // for how long an ApplicationMaster may be silent; 0: not known
}

// Grade is how bad a finding is.
type Grade string

// Grades.
const (
	Blocks Grade = "blocks" // waiting does not help
	Delays Grade = "delays" // it passes when others finish or give back
	Notes  Grade = "note"
)

// Finding is one reason.
type Finding struct {
	Grade Grade  `json:"grade"`
	Kind  string `json:"kind"` // for programs, such as queue-full
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"`
}

// Report is the explanation.
type Report struct {
	Headline string       `json:"headline"`
	Waits    string       `json:"waits,omitempty"` // "master", "containers", or "" if it waits for nothing
	Asks     []report.Ask `json:"asks,omitempty"`  // open ones, one a kind
	Findings []Finding    `json:"findings,omitempty"`
}

// Waits.
const (
	Master     = "master"
	Containers = "containers"
)

// Explain judges the facts.
func Explain(f Facts) Report {
	x := &explanation{f: f}
	x.queue, x.known = report.Find(f.Scheduler.Queues, f.App.Queue)
	switch {
	case f.App.Ended():
		x.ended()
	case f.App.State == report.StateRunning:
		x.running()
	case f.App.State == report.StateAccepted:
		x.accepted()
	default:
		x.r.Headline = fmt.Sprintf("YARN has not accepted it yet (it is %s)", f.App.State)
		x.r.Waits = Master
		x.add(Delays, "not-accepted", "The ResourceManager is still noting the application down, or renewing its delegation tokens.",
			"If that lasts longer than some seconds, the ResourceManager's state store or a token's service is slow: ask its administrators.")
	}
	return x.r
}

// explanation is one under way.
type explanation struct {
	f     Facts
	queue report.Queue
	known bool // queue is
	r     Report
}

// add notes a finding, once of a kind and text.
func (x *explanation) add(g Grade, kind, text, fix string) {
	for _, f := range x.r.Findings {
		if f.Kind == kind && f.Text == text {
			return
		}
	}
	x.r.Findings = append(x.r.Findings, Finding{g, kind, text, fix})
}

func (x *explanation) has(kinds ...string) bool {
	for _, f := range x.r.Findings {
		for _, k := range kinds {
			if f.Kind == k {
				return true
			}
		}
	}
	return false
}

// settle puts what blocks first, keeping the order otherwise.
func (x *explanation) settle() {
	var out []Finding
	for _, g := range []Grade{Blocks, Delays, Notes} {
		for _, f := range x.r.Findings {
			if f.Grade == g {
				out = append(out, f)
			}
		}
	}
	x.r.Findings = out
}

// running explains what a running application still waits for.
func (x *explanation) running() {
	x.r.Asks = open(x.f.App.Asks)
	if len(x.r.Asks) == 0 {
		x.r.Headline = fmt.Sprintf("It runs with %s, and asks YARN for nothing more", count(x.f.App.Containers, "container"))
		return
	}
	n := 0
	for _, a := range x.r.Asks {
		n += a.Count
	}
	x.r.Waits = Containers
	x.r.Headline = fmt.Sprintf("It runs with %s, and waits for %d more", count(x.f.App.Containers, "container"), n)
	for _, a := range x.r.Asks {
		x.ask(a, false)
	}
	x.activities()
	if !x.f.App.Reserved.IsZero() {
		x.add(Notes, "reserved", fmt.Sprintf("YARN has reserved %s on a node for it, and gives it when others there give back.", x.f.App.Reserved), "")
	}
	if len(x.r.Findings) == 0 {
		x.add(Delays, "unknown", "Neither the queue's limits nor the nodes show a reason. The ask may be too young for the scheduler to have seen it.", "Ask again in some seconds.")
	}
	x.settle()
}

// open is the asks as one a kind: the total of a kind is that for any place, those for hosts and racks are part of it.
func open(asks []report.Ask) []report.Ask {
	var out []report.Ask
	for _, a := range asks {
		if a.Where == "*" && a.Count > 0 {
			out = append(out, a)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, a := range asks {
		if a.Count > 0 {
			out = append(out, a)
		}
	}
	return out
}

// ended says what became of an application that is over.
func (x *explanation) ended() {
	a := x.f.App
	x.r.Headline = fmt.Sprintf("It is over: %s", strings.ToLower(a.State))
	if a.State == report.StateFinished && a.FinalStatus != "" {
		x.r.Headline += ", as its master reported: " + strings.ToLower(a.FinalStatus)
	}
	d := a.Diagnostics
	if d == "" {
		return
	}
	for _, e := range endings {
		if strings.Contains(d, e.sign) {
			x.add(Blocks, e.kind, firstLine(d), e.fix)
			return
		}
	}
	x.add(Notes, "diagnostics", firstLine(d), "")
}

// endings are texts of applications that YARN did not start or ended.
var endings = []struct{ sign, kind, fix string }{
	{"to unknown queue", "queue-unknown", "Choose one of `heddle queues` with --queue, or leave --queue out, so that the cluster's own rules place the application."},
	{"to non-leaf queue", "queue-not-leaf", "A queue with queues below it takes no applications: choose a leaf of `heddle queues`."},
	{"is STOPPED", "queue-stopped", "Choose another queue with --queue, or have this one started."},
	{"is DRAINING", "queue-stopped", "Choose another queue with --queue: this one takes no new applications."},
	{"cannot submit applications to queue", "queue-denied", "Choose a queue that you may submit to, or ask for the right to submit to this one (acl_submit_applications)."},
	{"already has", "queue-apps", "The queue has its most applications: end some, or choose another queue."},
	{"Failed to renew token", "token-renewal", "The ResourceManager may not renew a delegation token of the submission: its renewer is not the ResourceManager's principal, or the token's service is not known there."},
	{"exceeded the lifetime", "lifetime", "YARN ended it at the end of its lifetime: raise yarn.lifetime, or have the queue's maximum raised."},
	{"exitCode: 126", "not-executable", "The program may not be executed on that node, whose local directories may be mounted noexec: have programs allowed there, or use one that is installed on the nodes (yarn.binary)."},
	{"exitCode: -103", "master-memory", "The ApplicationMaster used more virtual memory than the node allows: raise appmaster.memory, or have the check switched off (yarn.nodemanager.vmem-check-enabled)."},
	{"exitCode: -104", "master-memory", "The ApplicationMaster used more memory than its container has: raise appmaster.memory."},
	{"exitCode: 137", "master-killed", "The ApplicationMaster was killed by a signal that it can't resist, by the kernel when memory ran out or by somebody: raise appmaster.memory if it was memory; its log tells how far it came."},
	{"changed on src filesystem", "file-changed", "A file in HDFS changed after the submission: submit again, and let nothing write to the staging directory."},
}

// Fix is what helps against what YARN says of an application that it did not start or ended; "": nothing that is known.
func Fix(diagnostics string) string {
	for _, e := range endings {
		if strings.Contains(diagnostics, e.sign) {
			return e.fix
		}
	}
	return ""
}

func firstLine(s string) string {
	s = strings.TrimSpace(s)
	line, rest, more := strings.Cut(s, "\n")
	if len(line) > 600 {
		return line[:600] + "…"
	}
	if more && strings.TrimSpace(rest) != "" && len(line) < 60 {
		next, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
		line += " " + next
	}
	return line
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
