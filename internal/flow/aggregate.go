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

// AccumulatorCodec is an Aggregator that encodes its accumulators itself.
type AccumulatorCodec[A any] interface {
	// AppendAccumulator appends the encoding of acc.
	AppendAccumulator(b []byte, acc A) ([]byte, error)
	// ReadAccumulator decodes what AppendAccumulator wrote, which is all of b. b is borrowed.
	ReadAccumulator(b []byte) (A, error)
}
