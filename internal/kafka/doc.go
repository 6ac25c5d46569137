// Package kafka is the project's Kafka client for sources and sinks: settings, connections, security, metadata, and a fetch loop
// that hands out raw record batches.
//
// IBM/sarama opens and authenticates every connection and speaks all requests but two. Fetch and Produce are spoken by this package on
// connections borrowed from sarama, since sarama's consumer decodes each message by itself, hides the position and
// drops what it has no message for, and its producer costs some 2 µs a record: see Conn, Puller and Producer. A broker that is fetched
// from or written to has one connection for that and another for everything else, so that a long poll never delays another request.
package kafka
