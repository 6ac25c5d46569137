package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// Committed returns the offsets that a consumer group has committed: those of tps that have one.
// It retries until ctx ends what a new coordinator may cure.
func (c *Client) Committed(ctx context.Context, group string, tps []TP) (map[TP]int64, error) {
	if len(tps) == 0 {
		return nil, nil
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		out, err := c.committedOnce(ctx, group, tps)
		if err == nil {
			return out, nil
		}
		if k, ok := errors.AsType[sarama.KError](err); ok && !retriable(k) && !ofCoordinator(k) {
			return nil, fmt.Errorf("cannot look up what group %q has committed: %w%s", group, err, commitHint(err))
		}
		if !sleep(ctx, wait) {
			return nil, fmt.Errorf("cannot look up what group %q has committed: %w", group, err)
		}
	}
}

// ofCoordinator says whether another coordinator, or the same one later, may answer.
func ofCoordinator(k sarama.KError) bool {
	return k == sarama.ErrNotCoordinatorForConsumer || k == sarama.ErrOffsetsLoadInProgress || k == sarama.ErrConsumerCoordinatorNotAvailable ||
		k == sarama.ErrUnstableOffsetCommit
}

func (c *Client) committedOnce(ctx context.Context, group string, tps []TP) (map[TP]int64, error) {
	addr, err := c.coordinator(ctx, group)
	if err != nil {
		return nil, err
	}
	byTopic := map[string][]int32{}
	for _, tp := range tps {
		byTopic[tp.Topic] = append(byTopic[tp.Topic], tp.Partition)
	}
	var resp *sarama.OffsetFetchResponse
	err = c.at(ctx, addr, func(b *sarama.Broker) (err error) {
		resp, err = b.FetchOffset(sarama.NewOffsetFetchRequest(sarama.V2_5_0_0, group, byTopic))
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case resp.Err == sarama.ErrGroupIDNotFound:
		return map[TP]int64{}, nil
	case resp.Err != sarama.ErrNoError:
		return nil, resp.Err
	}
	out := map[TP]int64{}
	for _, tp := range tps {
		b := resp.GetBlock(tp.Topic, tp.Partition)
		switch {
		case b == nil:
		case b.Err != sarama.ErrNoError && b.Err != ErrUnknownTopic:
			return nil, b.Err
		case b.Offset >= 0 && b.Err == sarama.ErrNoError:
			out[tp] = b.Offset
		}
	}
	return out, nil
}
