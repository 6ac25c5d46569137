package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/yarnclient"
)

// allNodes are the states of nodes, those that are gone among them; nodesInUse are the others.
var (
	nodesInUse = []string{"NEW", "RUNNING", "UNHEALTHY", "DECOMMISSIONING"}
	allNodes   = append(slices.Clone(nodesInUse), "LOST", "DECOMMISSIONED", "REBOOTED", "SHUTDOWN")
)

// nodeView is a node as JSON.
type nodeView struct {
	Node        string    `json:"node"`
	State       string    `json:"state"`
	Rack        string    `json:"rack"`
	Labels      []string  `json:"labels,omitempty"`
	Containers  int       `json:"containers"`
	UsedMB      int64     `json:"used_mb"`
	FreeMB      int64     `json:"free_mb"`
	UsedCores   int64     `json:"used_cores"`
	FreeCores   int64     `json:"free_cores"`
	Health      string    `json:"health,omitempty"`
	LastContact time.Time `json:"last_contact,omitzero"`
	Web         string    `json:"web,omitempty"`
}

func (s *session) nodesCommand() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "nodes", Short: "List the nodes of the YARN cluster", Args: exactArgs(0, ""),
		Long:    "List the nodes of the YARN cluster with what they have left, their labels, and what is wrong with those that are unwell; with --all also those that are gone.",
		Example: "  heddle nodes\n  heddle nodes --all --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.askYARN(cmd.Context(), func(ctx context.Context, h *hadoop) error {
				states := nodesInUse
				if all {
					states = allNodes
				}
				nodes, err := h.rm.Nodes(ctx, states...)
				if err != nil {
					return err
				}
				slices.SortFunc(nodes, func(a, b yarnclient.Node) int { return cmp.Or(cmp.Compare(a.Rack, b.Rack), cmp.Compare(a.ID, b.ID)) })
				if asJSON {
					return s.out.json(nodeViews(nodes))
				}
				return s.printNodes(nodes)
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also nodes that are lost, decommissioned or shut down")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func nodeViews(nodes []yarnclient.Node) []nodeView {
	out := []nodeView{}
	for _, n := range nodes {
		out = append(out, nodeView{n.ID, n.State, n.Rack, n.Labels, n.Containers, n.Used.MemoryMB, n.Free.MemoryMB, n.Used.VCores, n.Free.VCores, n.Health, n.LastContact, n.HTTP})
	}
	return out
}

func (s *session) printNodes(nodes []yarnclient.Node) error {
	rows := make([][]string, 0, len(nodes))
	for _, n := range nodes {
		rows = append(rows, []string{n.ID, n.State, dash(n.Rack), dash(strings.Join(n.Labels, ",")), fmt.Sprint(n.Containers),
			fmt.Sprintf("%d of %d MB", n.Free.MemoryMB, n.Total().MemoryMB), fmt.Sprintf("%d of %d", n.Free.VCores, n.Total().VCores), dash(headline(n.Health))})
	}
	return s.out.table([]string{"NODE", "STATE", "RACK", "LABELS", "CONTAINERS", "FREE MEMORY", "FREE CORES", "HEALTH"}, rows)
}

// headline is the first line of a text, of a bearable length.
func headline(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > 120 {
		return string(r[:120]) + "…"
	}
	return line
}
