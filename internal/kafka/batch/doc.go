// Package batch reads and writes Kafka record batches (message format 2, Kafka 0.11 and later) without an allocation per record.
//
// A fetch gives each partition a run of batches, of which the last may be cut short. Parse looks at one batch,
// Verify checks its CRC, a Decompressor unpacks it, and a Cursor walks its records into flow.Messages.
// Positions come from batch headers, so that batches without a visible record (transaction markers,
// aborted or compacted ones) move a reader forward like any other.
//
// Nothing here does I/O, keeps a clock or starts a goroutine. Malformed input is an error, never a panic.
package batch
