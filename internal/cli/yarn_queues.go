package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/yarnclient"
)

// queueView is a queue as JSON. Shares are percentages: used of its own capacity, the others of the parent's.
type queueView struct {
	Queue       string   `json:"queue"`
	State       string   `json:"state"`
	Leaf        bool     `json:"leaf"` // it takes applications
	Capacity    float64  `json:"capacity"`
	MaxCapacity float64  `json:"max_capacity"`
	Used        float64  `json:"used"`
	UsedMB      int64    `json:"used_mb"`
	MaxMB       int64    `json:"max_mb,omitempty"`
	AMUsedMB    int64    `json:"am_used_mb,omitempty"` // ApplicationMasters'
	AMLimitMB   int64    `json:"am_limit_mb,omitempty"`
	Apps        int      `json:"apps"`
	Pending     int      `json:"pending"`
	Labels      []string `json:"labels,omitempty"`
}

func (s *session) queuesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "queues", Short: "List the queues of the YARN cluster", Args: exactArgs(0, ""),
		Long: `List the queues of the YARN cluster: their share of the queue above, the most they may have, what they use of their share, what
ApplicationMasters use of what they may have, and how many applications run and wait. Only leaves take applications.`,
		Example: "  heddle queues\n  heddle queues --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.askYARN(cmd.Context(), func(ctx context.Context, h *hadoop) error {
				sched, err := h.rm.Scheduler(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return s.out.json(queueViews(sched.Queues))
				}
				return s.printQueues(sched.Queues)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func queueViews(qs []yarnclient.Queue) []queueView {
	out := []queueView{}
	for _, q := range qs {
		out = append(out, queueView{q.Path, q.State, q.Leaf, q.Capacity, q.MaxCapacity, q.UsedCapacity, q.Used.MemoryMB, q.Max.MemoryMB, q.AMUsed.MemoryMB, q.AMLimit.MemoryMB, q.Apps, q.Pending, q.Labels})
	}
	return out
}

func (s *session) printQueues(qs []yarnclient.Queue) error {
	rows := make([][]string, 0, len(qs))
	for _, q := range qs {
		name, masters := q.Path, "-"
		if s.out.tty { // people see the tree, programs the paths
			i := strings.LastIndexByte(q.Path, '.')
			name = strings.Repeat("  ", strings.Count(q.Path, ".")) + q.Path[i+1:]
		}
		if !q.AMLimit.IsZero() {
			masters = fmt.Sprintf("%d of %d MB", q.AMUsed.MemoryMB, q.AMLimit.MemoryMB)
		}
		running := max(0, q.Apps-q.Pending)
		rows = append(rows, []string{name, dash(q.State), percent(q.Capacity), percent(q.MaxCapacity), percent(q.UsedCapacity), fmt.Sprintf("%d MB", q.Used.MemoryMB), masters,
			fmt.Sprint(running), fmt.Sprint(q.Pending), dash(strings.Join(q.Labels, ","))})
	}
	return s.out.table([]string{"QUEUE", "STATE", "SHARE", "MOST", "USED", "MEMORY", "MASTERS", "RUNNING", "WAITING", "LABELS"}, rows)
}

func percent(f float64) string { return fmt.Sprintf("%.1f%%", f) }
