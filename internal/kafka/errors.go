package kafka

import (
	"errors"

	"github.com/IBM/sarama"
)

// retriable says whether a broker's error may go away by itself, with a look at fresh metadata in between.
func retriable(k sarama.KError) bool {
	switch k {
	case sarama.ErrNotLeaderForPartition, // the leader moved
		sarama.ErrLeaderNotAvailable,      // an election is going on
		sarama.ErrReplicaNotAvailable,     // a replica that was asked has gone
		sarama.ErrFencedLeaderEpoch,       // our metadata is older than the broker's
		sarama.ErrUnknownLeaderEpoch,      // the broker's is older than ours
		sarama.ErrOffsetNotAvailable,      // a new leader does not know its high watermark yet
		sarama.ErrUnknownTopicOrPartition, // a broker that has not heard of the topic yet; or it was deleted, which only time tells
		sarama.ErrKafkaStorageError,       // a disk failed: another replica takes over
		sarama.ErrRequestTimedOut,         // the broker is busy
		sarama.ErrNetworkException,        // the broker lost its own connection
		sarama.ErrBrokerNotAvailable,      // a broker is restarting
		sarama.ErrNotEnoughReplicas,       // of too few in sync
		sarama.ErrNotEnoughReplicasAfterAppend,
		sarama.ErrThrottlingQuotaExceeded, // slow down
		sarama.ErrConsumerCoordinatorNotAvailable,
		sarama.ErrUnknown, // the broker's own bug or shutdown
		kErrUnknownTopicID,
		kErrInconsistentTopicID:
		return true
	}
	return false
}

// Codes that sarama has no name for.
const (
	kErrUnknownTopicID      sarama.KError = 100
	kErrInconsistentTopicID sarama.KError = 103
)

// retriableError is retriable for any error: one that no broker sent is of the connection, and retriable.
func retriableError(err error) bool {
	k, ok := errors.AsType[sarama.KError](err)
	return !ok || retriable(k)
}
