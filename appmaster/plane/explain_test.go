package plane

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newPlane is a plane of jobs that have started.
func newPlane(t testing.TB, agents slotmgr.Config, slots slotpool.Config, cfg sched.Config, graphs ...*jobgraph.Graph) *Plane {
	t.Helper()
	var jobs []Job
	for i, g := range graphs {
		s, err := sched.New(cfg, g)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, Job{ID: cluster.JobID(fmt.Sprint("j", i+1)), Pool: slotpool.New(slots), Sched: s})
	}
	p := New(slotmgr.New(agents), jobs...)
	for i := range jobs {
		p.JobEvent(epoch, i, sched.Start{})
	}
	p.settleAll(epoch)
	return p
}

// up brings agents up, one after the other.
func (p *Plane) up(now time.Time, slots int, total cluster.Profile, ids ...string) {
	for _, id := range ids {
		p.SlotEvent(now, slotmgr.Granted{Agent: cluster.AgentID(id), Host: "host-" + id})
		p.SlotEvent(now, slotmgr.Registered{Agent: cluster.AgentID(id), Slots: slots, Total: total, Addr: id + ":9"})
		p.settleAll(now)
	}
}

func TestExplain(t *testing.T) {
	gpu := cluster.Profile{MemoryMB: 100, Custom: "gpu=1"}
	demanding := graph(2)
	demanding.Profiles = map[string]cluster.Profile{"default": gpu}
	for _, c := range []struct {
		name   string
		agents slotmgr.Config
		graphs []*jobgraph.Graph
		do     func(p *Plane)
		job    int
		codes  []string
		want   string
	}{
		{"nothing was granted", slotmgr.Config{}, []*jobgraph.Graph{graph(2)}, func(*Plane) {}, 0, []string{ReasonAsked}, "2 agents are asked for and not granted"},
		{"starting", slotmgr.Config{}, []*jobgraph.Graph{graph(1)}, func(p *Plane) {
			p.SlotEvent(epoch.Add(-12*time.Second), slotmgr.Granted{Agent: "a"})
		}, 0, []string{ReasonStarting}, "1 agent is starting, for up to 12s"},
		{"limit", slotmgr.Config{MaxSlots: 3}, []*jobgraph.Graph{graph(4)}, func(p *Plane) { p.up(epoch, 1, cluster.Profile{}, "a", "b", "c") }, 0, []string{ReasonLimit}, "slots.max"},
		{"out of turn", slotmgr.Config{MaxAgents: 1}, []*jobgraph.Graph{graph(2), graph(1)}, func(p *Plane) { p.up(epoch, 1, cluster.Profile{}, "a") }, 1, []string{ReasonLimit, ReasonTurn}, "job j1 came before and waits for 2 slots"},
		{"starved", slotmgr.Config{}, []*jobgraph.Graph{graph(1)}, func(p *Plane) {
			p.SlotEvent(epoch, slotmgr.AskRefused{Reason: "the queue is gone"})
		}, 0, []string{ReasonStarved, ReasonAsked}, "the queue is gone"},
		{"too large", slotmgr.Config{Cut: true, AgentTotal: cluster.Profile{MemoryMB: 1000}}, []*jobgraph.Graph{demanding}, func(*Plane) {}, 0, []string{ReasonTooLarge}, "no agent can have a slot of 100 MiB, gpu=1: an agent has 1000 MiB"},
		{"probation", slotmgr.Config{MaxAgents: 1, FailureBudget: 9}, []*jobgraph.Graph{graph(1)}, func(p *Plane) {
			p.SlotEvent(epoch, slotmgr.Granted{Agent: "a"})
			p.SlotEvent(epoch, slotmgr.Registered{Agent: "a", Slots: 1, Addr: "a:9"})
			p.SlotEvent(epoch, slotmgr.SessionBroken{Agent: "a", Reason: "reset"})
		}, 0, []string{ReasonLimit, ReasonProbation}, "a: its session broke: reset"},
		{"held back", slotmgr.Config{EvenlySpread: true}, []*jobgraph.Graph{graph(2)}, func(p *Plane) { p.up(epoch, 1, cluster.Profile{}, "a") }, 0, []string{ReasonAsked, ReasonHolding}, "spread"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlane(t, c.agents, slotpool.Config{Timeout: -1}, sched.Config{}, c.graphs...)
			c.do(p)
			// A plane that is starved fails its jobs when it settles; what it would say is asked before.
			if c.name != "starved" {
				p.settleAll(epoch)
			}
			i := slices.IndexFunc(p.Explain(epoch), func(x Pending) bool { return x.Job == p.Jobs[c.job].ID })
			if i < 0 {
				t.Fatalf("nothing is pending: %+v", p.Explain(epoch))
			}
			x := p.Explain(epoch)[i]
			var codes, texts []string
			for _, r := range x.Reasons {
				codes, texts = append(codes, r.Code), append(texts, r.Text)
			}
			if !slices.Equal(codes, c.codes) || !strings.Contains(strings.Join(texts, "\n"), c.want) {
				t.Errorf("reasons %v %q, want %v with %q", codes, texts, c.codes, c.want)
			}
		})
	}
	p := newPlane(t, slotmgr.Config{}, slotpool.Config{}, sched.Config{}, graph(1))
	p.up(epoch, 1, cluster.Profile{}, "a")
	if x := p.Explain(epoch); len(x) > 0 {
		t.Errorf("a job that runs waits for %+v", x)
	}
}

func TestCheckProfiles(t *testing.T) {
	g := graph(1)
	g.Profiles = map[string]cluster.Profile{"default": {MilliCPU: 2000, MemoryMB: 100, Custom: "gpu=1"}}
	for _, c := range []struct {
		agent cluster.Profile
		want  string
	}{
		{cluster.Profile{}, "what an agent has is not said; set agent.cpu and agent.memory and agent.resources"},
		{cluster.Profile{MilliCPU: 1000, MemoryMB: 100, Custom: "gpu=4"}, "an agent has 1 core, 100 MiB, gpu=4; set agent.cpu to"},
		{cluster.Profile{MilliCPU: 2000, MemoryMB: 100, Custom: "gpu=1"}, ""},
	} {
		err := CheckProfiles(g, c.agent)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("{%v}: %v, want %q", c.agent, err, c.want)
		}
	}
}

// TestExplainBreaker shows that lost agents are not replaced any more before anybody waits for slots.
func TestExplainBreaker(t *testing.T) {
	p := newPlane(t, slotmgr.Config{SpareAgents: 1}, slotpool.Config{}, sched.Config{}, graph(1))
	p.up(epoch, 1, cluster.Profile{}, "a1", "a2")
	for n, id := range []cluster.AgentID{"a2", "a3"} { // the spare one, twice
		if out := p.Explain(epoch); len(out) != 0 {
			t.Fatalf("after %d losses: %+v", n, out)
		}
		p.SlotEvent(epoch, slotmgr.Exited{Agent: id, Reason: "killed by signal 9", Blame: true})
		p.settleAll(epoch)
		if n == 0 {
			if asked := p.Slots.Supply().Asked; asked != 1 {
				t.Fatalf("%d agents are asked for after a spare one was lost", asked)
			}
			p.up(epoch, 1, cluster.Profile{}, "a3")
		}
	}
	out := p.Explain(epoch.Add(time.Second))
	if len(out) != 1 || out[0].Slots != 0 || !out[0].Since.Equal(epoch) || len(out[0].Reasons) != 1 || out[0].Reasons[0].Code != ReasonStarved {
		t.Fatalf("with the breaker open: %+v", out)
	}
	if text := out[0].Reasons[0].Text; !strings.Contains(text, "2 agents have failed; the last: agent a3 was lost: killed by signal 9") {
		t.Error(text)
	}
}
