// Package bench measures Heddle against what the machine can do.
package bench

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/netstack"
)

// RoleEnv is the environment variable that tells a process of this program that it is a benchmark's peer.
const RoleEnv = "HEDDLE_BENCH_ROLE"

// The roles. A process started with one of these in RoleEnv must call ExchangePeer and nothing else.
const (
	roleConsumer = "exchange-consumer"
	roleRaw      = "exchange-raw"
	roleLatency  = "exchange-latency"

	roleTraced    = "exchange-traced"
	roleCollector = "exchange-collector"
)

// ExchangeOptions say what to measure.
type ExchangeOptions struct {
	RecordSize  int           // bytes of a record: 8 is a uint64, more a []byte; 0: 8
	Parallelism int           // producers in this process and consumers in the other; 0: 1
	Partitioner string        // "rebalance" or "hash"; "": rebalance
	Duration    time.Duration // measured, after a warm-up; 0: 5 s
	TLS         bool          // mutual TLS, of the raw loop beside it too
	// As in netstack.Config.
	Compression string
	Checksum    bool
	Executable  string // program to start as the peer; "": this one

	// As in netstack.Config, for both ends.
	SegmentBytes, ExclusivePerChannel, FloatingPerGate, MaxPerChannel, MaxPerSubpartition int
}

// ExchangeResult is what was measured.
type ExchangeResult struct {
	RecordSize        int     `json:"record_size"`
	Parallelism       int     `json:"parallelism"`
	Partitioner       string  `json:"partitioner"`
	TLS               bool    `json:"tls"`
	Seconds           float64 `json:"seconds"`
	RecordsPerSecond  float64 `json:"records_per_second"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
	CPUNsPerRecord    float64 `json:"cpu_ns_per_record"` // both processes, user and system
	AllocsPerRecord   float64 `json:"allocs_per_record"` // both processes
	ResidentBytes     int64   `json:"resident_bytes"`    // the larger process's most
	RawBytesPerSecond float64 `json:"raw_bytes_per_second"`
	RawCPUNsPerKB     float64 `json:"raw_cpu_ns_per_kb"`
	Records           uint64  `json:"records"` // in all, warm-up and end included: every one verified
}

// peerConfig is what the peer reads first from its standard input.
type peerConfig struct {
	Options ExchangeOptions
	Key     []byte
	Addr    string
	Cert    *keyPair
}

// mark is a sample of one process.
type mark struct {
	Records uint64
	Sum     uint64
	CPU     time.Duration
	Mallocs uint64
	RSS     int64 // the most so far, in bytes
	Ended   bool
	Err     string
}

const warmUp = 500 * time.Millisecond

func (o ExchangeOptions) withDefaults() (ExchangeOptions, error) {
	if o.RecordSize == 0 {
		o.RecordSize = 8
	}
	if o.Parallelism == 0 {
		o.Parallelism = 1
	}
	if o.Partitioner == "" {
		o.Partitioner = "rebalance"
	}
	if o.Duration == 0 {
		o.Duration = 5 * time.Second
	}
	switch {
	case o.RecordSize < 8 || o.RecordSize > 16<<10:
		return o, fmt.Errorf("cannot measure records of %d bytes: 8 to 16384 are possible", o.RecordSize)
	case o.Parallelism < 1 || o.Parallelism > 1024:
		return o, fmt.Errorf("cannot measure a parallelism of %d: 1 to 1024 are possible", o.Parallelism)
	case o.Partitioner != "rebalance" && o.Partitioner != "hash":
		return o, fmt.Errorf("cannot measure partitioner %q: rebalance and hash are possible", o.Partitioner)
	}
	return o, nil
}

// Exchange sends records from producers in this process to consumers in another one, over loopback TCP, and then runs a raw TCP loop beside.
func Exchange(ctx context.Context, o ExchangeOptions) (ExchangeResult, error) {
	o, err := o.withDefaults()
	if err != nil {
		return ExchangeResult{}, err
	}
	res, err := runExchange(ctx, o)
	if err != nil {
		return res, fmt.Errorf("cannot measure the exchange: %w", err)
	}
	if err := runRaw(ctx, o, &res); err != nil {
		return res, fmt.Errorf("cannot measure raw TCP: %w", err)
	}
	return res, nil
}

func runExchange(ctx context.Context, o ExchangeOptions) (ExchangeResult, error) {
	cfg := peerConfig{Options: o, Key: make([]byte, netstack.KeySize)}
	rand.Read(cfg.Key)
	if o.TLS {
		pair, err := newKeyPair()
		if err != nil {
			return ExchangeResult{}, err
		}
		cfg.Cert = pair
	}
	ctx, end := bounded(ctx, warmUp+o.Duration)
	defer end(nil)
	stack, err := newStack(cfg, "producers")
	if err != nil {
		return ExchangeResult{}, err
	}
	defer stack.Close()
	cfg.Addr = stack.Addr()
	p, err := startPeer(ctx, end, o.Executable, roleConsumer, cfg)
	if err != nil {
		return ExchangeResult{}, err
	}
	defer p.close()
	producers, err := startProducers(ctx, p.orDeath(end), stack, o)
	if err != nil {
		return ExchangeResult{}, err
	}
	defer producers.stop()
	return measure(ctx, o, p, producers)
}

func measure(ctx context.Context, o ExchangeOptions, p *peer, producers *producers) (ExchangeResult, error) {
	res := ExchangeResult{RecordSize: o.RecordSize, Parallelism: o.Parallelism, Partitioner: o.Partitioner, TLS: o.TLS}
	if err := pause(ctx, warmUp); err != nil {
		return res, err
	}
	began := time.Now()
	own, theirs, err := p.marks(ctx)
	if err != nil {
		return res, err
	}
	var own2, theirs2 mark
	for theirs2.Records <= theirs.Records { // on a machine so busy that nothing moves, a short time becomes longer; ctx bounds it
		if err := pause(ctx, o.Duration); err != nil {
			return res, err
		}
		if own2, theirs2, err = p.marks(ctx); err != nil {
			return res, err
		}
	}
	res.Seconds = time.Since(began).Seconds()
	n := float64(theirs2.Records - theirs.Records)
	res.RecordsPerSecond = n / res.Seconds
	res.BytesPerSecond = res.RecordsPerSecond * float64(o.RecordSize)
	res.CPUNsPerRecord = float64(own2.CPU-own.CPU+theirs2.CPU-theirs.CPU) / n
	res.ResidentBytes = max(own2.RSS, theirs2.RSS)
	res.AllocsPerRecord = float64(own2.Mallocs-own.Mallocs+theirs2.Mallocs-theirs.Mallocs) / n

	sent, err := producers.finish()
	if err != nil {
		return res, reason(ctx, err)
	}
	last, err := p.end(ctx)
	if err != nil {
		return res, err
	}
	if last.Records != sent.Records || last.Sum != sent.Sum {
		return res, fmt.Errorf("sent %d records with sum %x, received %d with sum %x", sent.Records, sent.Sum, last.Records, last.Sum)
	}
	res.Records = last.Records
	return res, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ExchangePeer runs the role that RoleEnv names, until its work is done or its standard input ends.
func ExchangePeer(ctx context.Context) error {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	switch os.Getenv(RoleEnv) {
	case roleLatency:
		return receiveLatency(ctx, line, in)
	case roleTraced:
		return consumeTraced(ctx, line, in)
	case roleCollector:
		return collect(in)
	}
	var cfg peerConfig
	if err := json.Unmarshal(line, &cfg); err != nil {
		return err
	}
	switch role := os.Getenv(RoleEnv); role {
	case roleConsumer:
		return consume(ctx, cfg, in)
	case roleRaw:
		return rawPeer(cfg)
	default:
		return fmt.Errorf("unknown role %q in %s", role, RoleEnv)
	}
}

// recordType is how records of o's size are typed.
func recordType(size int) flow.Type {
	if size == 8 {
		return flow.TypeOf[uint64](nil)
	}
	return flow.TypeOf[[]byte](nil)
}
