// Package netstack moves segments of bytes between processes, under credit-based flow control.
// It knows partitions, channels and bytes; it knows nothing of jobs or records.
//
// A producer task owns a [Partition] with one subpartition for each consumer; a consumer task owns
// a [Gate] with one channel for each producer. A process has one [Stack], which listens, dials
// and shares few connections among many channels. The consumer's stack dials the producer's.
//
// A record's way: the producer gets a segment (Partition.Get, which is where back-pressure is felt),
// fills it and puts it; the connection's write loop takes subpartitions that have data and credit
// in turn and sends many frames in one vectored write, each frame's header lying directly in front of
// its payload in the segment; the consumer's read loop reads each payload straight into a segment
// that was credited to the channel, together with the next frame's header; the consumer takes it from the gate
// and recycles it, which is credit again. A channel within one process skips the connection: the
// consumer gets the producer's own segment.
//
// Under TLS, crypto/tls does the handshake, and records are then protected straight from segments and into them (takeover.go).
//
// A producer that puts a lone short segment on an idle connection writes it itself (conn_direct.go). What waits to be written with credit
// is bounded for each connection (admit.go), and a read loop that is ahead of its consumers makes way for them, so that what is in flight
// stays in the processor's caches. A segment may carry a note, whose way is timed (trace.go).
//
// A connection has two goroutines, one that reads and one that writes, however many channels it has;
// the stack has one that accepts and one that watches over time (keepalive, waiting requests, idle connections).
//
// Locks: each Partition, Gate, conn, pool and Stack has one mutex; none is taken while another is held, but those of
// bufpool and of a connection's admission, which are leaves. Nothing is called back, sent or written under a lock.
//
// SPEC.md in this directory is the protocol.
package netstack
