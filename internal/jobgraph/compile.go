package jobgraph

import (
	"errors"
	"fmt"
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Defaults and bounds of a compilation.
const (
	DefaultMaxParallelism = 128     // key groups where nobody sets any
	MaxKeyGroups          = 1 << 15 // most key groups that an operator may have
	DefaultSlotGroup      = "default"
)

// Problem is one reason why a job can't be compiled, tied to the operator it is about.
type Problem struct {
	Node  *flow.Node // nil where the problem is of the whole job
	Text  string
	Cause error // what Text quotes; nil mostly
}

func (p *Problem) Error() string {
	if p.Node == nil {
		return p.Text
	}
	s := describe(p.Node) + ": " + p.Text
	if p.Node.Where != "" {
		s = p.Node.Where + ": " + s
	}
	return s
}

func (p *Problem) Unwrap() error { return p.Cause }

// Problems are all the reasons why a job can't be compiled, in order of its operators. It is the error of Compile.
type Problems struct {
	Job  string
	List []error
}

func (p *Problems) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot compile job %q: ", flow.Cut(p.Job, flow.MaxName))
	if len(p.List) == 1 {
		return b.String() + p.List[0].Error()
	}
	fmt.Fprintf(&b, "%d problems", len(p.List))
	for _, e := range p.List {
		b.WriteString("\n  " + strings.ReplaceAll(e.Error(), "\n", "\n  "))
	}
	return b.String()
}

func (p *Problems) Unwrap() []error { return p.List }

// describe names a node for people: its kind and, where it says more, its name.
func describe(n *flow.Node) string {
	if n.Name == "" {
		return n.Title()
	}
	return fmt.Sprintf("%s %q", n.Kind, flow.Cut(n.Name, flow.MaxName))
}

// compilation is the state of one Compile.
type compilation struct {
	src  *flow.Graph
	opts Options
	errs []error

	order []int    // node ids, producers first
	par   []int    // effective parallelism by node id
	max   []int    // effective key groups by node id
	group []string // effective slot sharing group by node id
	head  []int    // head of the chain that a node is in, by node id
}

func (c *compilation) fail(n *flow.Node, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	c.errs = append(c.errs, &Problem{Node: n, Text: err.Error(), Cause: errors.Unwrap(err)})
}

// Compile turns the operators of a job into vertices and edges. It does not modify src.
// If the job is not valid the error is a *Problems with everything that is wrong.
func Compile(src *flow.Graph, opts Options) (*Graph, error) {
	c := &compilation{src: src, opts: opts, errs: append([]error(nil), src.Errs...)}
	c.checkShape()
	if len(c.errs) > len(src.Errs) {
		return nil, c.err() // edges lead nowhere: nothing else can be told
	}
	c.sort()
	c.resolve()
	c.chain()
	c.checkNodes()
	c.checkEdges()
	c.checkUIDs()
	c.checkCoLocation()
	c.checkSlotGroups()
	c.checkSinks()
	if len(c.errs) > 0 {
		return nil, c.err()
	}
	return c.build(), nil
}

func (c *compilation) err() error { return &Problems{Job: c.src.Name, List: c.errs} }

// sort fills order by Kahn's algorithm, smallest id first; nodes on or behind a cycle come last, in order of id.
func (c *compilation) sort() {
	n := len(c.src.Nodes)
	missing := make([]int, n)
	done := make([]bool, n)
	for _, node := range c.src.Nodes {
		missing[node.ID] = len(node.In)
	}
	readers := c.readers()
	for len(c.order) < n {
		next := -1
		for id := range n {
			if !done[id] && missing[id] == 0 {
				next = id
				break
			}
		}
		if next < 0 {
			break
		}
		done[next] = true
		c.order = append(c.order, next)
		for _, to := range readers[next] {
			missing[to]--
		}
	}
	if len(c.order) == n {
		return
	}
	c.reportCycle(done)
	for id := range n {
		if !done[id] {
			c.order = append(c.order, id)
		}
	}
}

// readers returns the ids of the nodes that read each node, once for each edge.
func (c *compilation) readers() [][]int {
	r := make([][]int, len(c.src.Nodes))
	for _, node := range c.src.Nodes {
		for _, e := range node.In {
			r[e.From.ID] = append(r[e.From.ID], node.ID)
		}
	}
	return r
}

// reportCycle names the operators of one cycle among the nodes that are not done.
// Every such node has a producer that is not done, so walking up producers must come to a cycle.
func (c *compilation) reportCycle(done []bool) {
	at := 0
	for done[at] {
		at++
	}
	seen := map[int]int{}
	var path []*flow.Node
	for {
		if from, ok := seen[at]; ok {
			path = path[from:]
			break
		}
		seen[at] = len(path)
		path = append(path, c.src.Nodes[at])
		for _, e := range c.src.Nodes[at].In {
			if !done[e.From.ID] {
				at = e.From.ID
				break
			}
		}
	}
	names := []string{describe(path[0])}
	for i := len(path) - 1; i >= 0; i-- { // path runs against the stream
		names = append(names, describe(path[i]))
	}
	c.fail(path[0], "the stream runs in a cycle: %s", strings.Join(names, " → "))
}

// resolve fills in what operators inherit: parallelism, key groups, slot sharing group.
func (c *compilation) resolve() {
	n := len(c.src.Nodes)
	c.par, c.max, c.group = make([]int, n), make([]int, n), make([]string, n)
	for _, id := range c.order {
		node := c.src.Nodes[id]
		c.par[id] = firstSet(node.Parallelism, c.src.Parallelism, c.opts.Parallelism, 1)
		c.max[id] = firstSet(node.MaxParallelism, c.src.MaxParallelism, c.opts.MaxParallelism, DefaultMaxParallelism)
		c.group[id] = node.SlotGroup
		if node.SlotGroup == "" {
			c.group[id] = c.inheritedGroup(node)
		}
	}
}

// inheritedGroup is the slot sharing group that all inputs of node agree on.
func (c *compilation) inheritedGroup(node *flow.Node) string {
	if len(node.In) == 0 {
		return DefaultSlotGroup
	}
	group := c.group[node.In[0].From.ID]
	for _, e := range node.In[1:] {
		if c.group[e.From.ID] != group {
			return DefaultSlotGroup
		}
	}
	if group == "" { // only on a cycle
		return DefaultSlotGroup
	}
	return group
}

func firstSet(values ...int) int {
	for _, v := range values {
		if v != 0 {
			return v
		}
	}
	return 0
}

// kind returns how e, an in-edge of to, moves records, with automatic forward edges resolved.
func (c *compilation) kind(e flow.Edge, to *flow.Node) flow.PartitionKind {
	if e.Part.Kind == flow.Forward && e.Part.Auto && c.par[e.From.ID] != c.par[to.ID] {
		return flow.Rebalance
	}
	return e.Part.Kind
}

// chain decides for every node which node heads its chain.
func (c *compilation) chain() {
	c.head = make([]int, len(c.src.Nodes))
	coLocation := make([]string, len(c.src.Nodes)) // of the chain, by its head
	for id := range c.head {
		c.head[id] = id
	}
	for _, id := range c.order {
		node := c.src.Nodes[id]
		if c.chainable(node) {
			h := c.head[node.In[0].From.ID]
			if a, b := coLocation[h], node.CoLocation; a == "" || b == "" || a == b {
				c.head[id] = h
			}
		}
		if node.CoLocation != "" {
			coLocation[c.head[id]] = node.CoLocation
		}
	}
}

// chainable reports whether node may run in the goroutine of the only node it reads.
func (c *compilation) chainable(node *flow.Node) bool {
	if c.opts.NoChaining || node.NoChain || len(node.In) != 1 {
		return false
	}
	e := node.In[0]
	from := e.From.ID
	return !e.From.NoChainNext &&
		c.kind(e, node) == flow.Forward &&
		c.par[from] == c.par[node.ID] &&
		c.group[from] == c.group[node.ID] &&
		(node.MaxParallelism == 0 || node.MaxParallelism == c.max[c.head[from]])
}

// build makes the vertices and edges of a valid job.
func (c *compilation) build() *Graph {
	g := &Graph{Name: c.src.Name}
	vertexOf := make([]int, len(c.src.Nodes))
	for _, id := range c.order {
		if c.head[id] == id {
			vertexOf[id] = len(g.Vertices)
			g.Vertices = append(g.Vertices, c.vertex(len(g.Vertices), id))
			continue
		}
		vertexOf[id] = vertexOf[c.head[id]]
		v := &g.Vertices[vertexOf[id]]
		node := c.src.Nodes[id]
		v.add(node)
		if node.CoLocation != "" {
			v.CoLocation = node.CoLocation
		}
	}
	for i := range g.Vertices {
		head := c.src.Nodes[g.Vertices[i].Nodes[0]]
		for _, e := range head.In {
			from := vertexOf[e.From.ID]
			kind := c.kind(e, head)
			edge := Edge{
				ID: len(g.Edges), From: from, To: i,
				FromNode: e.From.ID, FromPort: e.FromPort, ToNode: head.ID, ToPort: e.ToPort,
				Kind: kind, Part: kind.String(), Type: e.From.Outputs[e.FromPort].Name(),
			}
			g.Edges = append(g.Edges, edge)
			g.Vertices[from].Out = append(g.Vertices[from].Out, edge.ID)
			g.Vertices[i].In = append(g.Vertices[i].In, edge.ID)
		}
	}
	for i := range g.Vertices {
		g.Vertices[i].Name = chainName(g.Vertices[i].Operators)
	}
	g.Profiles = c.profiles()
	g.Fingerprint = c.fingerprint(g)
	return g
}

func (c *compilation) vertex(id, head int) Vertex {
	node := c.src.Nodes[head]
	v := Vertex{
		ID: id, Parallelism: c.par[head], MaxParallelism: c.max[head],
		SlotGroup: c.group[head], CoLocation: node.CoLocation, Source: -1,
		In: []int{}, Out: []int{},
	}
	if node.Source != nil {
		v.Source = head
	}
	v.add(node)
	return v
}

// add appends node to the chain.
func (v *Vertex) add(node *flow.Node) {
	v.Nodes = append(v.Nodes, node.ID)
	v.Operators = append(v.Operators, Operator{ID: node.ID, Kind: node.Kind, Name: node.Title(), UID: node.UID, Detail: node.Detail, Where: node.Where, Align: node.Align.String()})
}

// chainName is the names of a chain's operators. Of a long chain it has the first, and says how many more there are: it stands in every metric of the vertex.
func chainName(ops []Operator) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = op.Name
	}
	const arrow = " → "
	name, more := strings.Join(names, arrow), ""
	for n := len(names); len(name)+len(more) > flow.MaxName; {
		n--
		more = fmt.Sprintf("%s… (%d more)", arrow, len(names)-n)
		if name = strings.Join(names[:n], arrow); n == 1 {
			name = flow.Cut(name, flow.MaxName-len(more))
		}
	}
	return name + more
}
