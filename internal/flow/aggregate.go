package flow

// Aggregator sums up records of type T in an accumulator of type A, from which it makes a result of type R.
// One value serves all keys, windows and subtasks, so it holds no state of its own.
//
// Accumulators are kept in checkpoints, so A needs a codec like a record type does; an Aggregator whose accumulators
// are no such type brings its own by implementing AccumulatorCodec.
//
// What Add keeps of a record is copied by the caller where A holds strings and slices; what it puts behind a pointer
// or into a map, it must copy itself if it is a []byte.
type Aggregator[T, A, R any] interface {
	// Zero returns the accumulator of no record.
	Zero() A
	// Add returns acc with rec added. It may modify acc.
	Add(acc A, rec T) A
	// Merge returns into with from added; records of from come after those of into. It may modify into,
	// but neither modify from nor keep memory of it.
	Merge(into, from A) A
	// Result returns the result of acc, which may be added to afterwards.
	// The result may share memory of acc as long as it stays right when records are added.
	Result(acc A) R
}

// AccumulatorCodec is an Aggregator that brings the codec of its accumulators. cs are the codecs of the job, for the parts of which they consist.
// The codec it returns is used by one goroutine.
type AccumulatorCodec[A any] interface {
	Codec(cs *Codecs) (Codec[A], error)
}

// accumulatorCodec returns the codec of agg's accumulators.
func accumulatorCodec[T, A, R any](agg Aggregator[T, A, R], cs *Codecs) (Codec[A], error) {
	if own, ok := agg.(AccumulatorCodec[A]); ok {
		return own.Codec(cs)
	}
	return newStateCodec[A](cs)
}
