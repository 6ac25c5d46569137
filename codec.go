package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// Codec is an author's own encoding of a type.
//
// Without one, these types can be sent from process to process: bools, integers, floats, complex numbers, strings, []byte, time.Time (as an instant,
// decoded in UTC), and structs, arrays, slices and pointers of these, with unexported fields. Types without pointers are
// fastest: they are neither encoded nor decoded. Maps, interfaces, functions, channels and types that contain themselves
// need a codec, and a job that has none for them is refused, with the operator's name. Package protocodec has one for protobuf messages.
type Codec[T any] = flow.Codec[T]

// UseCodec makes c the codec of T in the job, wherever T occurs: as a record, in a field, in a slice.
func UseCodec[T any](j *Job, c Codec[T]) {
	if !j.needs(c != nil, "UseCodec", "the codec") {
		return
	}
	if err := flow.Use(j.codecs, c); err != nil {
		j.errorf("%w", err)
	}
}
