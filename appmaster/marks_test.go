package appmaster

import (
	"math"
	"testing"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// sinkTask is a subtask of a sink: what it runs as, and what it last reported.
type sinkTask struct {
	attempt  int
	state    cluster.TaskState
	reported int // the attempt of its last report; -1: none
	marks    []int64
}

// TestDeliveredMark: offsets may be committed up to what every subtask of every sink has delivered, and no further.
func TestDeliveredMark(t *testing.T) {
	run := func(marks ...int64) sinkTask { return sinkTask{state: cluster.Running, marks: marks} }
	finished := sinkTask{state: cluster.Finished, reported: -1}
	for _, c := range []struct {
		name  string
		sinks [][]sinkTask // by vertex; each task has a mark for each sink of its chain
		want  int64
	}{
		{"no sink", nil, math.MaxInt64},
		{"one", [][]sinkTask{{run(7)}}, 7},
		{"the slowest subtask counts", [][]sinkTask{{run(9), run(7), run(8)}}, 7},
		{"of all sinks", [][]sinkTask{{run(9)}, {run(5), run(8)}, {run(6)}}, 5},
		{"two sinks in one chain", [][]sinkTask{{run(9, 4)}}, 4},
		{"a window that is open passes marks on, but its sink has not flushed any yet", [][]sinkTask{{run(9)}, {run(0)}}, 0},
		{"a sink that nothing has reached has counted nothing", [][]sinkTask{{run(9)}, {run()}}, 0},
		{"one has not reported yet", [][]sinkTask{{run(9), {state: cluster.Deploying, reported: -1}}}, 0},
		{"one was started anew: what it said before counts for nothing", [][]sinkTask{{run(9), {attempt: 1, state: cluster.Running, marks: []int64{8}}}}, 0},
		{"and has reported since", [][]sinkTask{{run(9), {attempt: 1, state: cluster.Running, reported: 1, marks: []int64{8}}}}, 8},
		{"a late report of the attempt before", [][]sinkTask{{run(9), {attempt: 2, state: cluster.Running, reported: 1, marks: []int64{12}}}}, 0},
		{"one has finished and holds nobody up", [][]sinkTask{{run(9), finished}}, 9},
		{"one has finished, whatever it said last", [][]sinkTask{{run(9), {state: cluster.Finished, marks: []int64{2}}}}, 9},
		{"all have finished", [][]sinkTask{{finished}, {finished, finished}}, math.MaxInt64},
		{"one is being cancelled", [][]sinkTask{{run(9), {state: cluster.Canceling, marks: []int64{3}}}}, 3},
	} {
		job, graph := &flow.Graph{}, &jobgraph.Graph{}
		var reports [][]report
		source := job.Add(&flow.Node{Kind: "source"})
		graph.Vertices = append(graph.Vertices, jobgraph.Vertex{Nodes: []int{source.ID}, Source: source.ID, Parallelism: 1})
		reports = append(reports, []report{{TaskReport: &ctlpb.TaskReport{Operators: []*ctlpb.OperatorReport{{Node: 0}}}}})
		for v, tasks := range c.sinks {
			vertex := jobgraph.Vertex{ID: v + 1, Source: -1, Parallelism: len(tasks)}
			for range max(1, len(tasks[0].marks)) {
				vertex.Nodes = append(vertex.Nodes, job.Add(&flow.Node{Kind: "sink", Sink: true}).ID)
			}
			var rs []report
			for _, task := range tasks {
				r := report{attempt: max(task.reported, 0)}
				if task.reported >= 0 {
					r.TaskReport = &ctlpb.TaskReport{}
					for i, mark := range task.marks {
						r.Operators = append(r.Operators, &ctlpb.OperatorReport{Node: int32(vertex.Nodes[i]), Counters: map[string]int64{flow.DeliveredMark: mark}})
					}
				}
				rs = append(rs, r)
			}
			graph.Vertices, reports = append(graph.Vertices, vertex), append(reports, rs)
		}
		got := deliveries{job, graph, reports}.least(func(vertex, subtask int) (int, cluster.TaskState) {
			task := c.sinks[vertex-1][subtask]
			return task.attempt, task.state
		})
		if got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
