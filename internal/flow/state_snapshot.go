package flow

import "fmt"

// NoGroup is the group of a StateEntry that belongs to no key.
const NoGroup = -1

// StateEntry is a piece of an operator's state as checkpoints keep it. Its bytes are borrowed for the call it is passed in.
type StateEntry struct {
	State string // which of the operator's states; a name that begins with # is the operator's own
	Group int    // key group; NoGroup: of no key
	Key   []byte // encoded; empty for NoGroup
	Value []byte // encoded; a state may have several entries for one key
}

// Stateful is an Operator that holds state.
type Stateful interface {
	// Snapshot hands put all that the operator holds: first what belongs to no key, then key groups in ascending order.
	Snapshot(put func(StateEntry) error) error
	// Restore takes back an entry. It is called before Open: for entries of the key groups that the subtask owns,
	// and for those of no group of every subtask there was.
	Restore(e StateEntry) error
}

// keyGroups finds and encodes the keys of an operator.
type keyGroups[K comparable] struct {
	hash   func(*K) uint64
	codec  *stateCodec[K]
	groups int
	buf    []byte
}

func newKeyGroups[K comparable](rt Runtime, cs *Codecs) (*keyGroups[K], error) {
	hash, err := HashOf[K]()
	if err != nil {
		return nil, err
	}
	codec, err := newStateCodec[K](cs)
	if err != nil {
		return nil, err
	}
	return &keyGroups[K]{hash: hash, codec: codec, groups: rt.MaxParallelism()}, nil
}

// encode returns k encoded, borrowed until the next call.
func (g *keyGroups[K]) encode(k *K) ([]byte, error) {
	var err error
	g.buf, err = g.codec.Append(g.buf[:0], k)
	return g.buf, err
}

func (g *keyGroups[K]) decode(b []byte) (k K, err error) {
	err = g.codec.Decode(b, &k)
	return k, err
}

// each calls visit for n keys in order of their groups; key(i) is the i-th.
func (g *keyGroups[K]) each(n int, key func(i int) *K, visit func(i, group int, encoded []byte) error) error {
	of, starts := make([]uint16, n), make([]int, g.groups+1)
	for i := range n {
		of[i] = uint16(KeyGroup(g.hash(key(i)), g.groups))
		starts[of[i]+1]++
	}
	for i := range g.groups {
		starts[i+1] += starts[i]
	}
	order := make([]int, n)
	for i, group := range of {
		order[starts[group]] = i
		starts[group]++
	}
	for _, i := range order {
		b, err := g.encode(key(i))
		if err != nil {
			return &DataError{fmt.Errorf("cannot encode key %v: %w", *key(i), err), "cannot encode a key: " + notLogged}
		}
		if err := visit(i, int(of[i]), b); err != nil {
			return err
		}
	}
	return nil
}

// unknownState is the error for an entry that no state of the operator takes.
func unknownState(n *Node, e StateEntry) error {
	return fmt.Errorf("cannot restore state %q of operator %s: it has no such state any more", e.State, n.at())
}
