// Package kafkasink writes Kafka topics:
//
//	heddle.To(counts, kafkasink.Topic("counts"), heddle.JSON[Count]())
//
// Which brokers, and with what security, is configuration: see package kafkasource.
//
// Every record is written at least once: acknowledged by all replicas in sync, by an idempotent producer, and waited for
// before a job ends. A record that can't be delivered fails the job.
//
// # Keys
//
// A format of package heddle makes values alone. WithKey adds a key, which also decides about the partition, as in Kafka's own clients;
// records without a key go to the partitions in turn, a batch each. A partition has its records in the order of writing,
// whatever brokers do meanwhile:
//
//	format := kafkasink.WithKey(heddle.JSON[Count](), func(c Count) string { return c.User })
//
// RecordFormat sets key, value, headers and timestamp.
package kafkasink
