package sched

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestScripts runs the files in testdata/scripts:
//
//	new [restarts=0] [cancel=30s] [first=0]        the job is in the input, one vertex a line:
//	  NAME PARALLELISM [group=G] [co=C] [from=NAME:KIND]…
//	start [held]
//	checked | near VERTEX.SUBTASK HOST… [racks=(…)]
//	grant BULK AGENT*SLOTS… [hosts]      slots of agents, in the order of the request; hosts: agent aN is on host hN in rack rN
//	refuse BULK
//	task VERTEX.SUBTASK STATE [KIND] [attempt=0]…
//	all STATE                            every task that is not final
//	back AGENT VERTEX.SUBTASK[#ATTEMPT]=STATE…   an agent is back with these tasks
//	lost AGENT | fail | cancel | tick DURATION | where
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	m   *Machine
	now time.Time
}

// parse makes a graph of the form that scripts use.
func parse(text string) (*jobgraph.Graph, error) {
	g := &jobgraph.Graph{}
	ids := map[string]int{}
	kinds := map[string]flow.PartitionKind{"forward": flow.Forward, "hash": flow.Hash, "rescale": flow.Rescale, "rebalance": flow.Rebalance}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		p, err := strconv.Atoi(words[1])
		if err != nil {
			return nil, err
		}
		v := jobgraph.Vertex{ID: len(g.Vertices), Name: words[0], Parallelism: p, SlotGroup: "default"}
		ids[v.Name] = v.ID
		for _, w := range words[2:] {
			key, val, _ := strings.Cut(w, "=")
			switch key {
			case "group":
				v.SlotGroup = val
			case "co":
				v.CoLocation = val
			case "from":
				from, kind, _ := strings.Cut(val, ":")
				e := jobgraph.Edge{ID: len(g.Edges), From: ids[from], To: v.ID, Kind: kinds[kind]}
				g.Edges = append(g.Edges, e)
				g.Vertices[e.From].Out = append(g.Vertices[e.From].Out, e.ID)
				v.In = append(v.In, e.ID)
			default:
				return nil, fmt.Errorf("unknown %q", w)
			}
		}
		g.Vertices = append(g.Vertices, v)
	}
	return g, nil
}

func stateOf(name string) cluster.TaskState {
	for s := cluster.Created; s <= cluster.Failed; s++ {
		if s.String() == name {
			return s
		}
	}
	panic("unknown state " + name)
}

func kindOf(name string) cluster.ErrorKind {
	for k := cluster.Internal; k <= cluster.Lost; k++ {
		if k.String() == name {
			return k
		}
	}
	panic("unknown kind " + name)
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	tb := t
	opt := map[string]string{}
	var words []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 1 {
			opt[a.Key] = a.Vals[0]
		} else {
			words = append(words, a.Key)
		}
	}
	atoi := func(w string) int {
		n, err := strconv.Atoi(w)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return n
	}
	dur := func(w string) time.Duration {
		v, err := time.ParseDuration(w)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return v
	}
	var out []Effect
	switch d.Cmd {
	case "new":
		g, err := parse(d.Input)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		cfg := Config{}
		if n := opt["first"]; n != "" {
			cfg.FirstAttempt = atoi(n)
		}
		if n := opt["restarts"]; n != "" {
			cfg.Restart = FixedDelay{atoi(n), 5 * time.Second}
		}
		s.now = epoch
		if s.m, err = New(cfg, g); err != nil {
			return err.Error() + "\n"
		}
		return fmt.Sprintf("needs %d slots\n", s.m.Slots())
	case "start":
		out = s.m.Handle(s.now, Start{Held: slices.Contains(words, "held")})
	case "near":
		var ev Near
		if _, err := fmt.Sscanf(words[0], "%d.%d", &ev.Vertex, &ev.Subtask); err != nil {
			d.Fatalf(t, "%v", err)
		}
		ev.Hosts = words[1:]
		if r := opt["racks"]; r != "" {
			ev.Racks = []string{r}
		}
		out = s.m.Handle(s.now, ev)
	case "checked":
		out = s.m.Handle(s.now, Checked{})
	case "grant":
		ev := Granted{Bulk: atoi(words[0])}
		for _, w := range words[1:] {
			id, n, _ := strings.Cut(w, "*")
			if n == "" {
				continue
			}
			var host, rack string
			if slices.Contains(words, "hosts") {
				host, rack = "h"+id[1:], "r"+id[1:]
			}
			for i := range atoi(n) {
				ev.Slots = append(ev.Slots, cluster.Slot{Host: host, Rack: rack, ID: cluster.SlotID{Agent: cluster.AgentID(id), Index: i}, Allocation: cluster.AllocationID(len(ev.Slots) + 1), Addr: id + ":9"})
			}
		}
		out = s.m.Handle(s.now, ev)
	case "refuse":
		out = s.m.Handle(s.now, Refused{atoi(words[0]), cluster.Failure{Kind: cluster.Unavailable, Message: "no slots"}})
	case "task":
		var ev TaskChanged
		if _, err := fmt.Sscanf(words[0], "%d.%d", &ev.ID.Vertex, &ev.ID.Subtask); err != nil {
			d.Fatalf(t, "%v", err)
		}
		if a := opt["attempt"]; a != "" {
			ev.ID.Attempt = atoi(a)
		}
		ev.State = stateOf(words[1])
		if len(words) > 2 {
			ev.Failure = cluster.Failure{Kind: kindOf(words[2]), Message: words[2] + " in " + words[0]}
		}
		out = s.m.Handle(s.now, ev)
	case "all":
		for i := range s.m.execs {
			out = append(out, s.m.Handle(s.now, TaskChanged{ID: s.m.execs[i].id, State: stateOf(words[0])})...)
		}
	case "back":
		ev := AgentReturned{Agent: cluster.AgentID(words[0])}
		for _, w := range d.CmdArgs[1:] {
			t := TaskChanged{State: stateOf(w.Vals[0])}
			if n, _ := fmt.Sscanf(w.Key, "%d.%d#%d", &t.ID.Vertex, &t.ID.Subtask, &t.ID.Attempt); n < 2 {
				d.Fatalf(tb, "no task: %s", w.Key)
			}
			if t.State == cluster.Failed {
				t.Failure = cluster.Failure{Kind: cluster.Corrupt, Message: "told on coming back"}
			}
			ev.Tasks = append(ev.Tasks, t)
		}
		out = s.m.Handle(s.now, ev)
	case "lost":
		out = s.m.Handle(s.now, AgentLost{cluster.AgentID(words[0]), "exit status 137"})
	case "fail":
		out = s.m.Handle(s.now, Fail{cluster.Failure{Kind: cluster.Unavailable, Message: "kafka is away"}})
	case "cancel":
		out = s.m.Handle(s.now, Cancel{"ctrl-C"})
	case "tick":
		s.now = s.now.Add(dur(words[0]))
	case "where":
		return s.where()
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	out = append(out, s.m.Due(s.now)...)
	return s.print(out)
}

func (s *script) print(effects []Effect) string {
	var out strings.Builder
	for _, e := range effects {
		switch e := e.(type) {
		case StateChanged:
			fmt.Fprintf(&out, "%v → %v", e.From, e.To)
			if c := s.m.Cause(); c != nil {
				fmt.Fprintf(&out, " (cause: %s: %s", c.Kind, c.Message)
				if c.Agent != "" {
					fmt.Fprintf(&out, ", on %s", c.Agent)
				}
				out.WriteString(")")
			}
		case RequestSlots:
			fmt.Fprintf(&out, "request %d:", e.Bulk)
			if e.Replaces > 0 {
				fmt.Fprintf(&out, " (for %d)", e.Replaces)
			}
			for _, r := range e.Slots {
				fmt.Fprintf(&out, " %s%d", r.Group, r.Index)
				if r.Previous.Agent != "" {
					fmt.Fprintf(&out, "(was %s)", r.Previous)
				}
				if len(r.Hosts)+len(r.Racks) > 0 {
					fmt.Fprintf(&out, "(near %s)", strings.Join(append(slices.Clone(r.Hosts), r.Racks...), ","))
				}
			}
		case Deploy:
			fmt.Fprintf(&out, "deploy on %s:", e.Agent)
			for _, task := range e.Tasks {
				fmt.Fprintf(&out, "\n  %s slot %d", task.ID, task.Slot)
				for _, in := range task.Inputs {
					out.WriteString(" in")
					for _, c := range in.Channels {
						fmt.Fprintf(&out, " %s/%d@%s", c.Partition, c.Subpartition, c.Addr)
					}
				}
				for _, o := range task.Outputs {
					fmt.Fprintf(&out, " out %s×%d", o.Partition, o.Subpartitions)
				}
			}
		case CancelTasks:
			fmt.Fprintf(&out, "cancel on %s: %v (%s)", e.Agent, e.IDs, e.Reason)
		default:
			fmt.Fprintf(&out, "%s%+v", strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "sched.")), e)
		}
		out.WriteByte('\n')
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

func (s *script) where() string {
	var out strings.Builder
	for v := range s.m.graph.Vertices {
		fmt.Fprintf(&out, "%s:", s.m.graph.Vertices[v].Name)
		for e := range s.m.Executions(v) {
			fmt.Fprintf(&out, " %v", e.Slot)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// check recomputes what the Machine keeps by increments.
func check(m *Machine) error {
	open := 0
	counts := make([][cluster.Failed + 1]int, len(m.graph.Vertices))
	for i := range m.execs {
		e := &m.execs[i]
		counts[e.id.Vertex][e.state]++
		if !e.state.Final() {
			open++
		}
	}
	if open != m.open || !slices.Equal(counts, m.byState) {
		return fmt.Errorf("open %d, kept as %d; states %v, kept as %v", open, m.open, counts, m.byState)
	}
	if m.state.Final() && open > 0 {
		return fmt.Errorf("the job is %v with %d tasks running", m.state, open)
	}
	if (m.state == Failed || m.state == Failing) && m.cause == nil {
		return fmt.Errorf("the job is %v for no reason", m.state)
	}
	return nil
}

// TestInvariants plays agents that report anything in any order.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := parse("src 2\nmap 3 from=src:hash\nsink 1 from=map:rebalance group=other")
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(Config{Restart: FixedDelay{rapid.IntRange(0, 2).Draw(t, "restarts"), time.Second}}, g)
		if err != nil {
			t.Fatal(err)
		}
		now, held, bulk, asked := epoch, 0, 0, 0
		var firstReal string
		perform := func(effects []Effect) {
			for _, e := range effects {
				switch e := e.(type) {
				case RequestSlots:
					bulk, asked, firstReal = e.Bulk, len(e.Slots), ""
				case WithdrawSlots:
					asked = 0
				case ReleaseSlots:
					held -= len(e.Allocations)
				}
			}
		}
		perform(m.Handle(now, Start{}))
		t.Repeat(map[string]func(*rapid.T){
			"grant": func(t *rapid.T) {
				if asked == 0 {
					return
				}
				ev := Granted{Bulk: bulk}
				for i := range asked {
					ev.Slots = append(ev.Slots, cluster.Slot{ID: cluster.SlotID{Agent: cluster.AgentID(fmt.Sprint("a", i%2)), Index: i}, Allocation: 1})
				}
				held, asked = held+len(ev.Slots), 0
				perform(m.Handle(now, ev))
			},
			"task": func(t *rapid.T) {
				id := cluster.ExecutionID{Vertex: rapid.IntRange(-1, 3).Draw(t, "v"), Subtask: rapid.IntRange(-1, 3).Draw(t, "s"), Attempt: rapid.IntRange(0, 1).Draw(t, "attempt")}
				ev := TaskChanged{ID: id, State: cluster.TaskState(rapid.IntRange(0, int(cluster.Failed)).Draw(t, "state"))}
				if ev.State == cluster.Failed {
					ev.Failure = cluster.Failure{Kind: cluster.ErrorKind(rapid.IntRange(0, int(cluster.Lost)).Draw(t, "kind")), Message: id.String()}
				}
				before, told := m.open, false
				if i := m.find(id); i >= 0 {
					told = m.execs[i].state == cluster.Canceling
				}
				perform(m.Handle(now, ev))
				switch {
				case m.open >= before || firstReal != "":
				case ev.State == cluster.Failed && !ev.Failure.Secondary():
					firstReal = ev.Failure.Message
				case ev.State == cluster.Canceled && !told:
					firstReal = "its agent stopped it without being asked to" // which explains the failures of others
				}
			},
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "really") == 0 {
					perform(m.Handle(now, Cancel{"x"}))
				}
			},
			"time": func(*rapid.T) {
				now = now.Add(time.Second)
				perform(m.Due(now))
			},
			"": func(t *rapid.T) {
				if err := check(m); err != nil {
					t.Fatal(err)
				}
				if s, _ := m.State(); s.Final() && held != 0 {
					t.Fatalf("the job is over with %d slots held", held)
				}
				if s, _ := m.State(); (s == Failing || s == Failed) && firstReal != "" && m.Cause().Message != firstReal {
					t.Fatalf("cause %q, want the first that explains itself: %q", m.Cause().Message, firstReal)
				}
			},
		})
	})
}

// TestSharing shows that no two subtasks of one vertex share a slot, co-located ones of equal index do, and the load is even.
func TestSharing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agents := rapid.IntRange(1, 4).Draw(t, "agents")
		var text strings.Builder
		n := rapid.IntRange(1, 5).Draw(t, "vertices")
		for v := range n {
			fmt.Fprintf(&text, "v%d %d group=g%d\n", v, rapid.IntRange(1, 6).Draw(t, "parallelism"), rapid.IntRange(0, 1).Draw(t, "group"))
		}
		co := rapid.IntRange(1, 6).Draw(t, "co-located")
		fmt.Fprintf(&text, "c1 %d co=c\nc2 %d co=c\n", co, co)
		g, err := parse(text.String())
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(Config{}, g)
		if err != nil {
			t.Fatal(err)
		}
		m.Handle(epoch, Start{})
		ev := Granted{Bulk: 1}
		for i := range m.Slots() {
			ev.Slots = append(ev.Slots, cluster.Slot{ID: cluster.SlotID{Agent: cluster.AgentID(fmt.Sprint(i % agents)), Index: i / agents}, Allocation: cluster.AllocationID(i + 1)})
		}
		m.Handle(epoch, ev)
		tasks := map[int]int{}
		for v := range g.Vertices {
			seen := map[int]bool{}
			for i := m.first[v]; i < m.first[v+1]; i++ {
				slot := m.execs[i].slot
				if seen[slot] {
					t.Fatalf("two subtasks of %s are in slot %d", g.Vertices[v].Name, slot)
				}
				seen[slot] = true
				tasks[slot]++
			}
		}
		for s := range co {
			if a, b := m.Execution(n, s).Slot, m.Execution(n+1, s).Slot; a != b {
				t.Fatalf("co-located subtasks %d are in %v and %v", s, a, b)
			}
		}
		if len(tasks) != m.Slots() {
			t.Fatalf("%d of %d slots are used", len(tasks), m.Slots())
		}
	})
}
