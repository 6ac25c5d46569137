package sim

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// TestScripts plays what the files in testdata/scripts say; nothing is left to chance. Every command prints what came of it.
//
//	new [slots=1] [min=0] [max=0] [spare=0] [budget=0] [restarts=0] [idle=30s] [hosts=1] [hostfailures=0] [evenly] [timeout=30s] [life=0s]
//	                       the jobs are in the input, one a line: NAME:PARALLELISM[:GROUP]…, each vertex reading the one before
//	start JOB [held]       JOB is the number of its line, from 1
//	checked JOB | cancel JOB | finish JOB [VERTEX]
//	run DURATION           time passes
//	kill AGENT | vanish AGENT (unseen by its driver) | preempt AGENT | freeze AGENT | thaw AGENT | cut AGENT | lose AGENT (its messages)
//	driver [most=N] [surplus=N] [slow=D] [mute] [away] | exit AGENT (the end is told again) | restart [forget] (of the master, which forgets its agents)
//	where                  which tasks are where, by slot
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	w       *world
	printed int
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	opt, words := map[string]string{}, []string(nil)
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 1 {
			opt[a.Key] = a.Vals[0]
		} else {
			words = append(words, a.Key)
		}
	}
	num := func(text string) int {
		if text == "" {
			return 0
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return n
	}
	dur := func(text string) time.Duration {
		if text == "" {
			return 0
		}
		v, err := time.ParseDuration(text)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return v
	}
	job := func() int { return num(words[0]) - 1 }
	event := func(ev sched.Event) { s.w.master.plane.JobEvent(s.w.now, job(), ev) }
	agent := func() *agent {
		a := s.w.agents[cluster.AgentID(words[0])]
		if a == nil {
			d.Fatalf(t, "there is no agent %s", words[0])
		}
		return a
	}
	switch d.Cmd {
	case "new":
		cfg := config{restarts: num(opt["restarts"]), hosts: max(1, num(opt["hosts"])), life: dur(opt["life"])}
		cfg.agents = slotmgr.Config{
			SlotsPerAgent: max(1, num(opt["slots"])), MinAgents: num(opt["min"]), MaxAgents: num(opt["max"]), SpareAgents: num(opt["spare"]),
			FailureBudget: num(opt["budget"]), HostFailures: num(opt["hostfailures"]), IdleTimeout: dur(opt["idle"]), EvenlySpread: d.HasArg("evenly"),
			HeartbeatTimeout: 10 * time.Second,
		}
		cfg.slots.Timeout = dur(opt["timeout"])
		if d.HasArg("evenly") {
			cfg.slots.Strategy = slotpool.EvenlySpread
		}
		for line := range strings.Lines(d.Input) {
			g, err := parseJob(strings.Fields(line))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			cfg.jobs = append(cfg.jobs, g)
		}
		s.w, s.printed = newWorld(cfg, nil), 0
	case "start":
		event(sched.Start{Held: len(words) > 1})
	case "checked":
		event(sched.Checked{})
	case "cancel":
		event(sched.Cancel{Reason: "ctrl-C"})
	case "finish":
		for _, a := range s.w.order {
			for _, x := range a.order {
				if x.job == job() && !a.dead && (len(words) == 1 || s.w.cfg.jobs[x.job].Vertices[x.id.Vertex].Name == words[1]) {
					a.end(x, false)
				}
			}
		}
	case "run":
		s.w.run(dur(words[0]))
	case "kill":
		agent().die("killed by signal 9", true)
	case "vanish": // its driver does not see that
		a := agent()
		a.dead = true
		a.link.cut()
	case "preempt":
		agent().die("preempted", false)
	case "freeze":
		agent().frozen = true
	case "thaw":
		agent().thaw()
	case "cut":
		agent().link.cut()
	case "lose":
		agent().link.hole = true
	case "exit":
		s.w.driver.exited(agent(), "told again", true)
	case "driver":
		s.w.driver.most, s.w.driver.surplus, s.w.driver.slow, s.w.driver.mute = num(opt["most"]), num(opt["surplus"]), dur(opt["slow"]), d.HasArg("mute")
		s.w.driver.away = d.HasArg("away")
	case "restart":
		s.w.restart(d.HasArg("forget"))
	case "where":
		return s.where()
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	s.w.settle()
	return s.news()
}

// news is what was not printed yet.
func (s *script) news() string {
	lines := s.w.lines[s.printed:]
	s.printed = len(s.w.lines)
	if len(lines) == 0 {
		return "ok\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

// where shows the slots in use and their tasks.
func (s *script) where() string {
	tasks := map[cluster.SlotID][]string{}
	for j, job := range s.w.master.plane.Jobs {
		for v := range s.w.cfg.jobs[j].Vertices {
			for e := range job.Sched.Executions(v) {
				if e.Slot.Agent != "" && !e.State.Final() {
					tasks[e.Slot] = append(tasks[e.Slot], fmt.Sprintf("j%d:%s.%d", j+1, s.w.cfg.jobs[j].Vertices[v].Name, e.ID.Subtask))
				}
			}
		}
	}
	var out strings.Builder
	for a := range s.w.master.plane.Slots.Agents() {
		fmt.Fprintf(&out, "%s on %s, %v:", a.ID, a.Host, a.State)
		for i, u := range a.Slots {
			fmt.Fprintf(&out, " [%s]", content(tasks[cluster.SlotID{Agent: a.ID, Index: i}], u))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// content is what a slot shows.
func content(tasks []string, u slotmgr.Use) string {
	switch {
	case len(tasks) > 0:
		return strings.Join(tasks, " ")
	case u.Allocation != 0:
		return string(u.Job) + ": idle"
	}
	return ""
}
