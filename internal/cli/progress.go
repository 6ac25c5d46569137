package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

// progress shows how an application goes, on stderr: a line that is rewritten on a terminal, plain lines
// at each change and every few seconds in a pipe.
type progress struct {
	out     *terminal
	job     string
	app     string
	quiet   bool
	table   bool // another view takes over when the job runs, and shows the dashboard's address
	silent  bool // another view shows the figures; changes of state are still told
	times   *timings
	timings bool // print times at the end

	begun   time.Time
	last    string // what was said last
	spoken  time.Time
	onLine  bool      // the terminal's line is in use
	held    bool      // the job runs, but something holds it up, and that was told
	halted  time.Time // since when something does; zero: nothing
	state   string
	figures figures
	past    []figures // of the last seconds, oldest first
	missed  time.Time // since when the ApplicationMaster does not answer
}

// figures are what a line of progress shows of a snapshot.
type figures struct {
	at        time.Time
	in, out   int64 // records from sources, records into sinks
	rate      float64
	watermark *int64 // lowest of all vertices that have one
}

// plainEvery is the time between plain lines of a job that runs.
const plainEvery = 10 * time.Second

func newProgress(s *session, job, app string, quiet bool, times *timings) *progress {
	return &progress{out: newTerminal(s.env, s.env.Stderr), job: job, app: app, quiet: quiet, times: times, begun: time.Now()}
}

// interval is how often to look at a job that runs.
func (p *progress) interval() time.Duration {
	if p.figures.out == 0 && p.times != nil {
		return 20 * time.Millisecond // not to be late for the first record
	}
	if p.out.tty && !p.quiet {
		return 250 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// say prints a line, whatever was said before.
func (p *progress) say(text string) {
	if p.quiet {
		return
	}
	p.clear()
	fmt.Fprintln(p.out.w, text)
	p.last, p.spoken = text, time.Now()
}

// update rewrites the line on a terminal; in a pipe it prints what is new, or not said for a while.
func (p *progress) update(text string, isNew bool) {
	if p.quiet {
		return
	}
	if p.out.tty {
		p.out.measure()
		text = cut(text, p.out.width-1)
		if !p.onLine || text != p.last {
			fmt.Fprint(p.out.w, "\r\x1b[K"+text)
			p.onLine, p.last = true, text
		}
		return
	}
	if (isNew && text != p.last) || time.Since(p.spoken) >= plainEvery {
		fmt.Fprintln(p.out.w, text)
		p.last, p.spoken = text, time.Now()
	}
}

func (p *progress) clear() {
	if p.onLine {
		fmt.Fprint(p.out.w, "\r\x1b[K")
		p.onLine = false
	}
}

// done leaves the terminal as it was, and prints the timings that were asked for.
func (p *progress) done() {
	p.clear()
	if p.timings {
		p.times.print(p.out.w)
	}
}

// waiting tells what the start waits for; in a pipe, once it takes longer than a start should.
func (p *progress) waiting(what string) {
	if p.out.tty || time.Since(p.begun) > time.Second {
		p.update(p.app+": waiting "+what, p.last == "")
	}
}

// unanswered tells of an ApplicationMaster that has not answered for some seconds.
func (p *progress) unanswered(err error) {
	if p.missed.IsZero() {
		p.missed = time.Now()
	}
	if d := time.Since(p.missed); d > 3*time.Second {
		p.update(fmt.Sprintf("%s: no answer for %s: %v", p.app, d.Round(time.Second), err), false)
	}
}

// show tells the state that snap has.
func (p *progress) show(snap *appmaster.Snapshot, dashboard string) {
	p.missed = time.Time{}
	isNew := snap.State != p.state
	if p.times != nil {
		p.times.markAt("ApplicationMaster started", snap.Started)
	}
	if isNew && snap.State == "running" {
		if p.times != nil {
			p.times.agents(snap)
		}
		if !p.silent && !p.table {
			p.say(fmt.Sprintf("%s: dashboard %s", p.app, dashboard))
		}
	}
	p.state = snap.State
	p.take(snap)
	if p.figures.out > 0 && p.times != nil {
		p.times.mark("first record out")
	}
	switch {
	case p.silent:
	case snap.State == "created" || snap.State == "waiting":
		what := snap.Waiting
		if what == "" {
			what = "the job to start"
		}
		p.waiting("for " + what)
	default:
		p.trouble(snap.Waiting, time.Now())
		if !isFinal(snap.State) { // else what it came to is told next
			p.update(p.line(snap), isNew)
		}
	}
}

// heldUp is how long something holds a job up until that is told: tasks take a moment to open at every start.
const heldUp = 2 * time.Second

// trouble tells what holds a running job up, once that lasts, and when it is over.
func (p *progress) trouble(what string, now time.Time) {
	switch {
	case what == "":
		if p.held {
			p.say(p.app + ": goes on")
		}
		p.held, p.halted = false, time.Time{}
	case p.halted.IsZero():
		p.halted = now
	case !p.held && now.Sub(p.halted) >= heldUp:
		p.held = true
		p.say(p.app + ": held up by " + what)
	}
}

func (p *progress) line(snap *appmaster.Snapshot) string {
	b := fmt.Sprintf("%s: %s for %s, %s records in (%s/s), %s out", p.app, snap.State,
		snap.Time.Sub(snap.Started).Round(time.Second), number(p.figures.in), number(int64(p.figures.rate)), number(p.figures.out))
	if w := p.figures.lag(); w != "" {
		b += ", event time " + w
	}
	return b
}

// rateOver is the time over which rates are taken: several reports of the agents, which come once a second.
const rateOver = 5 * time.Second

// take keeps the figures of snap and works out the rate over the last seconds.
func (p *progress) take(snap *appmaster.Snapshot) {
	f := figuresOf(snap)
	if !f.at.After(p.figures.at) {
		return
	}
	if f.in < p.figures.in {
		p.past = nil // the job has begun afresh, and so does the rate
	}
	if f.in != p.figures.in || len(p.past) == 0 {
		for len(p.past) > 1 && f.at.Sub(p.past[0].at) > rateOver {
			p.past = p.past[1:]
		}
		p.past = append(p.past, f)
	}
	first, last := p.past[0], p.past[len(p.past)-1]
	if d := last.at.Sub(first.at); d > 0 && f.at.Sub(last.at) < rateOver {
		f.rate = float64(last.in-first.in) / d.Seconds()
	}
	p.figures = f
}

func figuresOf(snap *appmaster.Snapshot) figures {
	f := figures{at: snap.Time}
	for _, v := range snap.Vertices {
		for _, op := range v.Operators {
			switch op.Kind {
			case "source":
				f.in += op.Counters["records_out"]
			case "sink":
				f.out += op.Counters["records_in"]
			}
		}
		if w := v.Watermark; w != nil && (f.watermark == nil || *w < *f.watermark) {
			f.watermark = w
		}
	}
	return f
}

// lag says how far event time is behind the clock, "" if it is not known or at its end.
func (f figures) lag() string {
	if f.watermark == nil || *f.watermark == math.MaxInt64 {
		return ""
	}
	behind := f.at.Sub(time.UnixMilli(*f.watermark))
	if behind < 0 || behind > 366*24*time.Hour {
		return "at " + time.UnixMilli(*f.watermark).UTC().Format("2006-01-02 15:04:05")
	}
	return behind.Round(100*time.Millisecond).String() + " behind"
}

// finished tells that the job has come to its end.
func (p *progress) finished(result *appmaster.Result) {
	p.final(result)
	if !p.silent {
		p.say(p.out.paint(green, "finished") + fmt.Sprintf(": %s in %s, %s records in, %s out", result.Job,
			result.Ended.Sub(result.Started).Round(time.Millisecond), number(p.figures.in), number(p.figures.out)))
	}
}

// final takes the last figures and prints the timings.
func (p *progress) final(result *appmaster.Result) {
	p.take(&appmaster.Snapshot{Time: result.Ended, Vertices: result.Vertices})
	for _, w := range result.Warnings {
		if !p.silent {
			p.say("warning: " + printable(w.Message))
		}
	}
}

// number is n with commas between thousands.
func number(n int64) string {
	text := fmt.Sprint(n)
	var b strings.Builder
	for i, r := range text {
		if i > 0 && r != '-' && (len(text)-i)%3 == 0 && text[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}
