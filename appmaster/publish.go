package appmaster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// publish makes a new Snapshot of the loop's state.
func (m *master) publish(now time.Time) {
	state, since := m.job0().State()
	s := &Snapshot{
		App: m.cfg.App, Job: m.cfg.Job.Name, State: state.String(), Since: since, Started: m.started, Time: now,
		MasterAttempt: m.cfg.Attempt, Pending: m.plane.Explain(now),
		States: slices.Clone(m.states), Failures: slices.Clone(m.failures), Process: processView(m.cfg.Trace),
		Attempt: m.job0().Attempt(), Cause: m.causeView(), Warnings: slices.Clone(m.warnings), Waiting: m.waiting(now, state), Containers: m.counts,
	}
	tasks := map[cluster.SlotID][]string{}
	for v := range m.cfg.Graph.Vertices {
		s.Vertices = append(s.Vertices, m.vertexView(now, v, tasks))
	}
	for i := range m.cfg.Graph.Edges {
		e := &m.cfg.Graph.Edges[i]
		s.Edges = append(s.Edges, Edge{From: e.From, To: e.To, Partitioning: e.Kind.String()})
	}
	for a := range m.plane.Slots.Agents() {
		s.Agents = append(s.Agents, m.agentView(a, tasks))
	}
	s.Held = m.containerViews(s.Agents)
	for id, a := range m.agents {
		if a.lost != "" {
			s.Agents = append(s.Agents, lostView(id, a))
		}
	}
	slices.SortFunc(s.Agents, func(a, b Agent) int { return cmp.Or(len(a.ID)-len(b.ID), cmp.Compare(a.ID, b.ID)) })
	for _, src := range m.sources {
		s.Sources = append(s.Sources, m.sourceView(src))
	}
	s.Alignment, s.Tokens = m.alignmentView(s.Sources), m.tokens.view
	supply := m.plane.Slots.Supply()
	s.Slots = SlotCounts{Needed: m.job0().Needs(), Total: supply.Slots, Free: supply.Free}
	m.passMark()
	s.Supply = Supply{
		Asked: supply.Asked, Starting: supply.Starting, Alive: supply.Alive, Probation: supply.Probation, Limit: supply.Limit,
		Failed: supply.Failed, Excluded: supply.Excluded, Starved: supply.Starved,
	}
	if supply.Cut {
		s.Supply.Left = &supply.Left
	}
	m.snapshot.Store(s)
	m.shown, m.dirty = now, false
}

// waiting says what the job waits for, or "".
func (m *master) waiting(now time.Time, state sched.State) string {
	open := func(states ...cluster.TaskState) (n, all int) {
		for v := range m.cfg.Graph.Vertices {
			c := m.job0().Counts(v)
			for _, s := range states {
				n += c[s]
			}
			all += m.cfg.Graph.Vertices[v].Parallelism
		}
		return n, all
	}
	switch state {
	case sched.Waiting:
		if src := m.undiscovered(); src != nil && m.job0().HasSlots() {
			return fmt.Sprintf("%s to find its splits", src.node.KindAndTitle())
		}
		if m.readying != nil && !m.prepared && m.job0().HasSlots() {
			return fmt.Sprintf("%s to say that it is ready", m.readying.KindAndTitle())
		}
		return plane.Count(m.job0().Slots(), "slot") + ": " + m.plane.Outlook(now)
	case sched.Running:
		if n, all := open(cluster.Deploying); n > 0 {
			return fmt.Sprintf("%d of %d tasks to open", n, all)
		}
		return m.trouble()
	case sched.Failing, sched.Canceling:
		n, all := open(cluster.Canceling)
		return fmt.Sprintf("%d of %d tasks to stop", n, all)
	case sched.Restarting:
		return "the delay before the next attempt"
	}
	return ""
}

// trouble says which splits can't be read for now, and why the first of them can't; "" if all can.
func (m *master) trouble() string {
	n, text := 0, ""
	for _, src := range m.sources {
		for r := range src.splits {
			for _, s := range m.reports[src.vertex][r].GetSplits() {
				if s.GetTrouble() == "" {
					continue
				}
				if n++; n == 1 {
					text = fmt.Sprintf("%s of %s: %s", s.GetId(), src.node.KindAndTitle(), s.GetTrouble())
				}
			}
		}
	}
	if n > 1 {
		text += fmt.Sprintf(" (and %d more splits)", n-1)
	}
	return text
}

func (m *master) causeView() *Cause {
	c := m.job0().Cause()
	if c == nil {
		return nil
	}
	out := &Cause{Kind: c.Kind.String(), Message: c.Message, Operator: c.Operator, Agent: string(c.Agent), Time: c.At}
	if c.OfTask {
		sub := c.Task.Subtask
		out.Vertex, out.Subtask = m.cfg.Graph.Vertices[c.Task.Vertex].Name, &sub
	}
	a := m.agents[c.Agent]
	if a != nil {
		out.Host = a.host
	}
	switch {
	case c.OfTask:
	case a != nil && a.exit != nil:
		out.LastLogs = a.exit.LastLogs
	case c.Agent == "" && c.Kind == cluster.Unavailable:
		out.LastLogs = m.lastLogs // why there are no slots
	}
	return out
}

func (m *master) vertexView(now time.Time, id int, tasks map[cluster.SlotID][]string) Vertex {
	v := &m.cfg.Graph.Vertices[id]
	out := Vertex{ID: id, Name: v.Name, Parallelism: v.Parallelism, SlotGroup: v.SlotGroup, Tasks: map[string]int{}}
	for s, n := range m.job0().Counts(id) {
		if n > 0 {
			out.Tasks[cluster.TaskState(s).String()] = n
		}
	}
	for _, n := range v.Nodes {
		node := m.cfg.Job.Nodes[n]
		op := Operator{ID: n, Name: node.Title(), Kind: node.Kind, Counters: map[string]int64{}}
		for i := range m.reports[id] {
			for _, o := range m.reports[id][i].GetOperators() {
				if int(o.GetNode()) == n {
					for name, count := range o.GetCounters() {
						op.Counters[name] += count
					}
				}
			}
		}
		out.Operators = append(out.Operators, op)
	}
	out.Watermark = m.lowestWatermark(id)
	for e := range m.job0().Executions(id) {
		sub := m.subtaskView(id, e)
		out.RecordsIn += sub.RecordsIn
		out.RecordsOut += sub.RecordsOut
		out.Busy += sub.Busy / float64(v.Parallelism)
		out.Blocked += sub.Blocked / float64(v.Parallelism)
		out.Subtasks = append(out.Subtasks, sub)
		if e.Slot.Agent != "" && !e.State.Final() {
			tasks[e.Slot] = append(tasks[e.Slot], m.taskName(e.ID))
		}
	}
	out.InRate, out.OutRate = m.rates[id].add(now, out.RecordsIn, out.RecordsOut)
	return out
}

// lowestWatermark is that of the subtasks together: nil while one that runs has none.
func (m *master) lowestWatermark(id int) (low *int64) {
	for i := range m.reports[id] {
		w := watermark(m.reports[id][i].TaskReport)
		if w == nil {
			return nil
		}
		if low == nil || *w < *low {
			low = w
		}
	}
	return low
}

func (m *master) subtaskView(id int, e sched.Execution) Subtask {
	v := &m.cfg.Graph.Vertices[id]
	out := Subtask{
		Index: e.ID.Subtask, Attempt: e.ID.Attempt & (1<<attemptBits - 1), State: e.State.String(), Since: e.Since,
		Agent: string(e.Slot.Agent), Slot: e.Slot.Index,
	}
	if e.State == cluster.Failed {
		out.Error = e.Failure.Error()
	}
	r := m.reports[id][e.ID.Subtask]
	if r.TaskReport == nil || r.attempt != e.ID.Attempt {
		return out
	}
	out.RecordsIn = counter(r.TaskReport, v.Nodes[0], recordsIn)
	for _, n := range v.Nodes {
		if m.leaves(v.Out, n) {
			out.RecordsOut += counter(r.TaskReport, n, recordsOut)
		}
	}
	out.Watermark = watermark(r.TaskReport)
	out.Busy, out.Blocked = shares(r.TaskReport)
	out.InQueued, out.OutQueued = int(r.GetInQueued()), int(r.GetOutQueued())
	out.InPool, out.OutPool = r.GetInPool(), r.GetOutPool()
	out.CreditIn, out.CreditOut, out.Starved = int(r.GetCreditIn()), int(r.GetCreditOut()), int(r.GetStarved())
	out.measure(v, &r)
	return out
}

// leaves reports whether one of the edges begins at node n: what n emits is what the chain emits.
func (m *master) leaves(edges []int, n int) bool {
	return slices.ContainsFunc(edges, func(e int) bool { return m.cfg.Graph.Edges[e].FromNode == n })
}

func (m *master) agentView(a slotmgr.Agent, tasks map[cluster.SlotID][]string) Agent {
	out := Agent{ID: string(a.ID), Container: string(a.Container), Host: a.Host, Exchange: a.Addr, State: a.State.String(), Why: a.Why, Heard: a.Heard}
	for i, u := range a.Slots {
		id := cluster.SlotID{Agent: a.ID, Index: i}
		out.Slots = append(out.Slots, Slot{Agent: string(a.ID), Index: i, Job: string(u.Job), Allocation: uint64(u.Allocation), Resources: u.Profile, Tasks: tasks[id]})
	}
	out.Resources, out.Former = a.Total, a.Former
	rec := m.agents[a.ID]
	if rec == nil {
		return out
	}
	out.PID, out.Granted, out.Started, out.Joined, out.Tokens = rec.pid, rec.granted, rec.started, rec.joined, rec.tokens
	if s := rec.stats; s != nil {
		out.RSS, out.Heap, out.Goroutines, out.Connections = s.GetRss(), s.GetHeap(), int(s.GetGoroutines()), int(s.GetConnections())
		out.Segments, out.SegmentsUse = s.GetSegmentsTotal(), s.GetSegmentsUsed()
		out.ExchangeIn, out.ExchangeOut = s.GetExchangeIn(), s.GetExchangeOut()
		out.Memory, out.MemoryLimit, out.GCs, out.GCPause = s.GetMemory(), s.GetMemoryLimit(), s.GetGcCycles(), seconds(s.GetGcPauseNs())
		out.CPU, out.SegmentsFloating, out.Channels = seconds(s.GetCpuNs()), s.GetSegmentsFloating(), s.GetChannels()
		out.SegmentsReserved, out.PlainBytes, out.PackedBytes = s.GetSegmentsReserved(), s.GetPlainBytes(), s.GetPackedBytes()
		out.DebloatDelay, out.DebloatRoom = seconds(s.GetDebloatDelayNs()), s.GetDebloatRoom()
		out.RequestsWaiting, out.StrayFrames = s.GetRequestsWaiting(), s.GetStrayFrames()
		out.SpansExported, out.SpansDropped = s.GetSpansExported(), s.GetSpansDropped()
	}
	return out
}

// lostView shows an agent that is no longer in the slot manager's table.
func lostView(id cluster.AgentID, a *agentRecord) Agent {
	out := Agent{ID: string(id), Container: string(a.container), Host: a.host, State: "lost", Why: a.lost, PID: a.pid, Slots: []Slot{}}
	if a.exit != nil {
		out.LastLogs = a.exit.LastLogs
	}
	return out
}

func (m *master) sourceView(src *source) Source {
	out := Source{Vertex: src.vertex, Name: src.node.Title(), Final: src.final, Failed: src.failed, Splits: []Split{}}
	for r, splits := range src.splits {
		at := map[string]*ctlpb.SplitReport{}
		for _, s := range m.reports[src.vertex][r].GetSplits() {
			at[string(s.GetId())] = s
		}
		for _, s := range splits {
			view := Split{ID: s.ID, Subtask: r, Position: -1, End: -1}
			if p := at[s.ID]; p != nil {
				view.Position, view.End, view.Trouble, view.Paused = p.GetPosition(), p.GetEnd(), p.GetTrouble(), p.GetPaused()
				view.PausedNs = p.GetPausedNs()
				view.Records, view.Bytes, view.Fetches, view.FetchNs = p.GetRecords(), p.GetBytes(), p.GetFetches(), p.GetFetchNs()
				view.Empty, view.Committed = p.GetEmpty(), p.GetCommitted()
			}
			out.Splits = append(out.Splits, view)
		}
	}
	slices.SortFunc(out.Splits, func(a, b Split) int { return cmp.Or(len(a.ID)-len(b.ID), cmp.Compare(a.ID, b.ID)) })
	return out
}
