// Package kafka holds the integration tests that run Heddle against a real Kafka broker.
// Run them by make itest-kafka.
package kafka
