// Package schemaregistry has formats of messages whose schemas a registry keeps: Avro and Protobuf, in the framing of Confluent's registry and of Cloudera's.
//
//	clicks := heddle.From(job, kafkasource.Topics("clicks"), schemaregistry.Avro[Click]())
//
// Where the registry is, and who we are to it, is configuration (schema-registry.urls and others), not code. A schema is asked for once by each
// process, and kept: while the registry is away, messages of known schemas are read on. One whose schema is not known then waits for a minute,
// and fails the job after that; it is not taken for a bad message.
package schemaregistry
