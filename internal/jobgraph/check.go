package jobgraph

import "github.com/heddle-stream/heddle/internal/flow"

// checkShape finds what a program that uses package heddle can't do wrong, but a hand-made graph can:
// everything after it relies on ids and ports that exist.
func (c *compilation) checkShape() {
	for i, node := range c.src.Nodes {
		if node.ID != i {
			c.fail(node, "has id %d at place %d of the job", node.ID, i)
			continue
		}
		for _, e := range node.In {
			switch {
			case e.From == nil, e.From.ID < 0, e.From.ID >= len(c.src.Nodes), c.src.Nodes[e.From.ID] != e.From:
				c.fail(node, "reads an operator of another job")
			case e.FromPort < 0 || e.FromPort >= len(e.From.Outputs):
				c.fail(node, "reads output %d of %s, which has %d", e.FromPort, describe(e.From), len(e.From.Outputs))
			case e.From.Outputs[e.FromPort] == nil:
				c.fail(node, "reads output %d of %s, which has no type", e.FromPort, describe(e.From))
			case e.ToPort < 0:
				c.fail(node, "has an input with the number %d", e.ToPort)
			}
		}
	}
}

// checkNodes checks what concerns one operator.
func (c *compilation) checkNodes() {
	writers := map[string]*flow.Node{} // by what they write alone
	for _, node := range c.src.Nodes {
		par, limit := c.par[node.ID], c.max[node.ID]
		switch {
		case par < 0:
			c.fail(node, "parallelism %d is negative", par)
		case limit < 0 || limit > MaxKeyGroups:
			c.fail(node, "max parallelism %d is not between 1 and %d", limit, MaxKeyGroups)
		case par > limit:
			c.fail(node, "parallelism %d is more than the max parallelism %d; lower the one or raise the other", par, limit)
		}
		switch {
		case node.Source != nil && len(node.In) > 0:
			c.fail(node, "is a source and can't have an input")
		case node.Source == nil && len(node.In) == 0:
			c.fail(node, "has no input and is not a source")
		}
		for _, name := range []string{node.Name, c.group[node.ID], node.Align.Group} {
			if err := flow.CheckName(name); err != nil {
				c.fail(node, "%w", err)
			}
		}
		c.checkKeyed(node)
		if node.Align.Group != "" && node.Align.MaxDrift <= 0 {
			c.fail(node, "is in the alignment group %q, but says not how far it may be ahead of the slowest: give WithAlignment a duration above 0", node.Align.Group)
		}
		if other := writers[node.Sole]; other != nil {
			c.fail(node, "writes %s, as %s does: they would overwrite each other's results; give each its own", node.Sole, describe(other))
		} else if node.Sole != "" {
			writers[node.Sole] = node
		}
		if node.Check != nil {
			if err := node.Check(); err != nil {
				c.fail(node, "%w", err)
			}
		}
	}
}

// checkKeyed checks that an operator with keyed state gets its records by key:
// each input is hashed, or broadcast to all subtasks beside one that is hashed.
func (c *compilation) checkKeyed(node *flow.Node) {
	if !node.Keyed || len(node.In) == 0 {
		return
	}
	hashed := false
	for _, e := range node.In {
		switch e.Part.Kind {
		case flow.Hash:
			hashed = true
		case flow.Broadcast:
		default:
			c.fail(node, "keeps state by key but its input from %s is partitioned by %s; put a KeyBy before it", describe(e.From), e.Part.Kind)
			return
		}
	}
	if !hashed {
		c.fail(node, "keeps state by key but none of its inputs is partitioned by key; put a KeyBy before it")
	}
}

// checkEdges checks what concerns one edge.
func (c *compilation) checkEdges() {
	for _, node := range c.src.Nodes {
		for _, e := range node.In {
			c.checkEdge(node, e)
		}
	}
}

func (c *compilation) checkEdge(node *flow.Node, e flow.Edge) {
	from := e.From
	switch e.Part.Kind {
	case flow.Forward:
		if a, b := c.par[from.ID], c.par[node.ID]; a != b && !e.Part.Auto {
			c.fail(node, "forward from %s needs equal parallelism, but that has %d and this has %d; make them equal or use Rebalance or Rescale", describe(from), a, b)
			return
		}
	case flow.Hash:
		if e.Part.Impl == nil {
			c.fail(node, "its input from %s is partitioned by key, but no key is given; put a KeyBy before it", describe(from))
		}
	case flow.Custom:
		if e.Part.Impl == nil {
			c.fail(node, "its input from %s is partitioned by a function, but none is given", describe(from))
		}
	case flow.Rebalance, flow.Rescale, flow.Broadcast:
	default:
		c.fail(node, "its input from %s has an unknown partitioning", describe(from))
	}
	if c.head[node.ID] != node.ID {
		return // chained: its records never leave the process and need no codec
	}
	if err := from.Outputs[e.FromPort].Err(); err != nil {
		c.fail(from, "its records go to %s through the exchange, but can't be sent from process to process: %w", describe(node), err)
	}
}

// checkUIDs finds uids that two operators share.
func (c *compilation) checkUIDs() {
	first := map[string]*flow.Node{}
	for _, node := range c.src.Nodes {
		if node.UID == "" {
			continue
		}
		if other, ok := first[node.UID]; ok {
			c.fail(node, "uid %q is that of %s (%s) already; uids must be unique in a job", node.UID, describe(other), other.Where)
			continue
		}
		first[node.UID] = node
	}
}

// checkCoLocation checks that operators of one co-location group can share slots subtask by subtask.
func (c *compilation) checkCoLocation() {
	first := map[string]*flow.Node{}
	for _, node := range c.src.Nodes {
		if node.CoLocation == "" {
			continue
		}
		other, ok := first[node.CoLocation]
		if !ok {
			first[node.CoLocation] = node
			continue
		}
		if a, b := c.par[other.ID], c.par[node.ID]; a != b {
			c.fail(node, "is co-located with %s in %q, but that has parallelism %d and this %d; make them equal", describe(other), node.CoLocation, a, b)
		}
		if a, b := c.group[other.ID], c.group[node.ID]; a != b {
			c.fail(node, "is co-located with %s in %q, but that is in slot sharing group %q and this in %q; put both into one", describe(other), node.CoLocation, a, b)
		}
	}
}

// checkSinks finds jobs without a sink, and operators whose work nobody sees.
func (c *compilation) checkSinks() {
	if len(c.src.Nodes) == 0 {
		c.fail(nil, "the job has no operators; it needs a source and a sink")
		return
	}
	readers := c.readers()
	sinks := 0
	for _, node := range c.src.Nodes {
		if node.Sink {
			sinks++
			continue
		}
		if len(readers[node.ID]) == 0 {
			c.fail(node, "nothing reads its output; end the stream with a sink, or remove the operator")
		}
	}
	if sinks == 0 {
		c.fail(nil, "the job has no sink")
	}
}
