// Package row holds the records of YAML jobs: rows, whose columns are known when a job is loaded, not when it is compiled.
//
// A [Row] is one string, the values of its columns one after the other, each with a tag that tells its kind. So a row is one
// allocation at most (rows made in a batch share one), is written to another process by copying it and read by pointing
// into the segment's string, and a run of its bytes is a key. Its columns' names and types are not in it: a [Schema] has them, known
// for every stream of a job. Where the fields of the input are not known, a row ends with one more value, an object of the
// fields that have no column of their own (Schema.Rest).
//
// Encoding of a value: one byte of kind, then
//
//	absent, null, false, true   nothing
//	int                         zig-zag varint
//	float                       8 bytes, little endian IEEE 754
//	number                      uvarint length, decimal text: a JSON number that neither int nor float holds exactly
//	string, bytes               uvarint length, bytes
//	time                        zig-zag varint of seconds since the Unix epoch, uvarint of nanoseconds
//	list                        uvarint length of the rest, values
//	object                      uvarint length of the rest, (uvarint length, name, value) for each field
//
// The package also holds the formats of rows: JSON, CSV, text and raw.
package row
