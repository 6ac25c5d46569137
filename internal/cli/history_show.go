package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/history"
	"github.com/heddle-stream/heddle/yarnclient"
)

// reportState says where the job stood.
func reportState(r *history.Report) string {
	if r.Complete {
		return r.State
	}
	return r.State + " when last seen"
}

// reportSpan is how long the application ran, as far as the report knows.
func reportSpan(r *history.Report) string {
	end := r.Ended
	if end.IsZero() {
		end = r.Written
	}
	return end.Sub(r.Started).Round(time.Second).String()
}

// showReport prints a report. seen is what YARN remembers of the application, nil: nothing; runs says that it has not ended.
func (s *session) showReport(r *history.Report, seen *yarnclient.App, runs, asJSON, all bool) error {
	if asJSON {
		out := struct {
			*history.Report
			YARN *yarnReport `json:"yarn,omitempty"`
		}{Report: r}
		if seen != nil {
			out.YARN = yarnState(*seen).YARN
		}
		return s.out.json(out)
	}
	if _, err := fmt.Fprint(s.env.Stdout, s.reportHead(r, seen, runs)); err != nil || r.Snapshot == nil {
		return err
	}
	snap := r.Snapshot
	return errors.Join(s.titled("Failures", []string{"TIME", "KIND", "WHERE", "WHAT"}, failureRows(snap)),
		s.titled("Vertices", []string{"VERTEX", "TASKS", "STATE", "IN", "OUT", "BUSY", "BLOCKED", "BEHIND"}, vertexRows(r)),
		s.titled("Sources", []string{"SOURCE", "SPLIT", "READER", "POSITION", "TO READ", "RECORDS"}, reportSplitRows(snap)),
		s.titled("Containers", containerHead, containerRows(snap)),
		s.titled("Course", []string{"TIME", "JOB"}, courseRows(snap)),
		s.titled("Configuration", []string{"OPTION", "VALUE", "FROM"}, optionRows(r, all)))
}

// titled prints a table under a title; without rows nothing.
func (s *session) titled(title string, head []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(s.env.Stdout, "\n"+s.out.paint(bold, title))
	return errors.Join(err, s.out.table(head, rows))
}

func (s *session) reportHead(r *history.Report, seen *yarnclient.App, runs bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s, started %s, for %s\n", printable(r.App), dash(printable(r.Job)), s.out.paint(stateColour(r.State), printable(reportState(r))), r.Started.Local().Format(clock), reportSpan(r))
	if !r.Complete {
		after := "and nothing after it"
		if runs {
			after = fmt.Sprintf("the application runs still: `%s status %s` tells more", s.env.Program, r.App)
		}
		fmt.Fprintf(&b, "not complete: written %s, %s\n", r.Written.Local().Format(clock), after)
	}
	if r.Ending != "" {
		fmt.Fprintf(&b, "the ApplicationMaster was ending: %s\n", printable(r.Ending))
	}
	if r.User != "" {
		fmt.Fprintf(&b, "user %s, queue %s, attempt %d of the ApplicationMaster, heddle %s\n", printable(r.User), dash(printable(r.Queue)), r.Attempt+1, printable(r.Version))
	}
	for _, e := range r.Earlier {
		why := e.Ending
		if e.Cause != nil {
			why = strings.TrimSuffix(e.Cause.Message+"; "+why, "; ")
		}
		if why != "" {
			why = ": " + why
		}
		fmt.Fprintf(&b, "attempt %d was %s when last seen at %s%s\n", e.Attempt+1, printable(e.State), e.Written.Local().Format(clock), printable(why))
	}
	if r.Snapshot != nil && r.Snapshot.Cause != nil {
		c := r.Snapshot.Cause
		fmt.Fprintf(&b, "cause: %s\n", printable(c.Message))
		for _, line := range c.LastLogs {
			fmt.Fprintf(&b, "  | %s\n", printable(line))
		}
	}
	if seen != nil {
		state := yarnState(*seen)
		fmt.Fprintf(&b, "YARN: %s\n", state.State)
		if d := strings.TrimSpace(seen.Diagnostics); d != "" && state.Ended != nil {
			fmt.Fprintf(&b, "YARN says: %s\n", printable(firstLine(d, "")))
		}
	}
	return b.String()
}

func failureRows(snap *appmaster.Snapshot) (rows [][]string) {
	for _, c := range snap.Failures {
		rows = append(rows, []string{c.Time.Local().Format(time.TimeOnly), c.Kind, dash(place(&c)), firstLine(printable(c.Message), "")})
	}
	return rows
}

func vertexRows(r *history.Report) (rows [][]string) {
	for _, v := range r.Snapshot.Vertices {
		in, _ := recordsIn(v)
		rows = append(rows, []string{v.Name, fmt.Sprint(v.Parallelism), tasks(v.Tasks), number(in), number(v.RecordsOut), share(v.Busy), share(v.Blocked), behind(r.Snapshot.Time, v.Watermark)})
	}
	return rows
}

func reportSplitRows(snap *appmaster.Snapshot) (rows [][]string) {
	for _, src := range snap.Sources {
		for _, p := range src.Splits {
			left := "-"
			if p.End >= 0 && p.Position >= 0 {
				left = number(max(0, p.End-p.Position))
			}
			rows = append(rows, []string{src.Name, p.ID, fmt.Sprint(p.Subtask), number(p.Position), left, number(p.Records)})
		}
	}
	return rows
}

// containerHead is the head of tables of containers.
var containerHead = []string{"CONTAINER", "AGENT", "HOST", "GRANTED", "RAN", "STATUS", "END"}

// mostFailed is how many containers that failed a status shows.
const mostFailed = 5

// failedContainers show the latest containers that ended by their own fault.
func failedContainers(snap *appmaster.Snapshot) [][]string {
	failed := &appmaster.Snapshot{Time: snap.Time}
	for _, c := range snap.Held {
		if c.Exit != nil && c.Exit.Failed {
			failed.Held = append(failed.Held, c)
		}
	}
	failed.Held = failed.Held[max(0, len(failed.Held)-mostFailed):]
	return containerRows(failed)
}

// containerRows show containers with how they ended.
func containerRows(snap *appmaster.Snapshot) (rows [][]string) {
	for _, c := range snap.Held {
		ran, status, end := "-", "-", c.State
		if from := cmp.Or(c.Started, c.Granted); !from.IsZero() {
			ran = cmp.Or(c.Ended, snap.Time).Sub(from).Round(time.Second).String()
		}
		if x := c.Exit; x != nil {
			end = x.Reason
			if x.Status != nil {
				status = fmt.Sprint(*x.Status)
			}
			if x.Fix != "" && !strings.Contains(x.Reason, x.Fix) {
				end += " (" + x.Fix + ")"
			}
		}
		granted := "-"
		if !c.Granted.IsZero() {
			granted = c.Granted.Local().Format(time.TimeOnly)
		}
		rows = append(rows, []string{c.ID, c.Agent, dash(c.Host), granted, ran, status, firstLine(printable(end), "")})
	}
	return rows
}

func courseRows(snap *appmaster.Snapshot) (rows [][]string) {
	for _, st := range snap.States {
		rows = append(rows, []string{st.Time.Local().Format(clock), st.State})
	}
	return rows
}

func optionRows(r *history.Report, all bool) (rows [][]string) {
	sorted := slices.Clone(r.Options)
	slices.SortFunc(sorted, func(a, b history.Option) int { return cmp.Compare(a.Name, b.Name) })
	for _, o := range sorted {
		if all || o.Origin != "default" {
			rows = append(rows, []string{o.Name, dash(printable(o.Value)), o.Origin})
		}
	}
	return rows
}
