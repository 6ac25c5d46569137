package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/netstack"
	"github.com/heddle-stream/heddle/netstack/bufpool"
)

// LatencyOptions say what to measure.
type LatencyOptions struct {
	RecordSize int           // bytes of a record, a []byte; 0: 100
	Rate       int           // records a second; 0: 1,000
	Duration   time.Duration // for each of the ways; 0: 4 s
	Executable string        // program to start as the peer; "": this one
}

// Latency is how long records took, by percentiles.
type Latency struct {
	Records                  int
	P50, P90, P99, P999, Max time.Duration
}

// LatencyResult has what was measured in turns of a second.
type LatencyResult struct {
	RecordSize, Rate int
	Exchange         Latency // record by record, flushed at once: codecs, partition, connection, gate
	Bare             Latency // one goroutine writes to a TCP connection, one in the other process reads
	HandOff          Latency // the same, with a goroutine more at each end
}

// The ways that a record may take, in the order of their turns.
const (
	wayExchange = iota
	wayBare
	wayHandOff
	ways
)

// MeasureLatency sends single records between two processes, by the exchange and, in turns with it, by TCP connections. A record's
// time is from just before it is written to when the consumer has it, by the clock of the host.
func MeasureLatency(ctx context.Context, o LatencyOptions) (LatencyResult, error) {
	o = o.withDefaults()
	res := LatencyResult{RecordSize: o.RecordSize, Rate: o.Rate}
	ctx, end := bounded(ctx, ways*o.Duration)
	defer end(nil)
	got, err := measureLatency(ctx, end, o)
	if err != nil {
		return res, fmt.Errorf("cannot measure latency: %w", err)
	}
	res.Exchange, res.Bare, res.HandOff = got[wayExchange], got[wayBare], got[wayHandOff]
	return res, nil
}

func measureLatency(ctx context.Context, end context.CancelCauseFunc, o LatencyOptions) (got [ways]Latency, err error) {
	l, err := newLatencyRun(ctx, end, o)
	if err != nil {
		return got, reason(ctx, err)
	}
	defer l.close()
	for left := o.Duration; left > 0 && err == nil; left -= latencyTurn {
		for way := 0; way < ways && err == nil; way++ {
			err = l.turn(ctx, way, min(latencyTurn, left))
		}
	}
	if err == nil {
		err = l.finish(ctx, &got)
	}
	if err != nil {
		l.peer.orDeath(end)(err)
	}
	return got, reason(ctx, err)
}

func (o LatencyOptions) withDefaults() LatencyOptions {
	o.RecordSize = cmp.Or(o.RecordSize, 100)
	o.Rate = cmp.Or(o.Rate, 1000)
	o.Duration = cmp.Or(o.Duration, 4*time.Second)
	return o
}

// latencyTurn is how long each way is used before the next one; of each turn the first quarter doesn't count.
const latencyTurn = time.Second

// latencyRun is the sending end.
type latencyRun struct {
	o     LatencyOptions
	stack *netstack.Stack
	part  *netstack.Partition
	out   flow.Out[[]byte]
	w     flow.Writer
	peer  *peer
	conns [2]net.Conn // bare, with hand-off
	hand  chan []byte
	cut   func() bool
	sent  chan error // from the goroutine that takes what is handed
}

// latencyConfig is what the peer reads first.
type latencyConfig struct {
	RecordSize int
	Key        []byte
	Addr, Bare string
}

func newLatencyRun(ctx context.Context, end context.CancelCauseFunc, o LatencyOptions) (_ *latencyRun, err error) {
	l := &latencyRun{o: o, hand: make(chan []byte), sent: make(chan error, 1)}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	cfg := peerConfig{Key: make([]byte, netstack.KeySize)}
	rand.Read(cfg.Key)
	if l.stack, err = newStack(cfg, "producer"); err != nil {
		return nil, err
	}
	if l.part, err = l.stack.NewPartition(netstack.PartitionConfig{ID: partitionID(0), Subpartitions: 1}); err != nil {
		return nil, err
	}
	out, w, err := recordType(o.RecordSize).NewWriter(flow.WriterConfig{
		Channels: 1, Parallelism: 1, MaxParallelism: 128, Part: flow.Partitioning{Kind: flow.Rebalance},
		Segments: &segments{ctx: ctx, p: l.part, open: make([]*bufpool.Segment, 1)},
	})
	if err != nil {
		return nil, err
	}
	l.out, l.w = out.(flow.Out[[]byte]), w
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	lc := latencyConfig{RecordSize: o.RecordSize, Key: cfg.Key, Addr: l.stack.Addr(), Bare: listener.Addr().String()}
	if l.peer, err = startPeer(ctx, end, o.Executable, roleLatency, lc); err != nil {
		return nil, err
	}
	for i := range l.conns {
		if l.conns[i], err = acceptWithin(ctx, listener); err != nil {
			return nil, err
		}
	}
	l.cut = context.AfterFunc(ctx, func() {
		for _, c := range l.conns {
			c.Close()
		}
	})
	go l.takeHanded()
	return l, nil
}

// takeHanded writes what is handed over, until hand is closed.
func (l *latencyRun) takeHanded() {
	var first error
	for b := range l.hand {
		if _, err := l.conns[1].Write(b); err != nil && first == nil {
			first = err
		}
	}
	l.sent <- first
}

// turn sends records by one way at the rate.
func (l *latencyRun) turn(ctx context.Context, way int, d time.Duration) error {
	began, period := time.Now(), time.Second/time.Duration(l.o.Rate)
	for i := 0; ; i++ {
		due := began.Add(time.Duration(i) * period)
		if due.Sub(began) >= d {
			return nil
		}
		if err := pause(ctx, time.Until(due)); err != nil {
			return err
		}
		rec := make([]byte, l.o.RecordSize)
		if due.Sub(began) >= d/4 { // else 0: doesn't count
			binary.LittleEndian.PutUint64(rec, uint64(time.Now().UnixNano()))
		}
		if err := l.send(way, rec); err != nil {
			return err
		}
	}
}

func (l *latencyRun) send(way int, rec []byte) error {
	switch way {
	case wayExchange:
		if err := l.out.Push(flow.Batch[[]byte]{Recs: [][]byte{rec}}); err != nil {
			return err
		}
		return l.w.Flush()
	case wayBare:
		_, err := l.conns[0].Write(rec)
		return err
	default:
		l.hand <- rec
		return nil
	}
}

// finish ends what was sent and reads what the peer has found.
func (l *latencyRun) finish(ctx context.Context, got *[ways]Latency) error {
	close(l.hand)
	err := <-l.sent
	l.hand = nil
	for _, c := range l.conns {
		c.Close()
	}
	if err = errors.Join(err, l.part.Finish(ctx)); err != nil {
		return err
	}
	return l.peer.hear(ctx, got)
}

func (l *latencyRun) close() {
	if l.hand != nil && l.peer != nil && l.conns[1] != nil {
		close(l.hand)
		<-l.sent
	}
	if l.cut != nil {
		l.cut()
	}
	for _, c := range l.conns {
		if c != nil {
			c.Close()
		}
	}
	if l.part != nil {
		l.part.Release()
	}
	if l.peer != nil {
		l.peer.close()
	}
	if l.stack != nil {
		l.stack.Close()
	}
}

// latencies gathers how long the records of one way took. One goroutine owns it.
type latencies []time.Duration

func (l *latencies) add(rec []byte) {
	if sent := int64(binary.LittleEndian.Uint64(rec)); sent != 0 {
		*l = append(*l, time.Duration(time.Now().UnixNano()-sent))
	}
}

func (l latencies) percentiles() Latency {
	if len(l) == 0 {
		return Latency{}
	}
	slices.Sort(l)
	at := func(perMille int) time.Duration { return l[min(len(l)-1, len(l)*perMille/1000)] }
	return Latency{Records: len(l), P50: at(500), P90: at(900), P99: at(990), P999: at(999), Max: l[len(l)-1]}
}

// receiveLatency is the other process: it ends with what it is sent.
func receiveLatency(ctx context.Context, line []byte, in *bufio.Reader) error {
	var cfg latencyConfig
	if err := json.Unmarshal(line, &cfg); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the parent, whose pipe it reads, or with this process
		in.ReadByte()
		cancel()
	}()
	var got [ways]latencies
	var errs [ways]error
	var wg sync.WaitGroup
	var conns [2]net.Conn
	for i := range conns {
		nc, err := net.Dial("tcp", cfg.Bare)
		if err != nil {
			return err
		}
		defer nc.Close()
		conns[i] = nc
	}
	wg.Go(func() { errs[wayExchange] = gateLatency(ctx, cfg, &got[wayExchange]) })
	wg.Go(func() { errs[wayBare] = readRecords(conns[0], cfg.RecordSize, got[wayBare].add) })
	wg.Go(func() {
		hand, done := make(chan []byte), make(chan struct{})
		go func() {
			for rec := range hand {
				got[wayHandOff].add(rec)
			}
			close(done)
		}()
		errs[wayHandOff] = readRecords(conns[1], cfg.RecordSize, func(rec []byte) { hand <- bytes.Clone(rec) })
		close(hand)
		<-done
	})
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	var sums [ways]Latency
	for i := range sums {
		sums[i] = got[i].percentiles()
	}
	return json.NewEncoder(os.Stdout).Encode(sums)
}

func readRecords(nc net.Conn, size int, each func([]byte)) error {
	rec := make([]byte, size)
	for {
		if _, err := io.ReadFull(nc, rec); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		each(rec)
	}
}

func gateLatency(ctx context.Context, cfg latencyConfig, got *latencies) error {
	stack, err := newStack(peerConfig{Key: cfg.Key}, "consumer")
	if err != nil {
		return err
	}
	defer stack.Close()
	rd, err := recordType(cfg.RecordSize).NewReader(flow.Out[[]byte](latencyOut{got}))
	if err != nil {
		return err
	}
	gate, wake, err := openGate(stack, netstack.ChannelConfig{Partition: partitionID(0), Addr: cfg.Addr})
	if err != nil {
		return err
	}
	defer gate.Close()
	return drain(ctx, gate, wake, []flow.SegmentReader{rd})
}

// latencyOut takes the records of the gate.
type latencyOut struct{ got *latencies }

func (o latencyOut) Push(b flow.Batch[[]byte]) error {
	for _, rec := range b.Recs {
		o.got.add(rec)
	}
	return nil
}

func (o latencyOut) Control(flow.Control) error { return nil }
