package flink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
)

// KafkaResult is what a job did that read a topic.
type KafkaResult struct {
	Records int64
	Seconds float64 // from the first record to the last
	CPUNs   float64 // of the TaskManager a record, with what a job's start takes
}

// ReadKafka reads a topic to where it ends now, by KafkaSource into nothing.
func (c *Cluster) ReadKafka(ctx context.Context, brokers, topic string) (KafkaResult, error) {
	before := c.cpu()
	cmd, err := c.client("KafkaJob", "--brokers", brokers, "--topic", topic)
	if err != nil {
		return KafkaResult{}, err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return KafkaResult{}, fmt.Errorf("cannot read by Flink: %w\n%s", err, c.logs())
	}
	b, err := os.ReadFile(c.counters)
	if err != nil {
		return KafkaResult{}, err
	}
	if len(b) < 32 || binary.LittleEndian.Uint64(b) == 0 {
		return KafkaResult{}, errors.New("nothing was read by Flink")
	}
	at := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[i:])) }
	n := at(0)
	return KafkaResult{Records: n, Seconds: time.Duration(at(24) - at(16)).Seconds(), CPUNs: float64(c.cpu()-before) / float64(n)}, nil
}

// FirstRecord starts a job that reads a topic, and returns when its first record has come.
func (c *Cluster) FirstRecord(ctx context.Context, brokers, topic string) error {
	cmd, err := c.client("KafkaJob", "--brokers", brokers, "--topic", topic)
	if err != nil {
		return err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for deadline := time.Now().Add(3 * time.Minute); c.count() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("the job has no record\n%s", c.logs())
		}
	}
	return nil
}
