package flow

import "fmt"

// RollingParams are what makes an operator that aggregates all records of a key, and puts out a result for each record.
type RollingParams[K comparable, T, A, R, U any] struct {
	Key    func(T) K
	Agg    Aggregator[T, A, R]
	Join   func(K, R) U // makes the record that is put out
	Codecs *Codecs
}

// Check returns why keys or accumulators can't be kept in checkpoints, nil if they can.
func (p RollingParams[K, T, A, R, U]) Check() error {
	return WindowParams[K, T, A, R]{Agg: p.Agg, Codecs: p.Codecs}.Check()
}

// NewRolling makes the factory of such an operator.
func NewRolling[K comparable, T, A, R, U any](p RollingParams[K, T, A, R, U]) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		out, err := outOf[U](outs[0])
		if err != nil {
			return Instance{}, err
		}
		groups, err := newKeyGroups[K](rt, p.Codecs)
		if err != nil {
			return Instance{}, err
		}
		codec, err := accumulatorCodec(p.Agg, p.Codecs)
		if err != nil {
			return Instance{}, err
		}
		_, ownCodec := p.Agg.(AccumulatorCodec[A])
		op := &rollingOp[K, T, A, R, U]{
			base: newBase(rt, nil, nil, outs), key: normalKey(p.Key), agg: p.Agg, join: p.Join, out: out, buf: NewBuffer(out),
			keys: newKeyTable[K](), keep: keeperOf[A](p.Codecs, !ownCodec), groups: groups, codec: codec,
		}
		return instance(Out[T](op), op), nil
	}
}

// rollingOp keeps an accumulator a key, for ever. Owned by the task's goroutine.
type rollingOp[K comparable, T, A, R, U any] struct {
	base
	key    func(T) K
	agg    Aggregator[T, A, R]
	join   func(K, R) U
	out    Out[U]
	buf    *Buffer[U]
	keys   *keyTable[K]
	accs   []A // [slot]
	keep   keeper[A]
	groups *keyGroups[K]
	codec  Codec[A]
}

// Push implements Out.
func (o *rollingOp[K, T, A, R, U]) Push(b Batch[T]) error {
	if err := o.add(b); err != nil {
		return err
	}
	return o.buf.Flush()
}

func (o *rollingOp[K, T, A, R, U]) add(b Batch[T]) (err error) {
	i := 0
	defer func() {
		if o.pushing {
			return // not ours to judge
		}
		if p := recover(); p != nil {
			err = panicError(o.node, p, b.Recs[i])
		}
	}()
	timed, t := b.Times != nil, int64(0)
	for i = range b.Recs {
		k := o.key(b.Recs[i])
		slot, ok := o.keys.slots[k]
		if !ok {
			slot = o.insert(k)
		}
		acc := &o.accs[slot]
		o.keep.replace(acc, o.agg.Add(*acc, b.Recs[i]))
		if timed {
			t = b.Times[i]
		}
		u := o.join(o.keys.keys[slot], o.agg.Result(*acc))
		o.pushing = true
		err := o.buf.Add(u, t, timed)
		o.pushing = false
		if err != nil {
			return err
		}
	}
	return nil
}

// insert gives a new key its accumulator.
func (o *rollingOp[K, T, A, R, U]) insert(k K) uint32 {
	slot := o.keys.insert(k)
	o.keys.hold(slot)
	o.accs = grown(o.accs, slot, o.agg.Zero())
	return slot
}

// Control implements Out.
func (o *rollingOp[K, T, A, R, U]) Control(c Control) error { return o.out.Control(c) }

// rollingState is the name of its state.
const rollingState = "#rolling"

// Snapshot implements Stateful.
func (o *rollingOp[K, T, A, R, U]) Snapshot(put func(StateEntry) error) error {
	var b []byte
	slots := o.keys.live()
	key := func(i int) *K { return &o.keys.keys[slots[i]] }
	return o.groups.each(len(slots), key, func(i, group int, encoded []byte) (err error) {
		if b, err = o.codec.Append(b[:0], &o.accs[slots[i]]); err != nil {
			return fmt.Errorf("cannot take down the state of operator %s: %w", o.node.at(), err)
		}
		return put(StateEntry{State: rollingState, Group: group, Key: encoded, Value: b})
	})
}

// Restore implements Stateful.
func (o *rollingOp[K, T, A, R, U]) Restore(e StateEntry) error {
	if e.State != rollingState {
		return unknownState(o.node, e)
	}
	k, err := o.groups.decode(e.Key)
	if err == nil {
		err = o.codec.Decode(e.Value, &o.accs[o.insert(k)])
	}
	if err != nil {
		return fmt.Errorf("cannot restore the state of operator %s: %w", o.node.at(), err)
	}
	return nil
}
