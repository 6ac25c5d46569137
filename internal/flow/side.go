package flow

import "fmt"

// Sides names the side outputs of an operator: tags and their ports, 1 and up.
// The graph's builder adds to it until the job runs.
type Sides struct {
	tags  []string
	ports []int
}

// Add gives tag a port of n with records of type t, or returns the port that it has.
func (s *Sides) Add(n *Node, tag string, t Type) (int, error) {
	if p := s.Port(tag); p > 0 {
		if have := n.Outputs[p].Name(); have != t.Name() {
			return 0, fmt.Errorf("side output %q of %s is of type %s and can't be %s as well", tag, n.Title(), have, t.Name())
		}
		return p, nil
	}
	p := len(n.Outputs)
	n.Outputs = append(n.Outputs, t)
	s.tags, s.ports = append(s.tags, tag), append(s.ports, p)
	return p, nil
}

// Port returns the port of tag, 0 if nobody asked for it.
func (s *Sides) Port(tag string) int {
	if s == nil {
		return 0
	}
	for i, t := range s.tags {
		if t == tag {
			return s.ports[i]
		}
	}
	return 0
}

// SideOuts are the side outputs of a running operator.
type SideOuts struct {
	sides *Sides
	outs  []any
	bufs  []sideBuffer // [port]; nil until something was emitted there
}

// sideBuffer is a *Buffer[U] whatever its U.
type sideBuffer interface{ Flush() error }

// NewSideOuts makes the side outputs of an instance; outs are those its factory got.
func NewSideOuts(s *Sides, outs []any) *SideOuts {
	return &SideOuts{sides: s, outs: outs, bufs: make([]sideBuffer, len(outs))}
}

// EmitSide puts a record into the side output tag; where nobody reads that, it is dropped.
// Buffers are sent by Flush, or when full.
func EmitSide[U any](s *SideOuts, tag string, rec U, time int64, timed bool) error {
	return EmitSideAt(s, s.sides.Port(tag), rec, time, timed)
}

// EmitSideAt is EmitSide to a port; port 0 drops the record.
func EmitSideAt[U any](s *SideOuts, p int, rec U, time int64, timed bool) error {
	if p == 0 {
		return nil
	}
	b, ok := s.bufs[p].(*Buffer[U])
	if !ok {
		out, ok := s.outs[p].(Out[U])
		if !ok {
			return fmt.Errorf("side output %d takes no %T", p, rec)
		}
		b = NewBuffer(out)
		s.bufs[p] = b
	}
	return b.Add(rec, time, timed)
}

// Flush pushes what was emitted. An operator calls it before it returns from Push, Control and Timer.
func (s *SideOuts) Flush() error {
	for _, b := range s.bufs {
		if b == nil {
			continue
		}
		if err := b.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Control flushes and passes c to every side output.
func (s *SideOuts) Control(c Control) error {
	if err := s.Flush(); err != nil {
		return err
	}
	for _, out := range s.outs[1:] {
		if err := out.(Controller).Control(c); err != nil {
			return err
		}
	}
	return nil
}
