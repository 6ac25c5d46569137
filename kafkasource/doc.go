// Package kafkasource reads Kafka topics:
//
//	clicks := heddle.From(job, kafkasource.Topics("clicks"), heddle.JSON[Click]())
//
// Which brokers, and with what security, is configuration (kafka.brokers, kafka.tls.…, kafka.sasl.…), not code; a source
// of another cluster names its own by Brokers. Options are chained:
//
//	kafkasource.Topics("clicks", "views").
//		Start(kafkasource.Timestamp(yesterday)).
//		Stop(kafkasource.Latest())
//
// # What is read
//
// Each partition is a split. A partition belongs to subtask (start + partition) mod readers, where start follows from a hash of the topic,
// as in Flink: a topic's partitions are spread evenly, and topics begin at different subtasks.
//
// A source without Stop runs forever and looks for new partitions every kafka.discovery-interval. Those it finds later
// are read from their earliest record, whatever Start says, so that nothing written before the discovery is missed.
// A source with Stop reads each partition up to an offset that is fixed when the job starts, then ends. It ends by position: records that no reader
// sees (transaction markers, aborted transactions, what compaction removed) count.
//
// Start may also be what a consumer group has committed (Committed), so that a job can go on where another program was, or where it was itself
// (CommitTo).
//
// A topic that is deleted while it is read fails the job when kafka.unavailable-timeout has passed; one that was deleted and made anew
// is lost data, as is what retention deletes before it is read: see OnDataLoss.
//
// By default only records of committed transactions, and those outside of transactions, are read.
//
// # Key, headers and other metadata
//
// A Format of package heddle sees values alone. Records gives whole records, and RecordFormat turns whole records into any type:
//
//	format := kafkasource.RecordFormat("click", func(r *kafkasource.Record) (Click, error) {
//		return Click{User: string(r.Key), At: r.Time}, nil
//	})
//	clicks := heddle.From(job, kafkasource.Topics("clicks"), format)
package kafkasource
