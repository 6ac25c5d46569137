package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/heddle-stream/heddle/bench"
)

func peerNames(write bool) []string {
	if write {
		return []string{"heddle", "franz-go", "sarama"}
	}
	return []string{"heddle", "franz-go", "franz-go-pools", "sarama"}
}

const partitions = 8

// broker runs a broker in memory until it is killed.
func broker(ctx context.Context, s settings, out io.Writer) error {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, s.topic))
	if err != nil {
		return err
	}
	defer c.Close()
	s.brokers = strings.Join(c.ListenAddrs(), ",")
	if !s.write {
		if err := bench.Kafka(ctx, s.options(), func(bench.KafkaResult) error { return nil }); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, s.brokers)
	<-ctx.Done()
	return nil
}

// options fill the topic, or write it.
func (s settings) options() bench.KafkaOptions {
	return bench.KafkaOptions{Topic: s.topic, Records: s.records, RecordSize: s.size, Write: true, Option: s.option, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
}

func (s settings) option(name string) (string, bool) { return s.brokers, name == "kafka.brokers" }

// turn is one round of one peer, in this process.
func turn(ctx context.Context, s settings, name string, out io.Writer) error {
	if name == "heddle" {
		if s.profile != "" {
			f, err := os.Create(s.profile)
			if err != nil {
				return err
			}
			defer f.Close()
			if err := pprof.StartCPUProfile(f); err != nil {
				return err
			}
			defer pprof.StopCPUProfile()
		}
		o := s.options()
		o.Write, o.Rounds = s.write, s.repeat
		return bench.Kafka(ctx, o, func(r bench.KafkaResult) error {
			return json.NewEncoder(out).Encode(round{Records: r.Records, Seconds: r.Seconds, CPU: r.CPUNsPerRecord, Allocs: r.AllocsPerRecord})
		})
	}
	peers := map[string]func(context.Context, settings) (int64, error){
		"franz-go": readFranz, "franz-go-pools": readFranzPools, "sarama": readSarama,
	}
	if s.write {
		peers = map[string]func(context.Context, settings) (int64, error){"franz-go": writeFranz, "sarama": writeSarama}
	}
	peer := peers[name]
	if peer == nil {
		return fmt.Errorf("no peer is called %q", name)
	}
	for range max(s.repeat, 1) {
		before, began := usage(), time.Now()
		n, err := peer(ctx, s)
		if err != nil {
			return err
		}
		seconds, after := time.Since(began).Seconds(), usage()
		if err := json.NewEncoder(out).Encode(round{Records: n, Seconds: seconds, CPU: float64(after.cpu-before.cpu) / float64(n), Allocs: float64(after.allocs-before.allocs) / float64(n)}); err != nil {
			return err
		}
	}
	return nil
}

type used struct {
	cpu    int64
	allocs uint64
}

func usage() used {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for wrong arguments only
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return used{u.Utime.Nano() + u.Stime.Nano(), m.Mallocs}
}

func readFranz(ctx context.Context, s settings) (int64, error) { return readFranzBy(ctx, s, nil) }
func readFranzPools(ctx context.Context, s settings) (int64, error) {
	return readFranzBy(ctx, s, (*kgo.Record).Recycle, kgo.WithPools(new(pool)))
}

// pool gives franz-go the memory of its records back.
type pool struct{ records, raw sync.Pool }

func (p *pool) GetRecords(n int) []kgo.Record {
	if r, ok := p.records.Get().(*[]kgo.Record); ok && cap(*r) >= n {
		return (*r)[:n]
	}
	return make([]kgo.Record, n)
}

func (p *pool) PutRecords(r []kgo.Record) { p.records.Put(&r) }

func (p *pool) GetKRecords(n int) []kmsg.Record {
	if r, ok := p.raw.Get().(*[]kmsg.Record); ok && cap(*r) >= n {
		return (*r)[:n]
	}
	return make([]kmsg.Record, n)
}

func (p *pool) PutKRecords(r []kmsg.Record) { p.raw.Put(&r) }

func readFranzBy(ctx context.Context, s settings, recycle func(*kgo.Record), opts ...kgo.Opt) (n int64, err error) {
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(s.brokers, ",")...), kgo.ConsumeTopics(s.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	var bytes int64
	for n < s.records {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			return n, err
		}
		f.EachRecord(func(r *kgo.Record) {
			n++
			bytes += int64(len(r.Value))
			if recycle != nil {
				recycle(r)
			}
		})
	}
	return n, nil
}

func saramaConfig() *sarama.Config {
	metrics.UseNilMetrics = true
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	return c
}

func readSarama(ctx context.Context, s settings) (int64, error) {
	c := saramaConfig()
	c.Consumer.Fetch.Default = 1 << 20
	cons, err := sarama.NewConsumer(strings.Split(s.brokers, ","), c)
	if err != nil {
		return 0, err
	}
	defer cons.Close()
	parts, err := cons.Partitions(s.topic)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var n atomic.Int64
	var wg sync.WaitGroup
	for _, p := range parts {
		pc, err := cons.ConsumePartition(s.topic, p, sarama.OffsetOldest)
		if err != nil {
			return 0, err
		}
		wg.Go(func() {
			defer pc.Close()
			for mine := int64(0); ; {
				select {
				case <-ctx.Done():
					return
				case m := <-pc.Messages():
					if mine++; m != nil && n.Add(1) >= s.records {
						cancel()
						return
					}
				}
			}
		})
	}
	wg.Wait()
	return n.Load(), nil
}

func writeFranz(ctx context.Context, s settings) (int64, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(s.brokers, ",")...), kgo.DefaultProduceTopic(s.topic), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(200_000))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	value := make([]byte, s.size)
	var failed atomic.Pointer[error]
	for range s.records {
		cl.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	err = cl.Flush(ctx)
	if p := failed.Load(); p != nil {
		err = errors.Join(err, *p)
	}
	return s.records, err
}

func writeSarama(_ context.Context, s settings) (int64, error) {
	c := saramaConfig()
	c.Producer.RequiredAcks, c.Producer.Idempotent, c.Net.MaxOpenRequests = sarama.WaitForAll, true, 1
	c.Producer.Return.Successes, c.Producer.Flush.Frequency = false, 10*time.Millisecond
	p, err := sarama.NewAsyncProducer(strings.Split(s.brokers, ","), c)
	if err != nil {
		return 0, err
	}
	failed := make(chan error, 1)
	go func() { // ends when the producer has
		var first error
		for e := range p.Errors() {
			first = e
		}
		failed <- first
	}()
	value := make([]byte, s.size)
	for range s.records {
		p.Input() <- &sarama.ProducerMessage{Topic: s.topic, Value: sarama.ByteEncoder(value)}
	}
	p.AsyncClose()
	return s.records, <-failed
}
