package jobspec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// aggKind is a way to sum up values. The numbers are part of checkpoints.
type aggKind uint8

const (
	countAll   aggKind = iota // records
	countOf                   // values that are not null
	distinctOf                // different values
	sumOf
	avgOf
	minOf
	maxOf
	firstOf // in order of arrival
	lastOf
)

var aggNames = map[string]aggKind{"count": countOf, "distinct": distinctOf, "sum": sumOf, "avg": avgOf, "min": minOf, "max": maxOf, "first": firstOf, "last": lastOf}

// aggregate is one column of a window's results.
type aggregate struct {
	name string
	kind aggKind
	arg  *expression // nil for countAll
	typ  row.Type    // of the result
}

// parseAggregate reads an aggregate such as sum(amount * 2). It returns nil after reporting what is wrong.
func parseAggregate(doc *strict.Document, sc scope, name string, src strict.Text) *aggregate {
	fn, arg, ok := src.Call()
	switch {
	case ok && !balanced(arg.Value) || !ok && startsWithAggregate(src.Value):
		doc.Failf(src.Place(), "%s takes one aggregate: give each a column of its own, and compute with them in a set after the window", name)
		return nil
	case !ok:
		doc.Failf(src.Place(), "%s needs an aggregate, such as count() or sum(amount), not %s", name, src.Value)
		return nil
	}
	kind, known := aggNames[fn.Value]
	if !known {
		doc.Failf(fn.Place(), "unknown aggregate %q%s", fn.Value, strict.Suggest(fn.Value, slices.Collect(maps.Keys(aggNames))))
		return nil
	}
	a := &aggregate{name: name, kind: kind}
	if arg.Value == "" {
		if kind != countOf {
			doc.Failf(src.Place(), "%s needs an expression in its brackets", fn.Value)
			return nil
		}
		a.kind, a.typ = countAll, row.IntType
		return a
	}
	if a.arg = compileExpr(doc, sc, name, arg); a.arg == nil {
		return nil
	}
	switch kind {
	case countOf, distinctOf:
		a.typ = row.IntType
	case sumOf, avgOf:
		if !a.arg.wantType(doc, arg, row.IntType, row.FloatType) {
			return nil
		}
		if a.typ = a.arg.typ; kind == avgOf {
			a.typ = row.FloatType
		}
	default:
		a.typ = a.arg.typ
	}
	return a
}

// balanced reports whether no bracket of an argument closes one that was opened before it: in sum(a) / count() the
// text from the first bracket to the last is none.
func balanced(arg string) bool {
	depth, quote := 0, rune(0)
	for _, r := range arg {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case strings.ContainsRune("\"'`", r):
			quote = r
		case r == '(':
			depth++
		case r == ')':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return true
}

// startsWithAggregate reports whether a text begins with a call of an aggregate.
func startsWithAggregate(text string) bool {
	name, _, ok := strings.Cut(text, "(")
	_, known := aggNames[strings.TrimSpace(name)]
	return ok && known
}

// numeric is the check of what sum and avg add up.
func (a *aggregate) numeric(v row.Value) error {
	switch v.Kind {
	case row.Int, row.Float, row.Number, row.Null, row.Absent:
		return nil
	}
	return fmt.Errorf("cannot add up %s: %s is no number", a.arg.text, describe(v))
}

// aggregator sums up rows that begin with the key's values, skip of them, and go on with one value for each aggregate that has an argument.
type aggregator struct {
	skip  int
	kinds []aggKind
}

// accumulator holds what has been summed up so far.
type accumulator struct{ cells []cell }

// cell is one aggregate's part of an accumulator.
type cell struct {
	n      int64               // values, or the sum where it is integral
	count  int64               // sumOf: values
	f      float64             // avgOf: the sum; sumOf: the sum once it is no integer
	float  bool                // sumOf: f counts
	val    []byte              // minOf, maxOf, firstOf, lastOf: the value so far, encoded; empty: none
	values map[string]struct{} // distinctOf: keys of values
}

// Zero implements heddle.Aggregator.
func (g *aggregator) Zero() *accumulator { return &accumulator{cells: make([]cell, len(g.kinds))} }

// Add implements heddle.Aggregator.
func (g *aggregator) Add(acc *accumulator, r row.Row) *accumulator {
	s := string(r)
	for range g.skip {
		_, s, _ = row.Next(s)
	}
	for i, k := range g.kinds {
		c := &acc.cells[i]
		if k == countAll {
			c.n++
			continue
		}
		v, rest, _ := row.Next(s)
		if !v.IsNull() {
			c.add(k, v, s[:len(s)-len(rest)])
		}
		s = rest
	}
	return acc
}

// add adds the value v, whose encoding is enc.
func (c *cell) add(k aggKind, v row.Value, enc string) {
	switch k {
	case countOf:
		c.n++
	case distinctOf:
		if c.values == nil {
			c.values = map[string]struct{}{}
		}
		c.val = v.AppendKey(c.val[:0])
		if _, ok := c.values[string(c.val)]; !ok {
			c.values[string(c.val)] = struct{}{}
		}
	case avgOf:
		c.n++
		c.f += v.Number()
	case sumOf:
		c.count++
		if v.Kind == row.Int {
			c.addInt(v.Int())
		} else {
			c.addFloat(v.Number())
		}
	case firstOf:
		if len(c.val) == 0 {
			c.val = append(c.val, enc...)
		}
	case lastOf:
		c.val = append(c.val[:0], enc...)
	case minOf, maxOf:
		if len(c.val) == 0 {
			c.val = append(c.val, enc...)
		} else if d := v.Compare(row.Peek(c.val)); k == minOf && d < 0 || k == maxOf && d > 0 {
			c.val = append(c.val[:0], enc...)
		}
	}
}

// addInt adds to an integral sum; one that leaves 64 bits goes on as a float.
func (c *cell) addInt(i int64) {
	if c.float {
		c.f += float64(i)
		return
	}
	sum := c.n + i
	if (sum > c.n) != (i > 0) && i != 0 {
		c.f, c.float = float64(c.n)+float64(i), true
		return
	}
	c.n = sum
}

func (c *cell) addFloat(f float64) {
	if !c.float {
		c.f, c.float = float64(c.n), true
	}
	c.f += f
}

// Merge implements heddle.Aggregator.
func (g *aggregator) Merge(into, from *accumulator) *accumulator {
	for i, k := range g.kinds {
		c, o := &into.cells[i], &from.cells[i]
		switch k {
		case countAll, countOf:
			c.n += o.n
		case avgOf:
			c.n += o.n
			c.f += o.f
		case sumOf:
			c.count += o.count
			if o.float {
				c.addFloat(o.f)
			} else {
				c.addInt(o.n)
			}
		case distinctOf:
			if c.values == nil {
				c.values = map[string]struct{}{}
			}
			maps.Copy(c.values, o.values)
		default:
			if len(o.val) > 0 {
				c.add(k, row.Peek(o.val), string(o.val))
			}
		}
	}
	return into
}

// Result implements heddle.Aggregator: a value for each aggregate.
func (g *aggregator) Result(acc *accumulator) row.Row {
	b := make([]byte, 0, 12*len(g.kinds))
	for i, k := range g.kinds {
		b = acc.cells[i].appendResult(b, k)
	}
	return row.Row(b)
}

func (c *cell) appendResult(b []byte, k aggKind) []byte {
	switch k {
	case countAll, countOf:
		return row.IntValue(c.n).Append(b)
	case distinctOf:
		return row.IntValue(int64(len(c.values))).Append(b)
	case avgOf:
		if c.n > 0 {
			return row.FloatValue(c.f / float64(c.n)).Append(b)
		}
	case sumOf:
		if c.float {
			return row.FloatValue(c.f).Append(b)
		}
		if c.count > 0 {
			return row.IntValue(c.n).Append(b)
		}
	default:
		if len(c.val) > 0 {
			return append(b, c.val...)
		}
	}
	return append(b, byte(row.Null))
}

// Codec implements flow.AccumulatorCodec.
func (g *aggregator) Codec(*flow.Codecs) (flow.Codec[*accumulator], error) {
	return accumulatorCodec{g}, nil
}

// accumulatorCodec encodes accumulators. For each aggregate: its kind, n and count as varints, f, whether that counts,
// the value, and the different values by order of their bytes.
type accumulatorCodec struct{ g *aggregator }

// Append implements flow.Codec.
func (a accumulatorCodec) Append(b []byte, acc **accumulator) ([]byte, error) {
	for i, k := range a.g.kinds {
		c := &(*acc).cells[i]
		b = append(b, byte(k))
		b = binary.AppendVarint(b, c.n)
		b = binary.AppendVarint(b, c.count)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.f))
		if c.float {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
		val := c.val
		if k == distinctOf {
			val = nil // only scratch
		}
		b = append(binary.AppendUvarint(b, uint64(len(val))), val...)
		b = binary.AppendUvarint(b, uint64(len(c.values)))
		for _, v := range slices.Sorted(maps.Keys(c.values)) {
			b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
		}
	}
	return b, nil
}

var errAccumulator = errors.New("malformed accumulator")

// Decode implements flow.Codec.
func (a accumulatorCodec) Decode(b []byte, acc **accumulator) error {
	*acc = a.g.Zero()
	for i, k := range a.g.kinds {
		if len(b) == 0 || aggKind(b[0]) != k {
			return errAccumulator
		}
		var err error
		if b, err = (*acc).cells[i].read(b[1:]); err != nil {
			return err
		}
	}
	if len(b) > 0 {
		return errAccumulator
	}
	return nil
}

// read reads a cell after its kind, and returns what follows.
func (c *cell) read(b []byte) ([]byte, error) {
	var n int
	if c.n, n = binary.Varint(b); n <= 0 {
		return nil, errAccumulator
	}
	b = b[n:]
	if c.count, n = binary.Varint(b); n <= 0 || len(b) < n+9 {
		return nil, errAccumulator
	}
	b = b[n:]
	c.f, c.float = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8] == 1
	val, b, ok := lengthed(b[9:])
	if !ok {
		return nil, errAccumulator
	}
	c.val = slices.Clone(val)
	values, n := binary.Uvarint(b)
	if n <= 0 || values > uint64(len(b)) {
		return nil, errAccumulator
	}
	b = b[n:]
	if values > 0 {
		c.values = make(map[string]struct{}, values)
	}
	for range values {
		var v []byte
		if v, b, ok = lengthed(b); !ok {
			return nil, errAccumulator
		}
		c.values[string(v)] = struct{}{}
	}
	return b, nil
}

// lengthed reads a length and that many bytes.
func lengthed(b []byte) (val, rest []byte, ok bool) {
	l, n := binary.Uvarint(b)
	if n <= 0 || l > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(l)], b[n+int(l):], true
}
