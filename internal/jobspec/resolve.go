package jobspec

import (
	"fmt"
	"strings"

	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// common is what all steps share.
type common struct {
	spec    *step
	id      string // the name of the step's operator: its own, or kind and number
	kind    string
	in, out *stream
	letters *sinkNode // where failed records go, nil if nowhere
}

// resolveStep makes the node of step i, whose input is last unless it says otherwise, and returns the stream that the next one reads.
func (p *planner) resolveStep(i int, s *step, last *stream) *stream {
	c := common{spec: s, kind: kindOf(s)}
	if c.kind == "" {
		return nil // reported by the decoder
	}
	c.id = fmt.Sprintf("%s-%d", c.kind, i+1)
	title := fmt.Sprintf("step %d (%s)", i+1, c.kind)
	name, place := "", s.Place()
	if s.Name.IsSet() {
		name, place = s.Name.Value, s.Name.Place()
		c.id = name
	}
	c.letters = p.deadLetters(s.OnError)
	c.in = p.input(&c, last)
	c.out = newStream(title, name, place)
	if c.kind != "route" {
		p.add(c.out)
	}
	p.nodes = append(p.nodes, p.stepNode(c))
	if c.kind == "route" {
		return nil
	}
	return c.out
}

// input finds what a step reads; a union lists it, so it has no other input.
func (p *planner) input(c *common, last *stream) *stream {
	s := c.spec
	switch {
	case c.kind == "union":
		if s.From.IsSet() {
			p.doc.Failf(s.From.Place(), "a union reads the streams that it lists, and takes no from")
		}
		return nil
	case s.From.IsSet():
		return p.find(s.From)
	case last != nil:
		last.used = true
		return last
	}
	if !p.doc.Failed() {
		p.doc.Failf(s.Place(), "say with from what the step reads%s", namesHint(p.names))
	}
	return nil
}

// stepNode makes the node of a step.
func (p *planner) stepNode(c common) node {
	s := c.spec
	switch c.kind {
	case "filter":
		return &filterNode{common: c}
	case "set":
		return &setNode{common: c}
	case "keep", "drop":
		return &pickNode{common: c}
	case "flat_map":
		return &flatMapNode{common: c}
	case "key_by":
		return &keyNode{common: c}
	case "dedupe":
		return &dedupeNode{common: c}
	case "window":
		n := &windowNode{common: c}
		if s.Window.Late.IsSet() {
			if n.late = p.sink(s.Window.Late); n.late != nil {
				n.late.fed = true
			}
		}
		return n
	case "union":
		n := &unionNode{common: c}
		for _, ref := range s.Union {
			if in := p.find(ref); in != nil {
				n.ins = append(n.ins, in)
			}
		}
		return n
	}
	n := &routeNode{common: c}
	for _, b := range s.Route.Entries {
		n.outs = append(n.outs, p.add(newStream("branch "+b.Key.Value, b.Key.Value, b.Key.Place())))
	}
	return n
}

// kindOf is the field that says what a step does.
func kindOf(s *step) string {
	switch {
	case s.Filter != nil:
		return "filter"
	case s.Set != nil:
		return "set"
	case s.Keep != nil:
		return "keep"
	case s.Drop != nil:
		return "drop"
	case s.FlatMap != nil:
		return "flat_map"
	case s.KeyBy != nil:
		return "key_by"
	case s.Window != nil:
		return "window"
	case s.Dedupe != nil:
		return "dedupe"
	case s.Union != nil:
		return "union"
	case s.Route != nil:
		return "route"
	}
	return ""
}

// checkInput returns the step's input, nil if there is none or it is keyed, which is reported.
func (c *common) checkInput(p *planner) *stream {
	if c.in == nil {
		return nil
	}
	if c.in.key != nil {
		p.doc.Failf(c.spec.Place(), "%s can't read the key_by before it: key_by must be followed by window or dedupe", c.kind)
		return nil
	}
	c.out.timed = c.in.timed
	return c.in
}

// columns checks that the stream has the columns named.
func (p *planner) columns(s *stream, names ...strict.String) (ok bool) {
	ok = true
	seen := map[string]bool{}
	for _, n := range names {
		switch {
		case seen[n.Value]:
			p.doc.Failf(n.Place(), "column %q is listed twice", n.Value)
			ok = false
		case s.schema.Index(n.Value) < 0 && !s.schema.Rest:
			p.doc.Failf(n.Place(), "unknown column %q%s", n.Value, strict.Suggest(n.Value, s.schema.Names()))
			ok = false
		}
		seen[n.Value] = true
	}
	return ok
}

// checkPolicy reports an on_error where nothing can fail.
func (c *common) noPolicy(p *planner) {
	if e := c.spec.OnError; e != nil {
		p.doc.Failf(e.Place(), "on_error does nothing here: %s can't fail", c.kind)
	}
}

// line implements node.
func (c *common) line() int { return c.spec.Place().Line }

// slotGroup implements node.
func (c *common) slotGroup() string { return c.spec.SlotGroup.Value }

// does implements node.
func (c *common) does(operator string) (kind, detail string) {
	s := c.spec
	if operator != c.id {
		return "map", ""
	}
	switch c.kind {
	case "filter":
		detail = s.Filter.Value
	case "set":
		detail = entries(s.Set)
	case "flat_map":
		detail = entries(s.FlatMap)
	case "route":
		detail = entries(s.Route)
	case "keep":
		detail = strings.Join(values(s.Keep), ", ")
	case "drop":
		detail = strings.Join(values(s.Drop), ", ")
	}
	return c.kind, shorten(detail, 80)
}

// entries prints names and expressions.
func entries(m *strict.Map[strict.Text]) string {
	var parts []string
	for _, e := range m.Entries {
		parts = append(parts, e.Key.Value+" = "+e.Value.Value)
	}
	return strings.Join(parts, ", ")
}

// shorten puts a text into one line of limited length.
func shorten(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
