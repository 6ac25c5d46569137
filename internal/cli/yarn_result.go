package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/yarnclient"
)

// totals are the last figures of a job, as its ApplicationMaster told YARN in words.
type totals struct {
	in, out int64  // records from sources, records into sinks
	took    string // "": not told
}

// toldTotals is what finalStatus writes. The job's name stands before it.
var toldTotals = regexp.MustCompile(`^([0-9,]+) records in, ([0-9,]+) out(?: in ([0-9.hmsµn]+))?(?:;|$)`)

// totalsOf reads the diagnostics of an application whose job finished or was cancelled.
func totalsOf(a *yarnclient.App) (t totals, ok bool) {
	text := strings.TrimPrefix(firstLine(a.Diagnostics, ""), "the job "+printable(a.Name))
	for _, how := range []string{" finished: ", " was cancelled: "} {
		told, found := strings.CutPrefix(text, how)
		if !found {
			continue
		}
		if m := toldTotals.FindStringSubmatch(told); m != nil {
			in, ierr := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
			out, oerr := strconv.ParseInt(strings.ReplaceAll(m[2], ",", ""), 10, 64)
			return totals{in, out, m[3]}, ierr == nil && oerr == nil
		}
	}
	return t, false
}

// sawEnd reports whether the last snapshot is that of the end: then its figures are the last ones.
func (r *yarnRun) sawEnd() bool { return r.last != nil && isFinal(r.last.State) }

// finished tells that the job has come to its end, with no figures that are older.
func (r *yarnRun) finished(result *appmaster.Result, a *yarnclient.App) {
	if r.sawEnd() {
		r.progress.finished(result)
		return
	}
	r.progress.final(result)
	if r.progress.silent {
		return
	}
	text := ": " + result.Job + "; its last figures are not known"
	if t, ok := totalsOf(a); ok {
		text = ": " + result.Job
		if t.took != "" {
			text += " in " + t.took
		}
		text += fmt.Sprintf(", %s records in, %s out", number(t.in), number(t.out))
	}
	r.progress.say(r.progress.out.paint(green, "finished") + text)
}

// printJSON prints the result for programs: figures only if they are the last ones.
func (r *yarnRun) printJSON(result appmaster.Result, a *yarnclient.App) error {
	if r.sawEnd() {
		return r.s.out.json(runResultOf(result))
	}
	result.Vertices = nil
	if t, ok := totalsOf(a); ok {
		return r.s.out.json(runResult{result, t.in, t.out})
	}
	return r.s.out.json(result)
}
