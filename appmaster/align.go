package appmaster

import (
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// alignment is what the master knows of groups of sources that wait for each other in event time. The loop owns it.
type alignment struct {
	groups []*alignGroup
	moved  bool      // somebody said where it stands since agents were told
	next   time.Time // not before are they told again
}

// alignGroup is a group of sources.
type alignGroup struct {
	name    string
	sources []alignSource
	least   int64 // what agents were told last
	told    bool
}

// alignSource is a source of a group.
type alignSource struct {
	vertex int
	node   *flow.Node
	marks  []alignMark // by subtask
}

// alignMark is where a subtask said it stands.
type alignMark struct {
	known   bool
	attempt int
	mark    int64
}

// alignPace is the least time between two announcements of the same alignment.
const alignPace = 50 * time.Millisecond

// newAlignment finds the groups of a job, in the order of their first source.
func newAlignment(job *flow.Graph, g *jobgraph.Graph) *alignment {
	a := &alignment{}
	for v := range g.Vertices {
		n := g.Vertices[v].Source
		if n < 0 || job.Nodes[n].Align.Group == "" {
			continue
		}
		node := job.Nodes[n]
		i := slices.IndexFunc(a.groups, func(g *alignGroup) bool { return g.name == node.Align.Group })
		if i < 0 {
			i = len(a.groups)
			a.groups = append(a.groups, &alignGroup{name: node.Align.Group})
		}
		a.groups[i].sources = append(a.groups[i].sources, alignSource{vertex: v, node: node, marks: make([]alignMark, g.Vertices[v].Parallelism)})
	}
	return a
}

// stands takes note of where a subtask is. What is of an attempt before is too late.
func (a *alignment) stands(id cluster.ExecutionID, mark int64) {
	for _, g := range a.groups {
		for _, s := range g.sources {
			if s.vertex != id.Vertex || id.Subtask < 0 || id.Subtask >= len(s.marks) {
				continue
			}
			if m := &s.marks[id.Subtask]; id.Attempt >= m.attempt {
				*m = alignMark{known: true, attempt: id.Attempt, mark: mark}
				a.moved = true
			}
		}
	}
}

// due returns the groups that agents are to be told of, with what is new of them. execution says what runs.
func (a *alignment) due(now time.Time, execution func(vertex, subtask int) (attempt int, state cluster.TaskState)) (news []*ctlpb.GroupMark) {
	if !a.moved || now.Before(a.next) {
		return nil
	}
	a.moved, a.next = false, now.Add(alignPace)
	for _, g := range a.groups {
		least, ok := flow.LeastMark(g.readers(execution))
		if !ok || g.told && least == g.least {
			continue
		}
		g.least, g.told = least, true
		news = append(news, &ctlpb.GroupMark{Group: g.name, Least: least})
	}
	return news
}

// readers are the subtasks of a group. What one said in an attempt before this one counts for nothing.
func (g *alignGroup) readers(execution func(vertex, subtask int) (int, cluster.TaskState)) (out []flow.ReaderMark) {
	for _, s := range g.sources {
		for i, m := range s.marks {
			attempt, state := execution(s.vertex, i)
			out = append(out, flow.ReaderMark{Known: m.known && m.attempt == attempt, Ended: state == cluster.Finished, Mark: m.mark})
		}
	}
	return out
}

// all is what an agent is told that has just come.
func (a *alignment) all() (out []*ctlpb.GroupMark) {
	for _, g := range a.groups {
		if g.told {
			out = append(out, &ctlpb.GroupMark{Group: g.name, Least: g.least})
		}
	}
	return out
}

// when is when due is to be called again, zero if not before somebody says where it stands.
func (a *alignment) when() time.Time {
	if !a.moved {
		return time.Time{}
	}
	return a.next
}

// align tells the agents how far the slowest of each group is, if that is new and due.
func (m *master) align(now time.Time) {
	news := m.aligned.due(now, m.executionOf)
	if len(news) == 0 {
		return
	}
	for id := range m.agents {
		m.toAgent(id, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Alignment{Alignment: &ctlpb.Alignment{Groups: news}}})
	}
}

// onHeldBack handles that a subtask waits to hear of its group.
func (m *master) onHeldBack(agent cluster.AgentID, msg *ctlpb.HeldBack) {
	if id := ctl.Execution(msg.GetId()); msg.GetId() != nil && id.Attempt>>attemptBits == int(m.cfg.Attempt) && m.runs(agent, id) {
		m.aligned.stands(id, msg.GetMark())
	}
}

// alignmentView shows the groups.
func (m *master) alignmentView(sources []Source) (out []AlignmentGroup) {
	for _, g := range m.aligned.groups {
		v := AlignmentGroup{Group: g.name}
		slowest := int64(flow.MaxTime)
		for _, s := range g.sources {
			v.Sources = append(v.Sources, AlignedSource{Vertex: s.vertex, Name: s.node.Title(), MaxDriftMs: s.node.Align.MaxDrift.Milliseconds()})
			for i, mark := range s.marks {
				if e := m.job0().Execution(s.vertex, i); mark.known && mark.attempt == e.ID.Attempt && e.State != cluster.Finished && mark.mark < slowest {
					slowest = mark.mark
					v.Slowest = m.taskName(e.ID)
				}
			}
			for _, src := range sources {
				for _, p := range src.Splits {
					if src.Vertex == s.vertex && p.Paused {
						v.Waiting++
					}
				}
			}
		}
		if g.told && g.least != flow.MaxTime {
			least := g.least
			v.Mark = &least
		}
		out = append(out, v)
	}
	return out
}
