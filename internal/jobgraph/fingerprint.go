package jobgraph

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// fingerprint hashes all that must agree between the processes of an application: what the compiled graph says,
// and what of the operators it does not say. Where an operator stands in the author's files is left out.
func (c *compilation) fingerprint(g *Graph) string {
	type operator struct {
		Kind, Name, UID, Detail, Group, CoLocation string
		Parallelism, Max                           int
		Keyed, Source, Sink                        bool
		Outputs                                    []string
		In                                         []string
		Align                                      string `json:",omitempty"`
	}
	ops := make([]operator, 0, len(c.src.Nodes))
	for _, n := range c.src.Nodes {
		op := operator{
			Kind: n.Kind, Name: n.Name, UID: n.UID, Detail: n.Detail, Group: c.group[n.ID], CoLocation: n.CoLocation,
			Parallelism: c.par[n.ID], Max: c.max[n.ID], Keyed: n.Keyed, Source: n.Source != nil, Sink: n.Sink, Align: n.Align.String(),
		}
		for _, t := range n.Outputs {
			op.Outputs = append(op.Outputs, t.Name())
		}
		for _, e := range n.In {
			op.In = append(op.In, fmt.Sprintf("%d.%d>%d %s", e.From.ID, e.FromPort, e.ToPort, c.kind(e, n)))
		}
		ops = append(ops, op)
	}
	chains := make([][]int, len(g.Vertices))
	for i, v := range g.Vertices {
		chains[i] = v.Nodes
	}
	text, err := json.Marshal(struct {
		Version int
		Name    string
		Ops     []operator
		Chains  [][]int
		Slots   map[string]cluster.Profile `json:",omitempty"`
	}{1, g.Name, ops, chains, g.Profiles})
	if err != nil {
		panic(fmt.Sprintf("jobgraph: cannot encode a graph of plain values: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
