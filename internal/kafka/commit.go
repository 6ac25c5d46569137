package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/flow"
)

// Commit commits offsets to a group, as one who reads its partitions without being its member. It retries until ctx ends what a new coordinator may cure.
func (c *Client) Commit(ctx context.Context, group string, offsets map[TP]int64) error {
	left := maps.Clone(offsets)
	for wait := 50 * time.Millisecond; len(left) > 0; wait = min(2*wait, 2*time.Second) {
		err := c.commitOnce(ctx, group, left)
		if err == nil {
			continue
		}
		if k, ok := errors.AsType[sarama.KError](err); ok && !retriable(k) && !ofCoordinator(k) || !sleep(ctx, wait) {
			return fmt.Errorf("cannot commit offsets to group %q: %w%s", group, err, commitHint(err))
		}
	}
	return nil
}

func commitHint(err error) string {
	switch {
	case errors.Is(err, sarama.ErrUnknownMemberId), errors.Is(err, sarama.ErrIllegalGeneration), errors.Is(err, sarama.ErrRebalanceInProgress):
		return " (the group has members, which alone may commit: give the job a group of its own)"
	case errors.Is(err, sarama.ErrGroupAuthorizationFailed), errors.Is(err, sarama.ErrTopicAuthorizationFailed):
		return " (our user needs the right to read the group and the topics)"
	}
	return ""
}

// commitOnce asks the group's coordinator once, and takes from offsets what it has taken.
func (c *Client) commitOnce(ctx context.Context, group string, offsets map[TP]int64) error {
	addr, err := c.coordinator(ctx, group)
	if err != nil {
		return err
	}
	req := &sarama.OffsetCommitRequest{Version: 7, ConsumerGroup: group, ConsumerGroupGeneration: -1}
	for tp, o := range offsets {
		req.AddBlockWithLeaderEpoch(tp.Topic, tp.Partition, o, -1, 0, "")
	}
	var resp *sarama.OffsetCommitResponse
	err = c.at(ctx, addr, func(b *sarama.Broker) (err error) {
		resp, err = b.CommitOffset(req)
		return err
	})
	if err != nil {
		return err
	}
	var why error
	for topic, parts := range resp.Errors {
		for p, k := range parts {
			switch {
			case k == sarama.ErrNoError, k == ErrUnknownTopic: // of a topic that was deleted there is nothing to remember
				delete(offsets, TP{topic, p})
			case why == nil || !retriableError(k):
				why = k
			}
		}
	}
	if why == nil && len(offsets) > 0 {
		why = errLeftOut
	}
	return why
}

// coordinator finds the broker that keeps a group's offsets.
func (c *Client) coordinator(ctx context.Context, group string) (string, error) {
	var found *sarama.FindCoordinatorResponse
	err := c.any(ctx, func(b *sarama.Broker) (err error) {
		found, err = b.FindCoordinator(&sarama.FindCoordinatorRequest{Version: 2, CoordinatorKey: group, CoordinatorType: sarama.CoordinatorGroup})
		return err
	})
	switch {
	case err != nil:
		return "", err
	case found.Err != sarama.ErrNoError:
		return "", found.Err
	case found.Coordinator == nil:
		return "", sarama.ErrConsumerCoordinatorNotAvailable
	}
	return found.Coordinator.Addr(), nil
}

// CommitterConfig is what a Committer needs beside the cluster's Config.
type CommitterConfig struct {
	Group  string
	Logger *slog.Logger
	Commit *flow.Counter // commits that succeeded
	Failed *flow.Counter // commits that did not
}

// Committer commits offsets in the background. What can't be committed is a warning and a count, and is tried again with what comes
// after it: nobody waits for it. Its goroutine owns the connections.
type Committer struct {
	// Immutable.
	cfg    CommitterConfig
	client *Client
	kick   chan struct{} // one slot
	close  chan struct{}
	over   sync.Once // closes close
	done   chan struct{}

	mu        sync.Mutex
	next      map[TP]int64 // guarded by mu: to be committed
	committed map[TP]int64 // guarded by mu
}

// commitTimeout bounds one commit, and how long Close waits for the last; lastCommitTimeout is that of a task that was cancelled: what is not
// committed is read again, and nobody should wait for a login that does not come.
const (
	commitTimeout     = 10 * time.Second
	lastCommitTimeout = 2 * time.Second
)

// NewCommitter starts a Committer for a task whose context is ctx.
func NewCommitter(ctx context.Context, cfg Config, ccfg CommitterConfig) (*Committer, error) {
	client, err := NewClient(cfg)
	if err != nil {
		return nil, err
	}
	c := &Committer{cfg: ccfg, client: client, kick: make(chan struct{}, 1), close: make(chan struct{}), done: make(chan struct{}),
		next: map[TP]int64{}, committed: map[TP]int64{}}
	go c.run(ctx) // Close waits for it
	return c, nil
}

// Commit makes offsets be committed soon.
func (c *Committer) Commit(offsets map[TP]int64) {
	c.mu.Lock()
	maps.Copy(c.next, offsets)
	c.mu.Unlock()
	notify(c.kick)
}

// Committed is what was committed of a partition, 0 if nothing.
func (c *Committer) Committed(tp TP) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.committed[tp]
}

// Close tries once more to commit what is left, and ends.
func (c *Committer) Close() {
	c.over.Do(func() { close(c.close) })
	<-c.done
}

func (c *Committer) run(task context.Context) {
	defer close(c.done)
	defer c.client.Close()
	failing := false
	for {
		over := false
		select {
		case <-c.kick:
		case <-c.close:
			over = true
		}
		patience := commitTimeout
		if over && task.Err() != nil {
			patience = lastCommitTimeout
		}
		if err := c.once(patience, over); err != nil {
			c.cfg.Failed.Add(1)
			if !failing || over {
				c.cfg.Logger.Warn("offsets could not be committed; the job goes on, and they will be with the next", "group", c.cfg.Group, "err", err)
			}
			failing = true
		} else if failing {
			failing = false
			c.cfg.Logger.Info("offsets are committed again", "group", c.cfg.Group)
		}
		if over {
			return
		}
	}
}

// once commits what there is. What fails comes again with the next.
func (c *Committer) once(patience time.Duration, over bool) error {
	c.mu.Lock()
	now := c.next
	c.next = map[TP]int64{}
	c.mu.Unlock()
	if len(now) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !over { // Close cuts a commit short that does not get through, and tries for itself
		done := make(chan struct{})
		defer close(done)
		go func() { // ends with this commit
			select {
			case <-c.close:
				select {
				case <-time.After(time.Second):
					cancel()
				case <-done:
				}
			case <-done:
			}
		}()
	}
	err := c.client.Commit(ctx, c.cfg.Group, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		for tp, o := range now {
			if _, newer := c.next[tp]; !newer {
				c.next[tp] = o
			}
		}
		return err
	}
	maps.Copy(c.committed, now)
	c.cfg.Commit.Add(1)
	return nil
}
