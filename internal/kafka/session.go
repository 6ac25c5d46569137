package kafka

import (
	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchSession is our side of a fetch session (KIP-227): the broker remembers what a connection reads, so that a request
// names only what has changed since the last, and an answer only what there is to say. It does no I/O.
//
//	full (epoch 0) ──answer with an id──> incremental (epoch 1, 2, …) ──the broker forgot it, or the connection broke──> full
//
// A broker that has no room for one more session answers a full request with id 0: then the next is full again.
type fetchSession struct {
	id    int32
	epoch int32 // of the next request; 0: it must be full
	sent  map[TP]sentPartition
	round uint32 // of the last request
}

// sentPartition is what the broker knows of a partition.
type sentPartition struct {
	pos   int64
	bytes int32
	epoch int32
	last  int32
	round uint32 // of the last request when the partition was read
}

// build makes req the fetch of targets, or what of it the broker does not know yet. It uses req's memory again.
func (s *fetchSession) build(req *kmsg.FetchRequest, targets []*target) {
	if s.sent == nil {
		s.sent = map[TP]sentPartition{}
	}
	full := s.epoch == 0
	if full {
		clear(s.sent)
	}
	s.round++
	req.SessionID, req.SessionEpoch = s.id, s.epoch
	req.Topics, req.ForgottenTopics = req.Topics[:0], req.ForgottenTopics[:0]
	for _, t := range targets {
		now := sentPartition{pos: t.pos, bytes: t.bytes, epoch: t.epoch, last: t.last, round: s.round}
		was, known := s.sent[t.TP]
		s.sent[t.TP] = now
		if was.round = s.round; !known || was != now {
			addPartition(req, t)
		}
	}
	if len(s.sent) > len(targets) {
		s.forget(req)
	}
}

// addPartition names a target in a request.
func addPartition(req *kmsg.FetchRequest, t *target) {
	if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != t.Topic {
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic = t.Topic
		if n < cap(req.Topics) { // reuse the memory of the last request
			topic.Partitions = req.Topics[:n+1][n].Partitions[:0]
		}
		req.Topics = append(req.Topics, topic)
	}
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = t.Partition, t.pos, t.bytes, t.epoch
	p.LastFetchedEpoch = t.last
	last := &req.Topics[len(req.Topics)-1]
	last.Partitions = append(last.Partitions, p)
}

// forget makes the broker forget what is not read any more.
func (s *fetchSession) forget(req *kmsg.FetchRequest) {
	for tp, p := range s.sent {
		if p.round == s.round {
			continue
		}
		delete(s.sent, tp)
		f := kmsg.NewFetchRequestForgottenTopic()
		f.Topic, f.Partitions = tp.Topic, []int32{tp.Partition}
		req.ForgottenTopics = append(req.ForgottenTopics, f)
	}
}

// answered moves the session on by the answer to what build made. It reports false if the broker does not know the
// session any more: then the answer holds nothing, and the next request will be full.
func (s *fetchSession) answered(resp *kmsg.FetchResponse) bool {
	switch sarama.KError(resp.ErrorCode) {
	case sarama.ErrFetchSessionIDNotFound, sarama.ErrInvalidFetchSessionEpoch:
		s.id, s.epoch = 0, 0
		return false
	}
	switch {
	case resp.SessionID == 0:
		s.id, s.epoch = 0, 0
	case s.epoch == 0:
		s.id, s.epoch = resp.SessionID, 1
	case s.epoch == 1<<31-1:
		s.epoch = 1
	default:
		s.epoch++
	}
	return true
}
