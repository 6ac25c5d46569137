package jobgraph

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Lines are the plan for people: each vertex with its chain of operators and where its records go. Names are as their author wrote them, control characters
// and all: who prints the lines has to make each printable.
func (g *Graph) Lines() []string {
	lines := []string{fmt.Sprintf("job %s: %s, %s, %s", g.Name, count(len(g.Vertices), "vertex", "vertices"),
		count(g.Subtasks(), "subtask", "subtasks"), g.slotsText())}
	for i := range g.Vertices {
		lines = append(append(lines, ""), g.vertexLines(&g.Vertices[i])...)
	}
	return append(lines, "", "fingerprint "+g.Fingerprint)
}

func (g *Graph) slotsText() string {
	need := g.SlotsNeeded()
	if len(need) == 1 && need[0].Group == DefaultSlotGroup {
		text := count(need[0].Slots, "slot", "slots")
		if p := need[0].Profile; p != (cluster.Profile{}) {
			text += " of " + p.String()
		}
		return text
	}
	parts := make([]string, len(need))
	for i, n := range need {
		parts[i] = fmt.Sprintf("%s %d", n.Group, n.Slots)
		if n.Profile != (cluster.Profile{}) {
			parts[i] += " of " + n.Profile.String()
		}
	}
	return fmt.Sprintf("%s (%s)", count(g.Slots(), "slot", "slots"), strings.Join(parts, ", "))
}

func (g *Graph) vertexLines(v *Vertex) []string {
	head := fmt.Sprintf("[%d] × %d", v.ID, v.Parallelism)
	if v.SlotGroup != DefaultSlotGroup {
		head += "  slot group " + v.SlotGroup
	}
	if v.CoLocation != "" {
		head += "  co-location " + v.CoLocation
	}
	lines := []string{head}
	var width int
	for _, op := range v.Operators {
		width = max(width, len([]rune(op.title())))
	}
	for i, op := range v.Operators {
		branch := "├─"
		if i == len(v.Operators)-1 && len(v.Out) == 0 {
			branch = "└─"
		}
		line := fmt.Sprintf("  %s %s%s", branch, op.title(), strings.Repeat(" ", width-len([]rune(op.title()))))
		if op.Where != "" {
			line += "  " + op.Where
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	for i, id := range v.Out {
		e := g.Edges[id]
		branch := "├─"
		if i == len(v.Out)-1 {
			branch = "└─"
		}
		line := fmt.Sprintf("  %s%s→ [%d]", branch, e.Part, e.To)
		if e.FromPort > 0 {
			line += fmt.Sprintf("  from side output %d", e.FromPort)
		}
		if e.ToPort > 0 {
			line += fmt.Sprintf("  into input %d", e.ToPort)
		}
		lines = append(lines, line+"  "+e.Type)
	}
	return lines
}

// title is how plans name an operator: kind, name unless it only repeats the kind, detail.
func (o Operator) title() string {
	s := o.Kind
	if o.Name != "" && o.Name != o.Kind {
		s += " " + o.Name
	}
	if o.Detail != "" {
		s += " (" + o.Detail + ")"
	}
	if o.Align != "" {
		s += ", " + o.Align
	}
	return s
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// DOT writes the plan in the language of Graphviz: a box for each vertex, an arrow for each edge.
func (g *Graph) DOT(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n", quote(g.Name))
	for _, v := range g.Vertices {
		lines := make([]string, 0, len(v.Operators)+1)
		for _, op := range v.Operators {
			lines = append(lines, op.title())
		}
		lines = append(lines, fmt.Sprintf("× %d", v.Parallelism))
		fmt.Fprintf(&b, "  v%d [label=%s];\n", v.ID, quote(strings.Join(lines, "\n")))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  v%d -> v%d [label=%s];\n", e.From, e.To, quote(e.Part+"\n"+e.Type))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// quote makes s a quoted string of the DOT language.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// JSON writes the plan for programs.
func (g *Graph) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		*Graph
		Slots []SlotsNeeded `json:"slots"`
	}{g, g.SlotsNeeded()})
}
