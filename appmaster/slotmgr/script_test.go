package slotmgr

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// script drives a Machine from a file. Every command prints the effects of its event, then those of Due.
//
//	new [attempt=1] [batch=0] [cut] [total=0] [totalgpu=0] [spare=0] [maxslots=0] [window=0s] [hostfailures=0] [exclusion=10m] [slots=2] [min=0] [max=0] [evenly] [budget=0] [register=30s] [heartbeat=10s] [idle=30s] [hold=10s]
//	granted AGENT… [host=h]           the driver starts agents
//	recovered AGENT… [host=h]         the driver expects agents of an earlier attempt
//	up AGENT… [slots=2] [mem=0] [gpu=0] [host=] [held=INDEX:N,…] [attempt=1] [addr=AGENT:9]   agents register
//	heard AGENT…
//	broken AGENT | closed AGENT | left AGENT | exited AGENT [noblame]
//	refused                   the driver gives up
//	drain [HOST…]             hosts are going away
//	reclaim [AGENT…] [count=0]   agents are wanted back
//	need JOB COUNT [mem=0] [gpu=0] [more=0 moremem=0]    a job declares
//	release N… [raw=]         allocations, by their number in this script; raw: as they are, of an earlier attempt
//	tick DURATION             time passes; Due runs whenever Next says so
//	state                     prints the table
type script struct {
	m   *Machine
	now time.Time
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{now: epoch}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	})
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	arg := func(key, def string) string {
		for _, a := range d.CmdArgs {
			if a.Key == key && len(a.Vals) == 1 {
				return a.Vals[0]
			}
		}
		return def
	}
	num := func(key string, def int) int {
		n, err := strconv.Atoi(arg(key, strconv.Itoa(def)))
		if err != nil {
			d.Fatalf(t, "%s: %v", key, err)
		}
		return n
	}
	dur := func(key, def string) time.Duration {
		v, err := time.ParseDuration(arg(key, def))
		if err != nil {
			d.Fatalf(t, "%s: %v", key, err)
		}
		return v
	}
	gpus := func(key string) string { return cluster.CustomOf(map[string]int64{"gpu": int64(num(key, 0))}) }
	var names []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			names = append(names, a.Key)
		}
	}
	var out strings.Builder
	do := func(ev Event) { s.print(&out, s.m.Handle(s.now, ev)) }
	each := func(f func(id cluster.AgentID) Event) {
		for _, n := range names {
			do(f(cluster.AgentID(n)))
		}
	}
	switch d.Cmd {
	case "new":
		s.now = epoch
		s.m = New(Config{
			Attempt: uint32(num("attempt", 1)), GrantBatch: num("batch", 0), SlotsPerAgent: num("slots", 2), MinAgents: num("min", 0), MaxAgents: num("max", 0), EvenlySpread: d.HasArg("evenly"),
			FailureBudget: num("budget", 0), RegisterTimeout: dur("register", "30s"), HeartbeatTimeout: dur("heartbeat", "10s"),
			ExitWait: dur("exitwait", "0s"), IdleTimeout: dur("idle", "30s"), SpreadWait: dur("hold", "10s"),
			Cut: d.HasArg("cut"), AgentTotal: cluster.Profile{MemoryMB: int64(num("total", 0)), Custom: gpus("totalgpu")},
			SpareAgents: num("spare", 0), MaxSlots: num("maxslots", 0), FailureWindow: dur("window", "0s"),
			HostFailures: num("hostfailures", 0), HostExclusion: dur("exclusion", "10m"),
		})
	case "granted":
		each(func(id cluster.AgentID) Event {
			return Granted{Agent: id, Container: cluster.ContainerID(id), Host: arg("host", "h")}
		})
	case "recovered":
		each(func(id cluster.AgentID) Event {
			return Recovered{Agent: id, Container: cluster.ContainerID(id), Host: arg("host", "h")}
		})
	case "up":
		var held []Held
		for _, a := range d.CmdArgs {
			for _, v := range a.Vals {
				if a.Key == "held" {
					var h Held
					if _, err := fmt.Sscanf(v, "%d:%d", &h.Slot, &h.Allocation); err != nil {
						d.Fatalf(t, "%s: %v", v, err)
					}
					held = append(held, h)
				}
			}
		}
		each(func(id cluster.AgentID) Event {
			return Registered{
				Agent: id, Attempt: uint32(num("attempt", 1)), Slots: num("slots", 2), Host: arg("host", ""), Held: held,
				Total: cluster.Profile{MemoryMB: int64(num("mem", 0)), Custom: gpus("gpu")}, Addr: arg("addr", string(id)+":9"),
			}
		})
	case "closed":
		each(func(id cluster.AgentID) Event { return PortClosed{id} })
	case "heard":
		each(func(id cluster.AgentID) Event { return Heard{id} })
	case "broken":
		do(SessionBroken{cluster.AgentID(names[0]), "reset by peer"})
	case "left":
		do(Left{cluster.AgentID(names[0]), "asked to by SIGTERM"})
	case "exited":
		do(Exited{Agent: cluster.AgentID(names[0]), Reason: "exit status 137", Blame: !d.HasArg("noblame")})
	case "refused":
		do(AskRefused{"no more machines"})
	case "drain":
		do(Drain{names})
	case "reclaim":
		ev := Reclaim{Count: num("count", 0)}
		for _, n := range names {
			ev.Agents = append(ev.Agents, cluster.AgentID(n))
		}
		do(ev)
	case "need":
		n, err := strconv.Atoi(names[1])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		ev := Declare{Job: cluster.JobID(names[0])}
		if n > 0 {
			ev.Requirements = []cluster.Requirement{{Profile: cluster.Profile{MemoryMB: int64(num("mem", 0)), Custom: gpus("gpu")}, Count: n}}
		}
		if more := num("more", 0); more > 0 { // and some of another profile, smaller
			ev.Requirements = append(ev.Requirements, cluster.Requirement{Profile: cluster.Profile{MemoryMB: int64(num("moremem", 0))}, Count: more})
		}
		do(ev)
	case "release":
		var ev Release
		for _, n := range names {
			a, err := strconv.Atoi(n)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if d.HasArg("raw") {
				ev.Allocations = append(ev.Allocations, cluster.AllocationID(a))
				continue
			}
			ev.Allocations = append(ev.Allocations, cluster.AllocationID(s.m.cfg.Attempt)<<48+cluster.AllocationID(a))
		}
		do(ev)
	case "tick":
		s.tick(t, &out, names[0])
		return s.result(&out)
	case "state":
		return s.table()
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	s.print(&out, s.m.Due(s.now))
	for s.m.More() {
		out.WriteString("more\n")
		s.print(&out, s.m.Due(s.now))
	}
	return s.result(&out)
}

func (s *script) result(out *strings.Builder) string {
	if err := check(s.m); err != nil {
		fmt.Fprintf(out, "INVARIANT BROKEN: %v\n", err)
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

func (s *script) tick(t *testing.T, out *strings.Builder, by string) {
	d, err := time.ParseDuration(by)
	if err != nil {
		t.Fatal(err)
	}
	end := s.now.Add(d)
	for {
		next := s.m.Next()
		if next.IsZero() || next.After(end) {
			break
		}
		s.now = next
		s.print(out, s.m.Due(s.now))
	}
	s.now = end
}

func (s *script) print(out *strings.Builder, effects []Effect) {
	at := ""
	if d := s.now.Sub(epoch); d > 0 {
		at = d.String() + " "
	}
	for _, e := range effects {
		out.WriteString(at)
		switch e := e.(type) {
		case Grant:
			fmt.Fprintf(out, "grant %s:", e.Job)
			for _, g := range e.Slots {
				fmt.Fprintf(out, " %s=#%d", g.ID, g.Allocation&(1<<48-1))
			}
		case Accept:
			fmt.Fprintf(out, "accept %s", e.Agent)
			if e.Back {
				out.WriteString(" back")
			}
			if e.Former {
				out.WriteString(" former")
			}
		case Suspect:
			fmt.Fprintf(out, "suspect{Agent:%s Reason:%s}", e.Agent, e.Reason)
		case Lost:
			fmt.Fprintf(out, "lost %s: %s;", e.Agent, e.Reason)
			for _, l := range e.Slots {
				fmt.Fprintf(out, " %s#%d", l.Job, l.Allocation&(1<<48-1))
			}
		default:
			fmt.Fprintf(out, "%s%+v", strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "slotmgr.")), e)
		}
		out.WriteByte('\n')
	}
}

func (s *script) table() string {
	var out strings.Builder
	for a := range s.m.Agents() {
		fmt.Fprintf(&out, "%s %v free=%d", a.ID, a.State, a.Free)
		for _, u := range a.Slots {
			if u.Allocation == 0 {
				out.WriteString(" -")
			} else {
				fmt.Fprintf(&out, " %s#%d", u.Job, u.Allocation&(1<<48-1))
			}
		}
		out.WriteByte('\n')
	}
	v := s.m.Supply()
	fmt.Fprintf(&out, "alive %d, probation %d, starting %d, asked %d, slots %d, free %d", v.Alive, v.Probation, v.Starting, v.Asked, v.Slots, v.Free)
	if v.Starved != "" {
		fmt.Fprintf(&out, ", starved: %s", v.Starved)
	}
	return out.String() + "\n"
}
