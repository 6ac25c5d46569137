package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/kafkasource"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// long is a broker with a client of another make, for what our own connectors are held against.
type long struct {
	t  *testing.T
	k  *testbed.Kafka
	cl *kgo.Client
}

func newClient(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(16 << 20), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DisableIdempotentWrite(),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MetadataMinAge(100 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func (l *long) request(req kmsg.Request) kmsg.Response {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	resp, err := l.cl.Request(ctx, req)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp
}

// create makes a topic, with settings as names and values.
func (l *long) create(topic string, partitions int, settings ...string) {
	l.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, int32(partitions), -1
	for i := 0; i < len(settings); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = settings[i], &settings[i+1]
		rt.Configs = append(rt.Configs, c)
	}
	req.Topics = append(req.Topics, rt)
	// The topic of that name that was deleted may not be quite gone, and brokers hear of a new one after the controller has made it.
	made := false
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		resp := l.request(req).(*kmsg.CreateTopicsResponse)
		err := kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		if errors.Is(err, kerr.TopicAlreadyExists) && made {
			err = nil
		}
		made = made || err == nil
		if err == nil && l.known(topic, partitions) {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("cannot create topic %s: %v", topic, err)
		}
	}
}

// known reports whether a broker knows a topic with so many partitions, each with a leader.
func (l *long) known(topic string, partitions int) bool {
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	resp := l.request(req).(*kmsg.MetadataResponse)
	return len(resp.Topics[0].Partitions) == partitions &&
		!slices.ContainsFunc(resp.Topics[0].Partitions, func(p kmsg.MetadataResponseTopicPartition) bool { return p.ErrorCode != 0 })
}

func (l *long) produce(recs ...*kgo.Record) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	if err := l.cl.ProduceSync(ctx, recs...).FirstErr(); err != nil {
		l.t.Fatal(err)
	}
}

// numberedRecords are records "prefix000000000" and so on, spread over partitions.
func numberedRecords(topic, prefix string, from, to, partitions int) (recs []*kgo.Record) {
	for i := from; i < to; i++ {
		recs = append(recs, &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: fmt.Appendf(nil, "%s%09d", prefix, i)})
	}
	return recs
}

func (l *long) task() *taskRuntime { return newTask(l.t, l.k) }

// TestLong runs what a broker can show against two lines of releases.
func TestLong(t *testing.T) {
	testbed.Group(t, "kafka-long")
	for _, version := range []string{"", "3.9.1"} {
		name := version
		if name == "" {
			name = testbed.KafkaVersion
		}
		t.Run(name, func(t *testing.T) {
			b := testbed.New(t)
			k := testbed.StartKafkasAs(t, b, 1, testbed.KafkaSetup{Version: version, Extra: func(int) string {
				return "message.max.bytes=20971520\nreplica.fetch.max.bytes=20971520\ndelete.topic.enable=true\n"
			}})[0]
			cl := newClient(t, kgo.SeedBrokers(k.Bootstrap))
			for _, test := range []struct {
				name string
				run  func(*long)
			}{{"codecs", longCodecs}, {"sizes", longSizes}, {"transactions", longTransactions}, {"compaction", longCompaction}, {"retention", longRetention},
				{"growth", longGrowth}, {"recreated", longRecreated}, {"many partitions", longManyPartitions}, {"quota", longQuota}, {"group", longGroup}, {"pause", longPause},
				{"written", longWritten}} {
				t.Run(test.name, func(t *testing.T) { test.run(&long{t, k, cl}) })
			}
		})
	}
}

// Every codec that others write by is read.
func longCodecs(l *long) {
	l.create("codecs", 3)
	n := 0
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		cl := newClient(l.t, kgo.SeedBrokers(l.k.Bootstrap), kgo.ProducerBatchCompression(codec))
		(&long{l.t, l.k, cl}).produce(numberedRecords("codecs", "c", n, n+1000, 3)...)
		n += 1000
	}
	x := read(l.t, l.task(), kafkasource.Topics("codecs").Stop(kafkasource.Latest()))
	x.until(-1)
	x.want("c", n)
}

// Messages from no bytes to 10 MB are read and written, whatever a fetch asks for.
func longSizes(l *long) {
	l.create("sizes", 2, "max.message.bytes", "20971520")
	sizes := []int{0, 1, 100, 1 << 16, 1 << 20, 3 << 20, 10_000_000, 0, 5}
	for i, n := range sizes {
		l.produce(&kgo.Record{Topic: "sizes", Partition: int32(i % 2), Value: []byte(strings.Repeat("x", n))})
	}
	w, err := flow.Encode(kafkasink.Topic("sizes").MaxMessageBytes(16<<20), ofText).NewWriter(l.t.Context(), l.task())
	if err != nil {
		l.t.Fatal(err)
	}
	defer w.Close()
	var ours []string
	for _, n := range sizes {
		ours = append(ours, strings.Repeat("y", n))
	}
	if err := w.Write(flow.Batch[string]{Recs: ours}); err != nil {
		l.t.Fatal(err)
	}
	if err := w.Flush(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	x := read(l.t, l.task(), kafkasource.Topics("sizes").Stop(kafkasource.Latest()))
	x.until(-1)
	var got []int
	for _, r := range x.recs {
		got = append(got, len(r))
	}
	want := append(slices.Clone(sizes), sizes...)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		l.t.Errorf("sizes %v, want %v", got, want)
	}
}

// A bounded read ends over an aborted tail, and shows what was committed; without isolation, all.
func longTransactions(l *long) {
	l.create("txn", 1)
	tx := func(id string) *kgo.Client {
		return newTxnClient(l.t, l.k.Bootstrap, id)
	}
	commit, abort := tx("a"), tx("b")
	write := func(cl *kgo.Client, prefix string, how kgo.TransactionEndTry) {
		l.t.Helper()
		if err := cl.BeginTransaction(); err != nil {
			l.t.Fatal(err)
		}
		if err := cl.ProduceSync(l.t.Context(), numberedRecords("txn", prefix, 0, 50, 1)...).FirstErr(); err != nil {
			l.t.Fatal(err)
		}
		if err := cl.EndTransaction(l.t.Context(), how); err != nil {
			l.t.Fatal(err)
		}
	}
	write(abort, "no", kgo.TryAbort)
	write(commit, "yes", kgo.TryCommit)
	write(abort, "nor", kgo.TryAbort)
	x := read(l.t, l.task(), kafkasource.Topics("txn").Stop(kafkasource.Latest()))
	x.until(-1)
	x.want("yes", 50)
	y := read(l.t, l.task(), kafkasource.Topics("txn").ReadUncommitted().Stop(kafkasource.Latest()))
	y.until(-1)
	if len(y.recs) != 150 {
		l.t.Errorf("%d records uncommitted, want 150", len(y.recs))
	}
}

func newTxnClient(t *testing.T, broker, id string) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// A compacted topic, with holes and at its end, is read to its end.
func longCompaction(l *long) {
	l.create("compact", 1, "cleanup.policy", "compact", "segment.ms", "100", "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "0", "min.compaction.lag.ms", "0", "max.compaction.lag.ms", "100")
	for round := range 30 {
		for key := range 5 {
			l.produce(&kgo.Record{Topic: "compact", Key: fmt.Append(nil, key), Value: fmt.Appendf(nil, "%d-%d", key, round)})
		}
	}
	last := func(recs []string) map[string]string {
		m := map[string]string{}
		for _, r := range recs {
			key, round, _ := strings.Cut(r, "-")
			m[key] = round
		}
		return m
	}
	var n int
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(time.Second) {
		x := read(l.t, l.task(), kafkasource.Topics("compact").Stop(kafkasource.Latest()))
		x.until(-1)
		if m := last(x.recs); len(m) != 5 || m["0"] != "29" || m["4"] != "29" {
			l.t.Fatalf("got %v", m)
		}
		if n = len(x.recs); n < 150 || time.Now().After(end) {
			break
		}
		l.produce(&kgo.Record{Topic: "compact", Key: []byte("4"), Value: []byte("4-29")}) // rolls the segment
	}
	l.t.Logf("%d records were left when the read ended", n)
}

// deleteBefore deletes a topic's records before an offset, as retention does.
func (l *long) deleteBefore(topic string, offset int64) {
	l.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	for _, shard := range l.cl.RequestSharded(l.t.Context(), req) {
		if shard.Err != nil {
			l.t.Fatal(shard.Err)
		}
	}
}

// Retention deletes what a paused reader had yet to read: by policy it fails, or goes on and counts.
func longRetention(l *long) {
	for _, policy := range []string{"fail", "earliest", "latest"} {
		topic := "retention-" + policy
		l.create(topic, 1)
		l.produce(numberedRecords(topic, "r", 0, 100, 1)...)
		rt := l.task()
		x := read(l.t, rt, kafkasource.Topics(topic).OnDataLoss(policy))
		x.until(100)
		x.r.(flow.Pauser).Pause(topic+"-0", true)
		l.produce(numberedRecords(topic, "r", 100, 200, 1)...)
		l.deleteBefore(topic, 150)
		x.r.(flow.Pauser).Pause(topic+"-0", false)
		switch policy {
		case "fail":
			var err error
			for end := time.Now().Add(time.Minute); err == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				_, err = x.r.Poll(func(string, flow.Batch[string], bool) error { return nil })
			}
			if err == nil || !strings.Contains(err.Error(), "data of a Kafka topic is lost") || !strings.Contains(err.Error(), "retention") {
				l.t.Errorf("%s: %v", policy, err)
			}
			continue
		case "earliest":
			x.until(150)
			if x.recs[100] != "r000000150" {
				l.t.Errorf("%s: goes on at %s", policy, x.recs[100])
			}
		case "latest":
			deadline := time.Now().Add(time.Minute)
			for rt.Counter("data losses").Load() == 0 && time.Now().Before(deadline) {
				if _, err := x.r.Poll(func(string, flow.Batch[string], bool) error { return nil }); err != nil {
					l.t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			l.produce(numberedRecords(topic, "r", 200, 201, 1)...)
			x.until(101)
			if x.recs[100] != "r000000200" {
				l.t.Errorf("%s: goes on at %s", policy, x.recs[100])
			}
		}
		if n := rt.Counter("data losses").Load(); n != 1 {
			l.t.Errorf("%s: %d losses are counted", policy, n)
		}
	}
}

// discovering is a source with its enumerator at hand.
type discovering struct {
	*reading
	e     flow.Enumerator
	warns []string
}

func discover(l *long, src *kafkasource.Source) *discovering {
	l.t.Helper()
	x := &discovering{}
	rt := l.task()
	var err error
	if x.e, err = src.Enumerator(l.t.Context(), flow.EnumeratorEnv{Node: rt.Node(), Readers: 1, Option: rt.Option, Warn: func(s string) { x.warns = append(x.warns, s) }}); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { x.e.Close() })
	r, err := flow.Decode(src, asText, new(flow.Policy)).NewReader(l.t.Context(), flow.ReaderEnv{Runtime: rt})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { r.Close() })
	x.reading = &reading{t: l.t, rt: rt, r: r}
	x.again()
	return x
}

func (x *discovering) again() int {
	x.t.Helper()
	d, err := x.e.Discover(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	if err := x.r.AddSplits(d.Added); err != nil {
		x.t.Fatal(err)
	}
	return len(d.Added)
}

// Partitions that are added are found, and read from their beginning although the source starts at the end (K-06).
func longGrowth(l *long) {
	l.create("growth", 1)
	x := discover(l, kafkasource.Topics("growth").Start(kafkasource.Latest()))
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = "growth", 3
	req.Topics = append(req.Topics, rt)
	l.request(req)
	l.cl.ForceMetadataRefresh()
	for i := range 5 {
		l.produce(&kgo.Record{Topic: "growth", Partition: int32(1 + i%2), Value: fmt.Appendf(nil, "g%09d", i)})
	}
	found := 0
	for end := time.Now().Add(time.Minute); found < 2 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		found += x.again()
	}
	x.until(5)
	x.want("g", 5)
}

// A topic that is deleted and made anew is noticed, and read from its beginning where that is allowed.
func longRecreated(l *long) {
	l.create("anew", 1)
	l.produce(numberedRecords("anew", "old", 0, 20, 1)...)
	x := discover(l, kafkasource.Topics("anew").OnDataLoss("earliest"))
	x.until(20)
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = kmsg.StringPtr("anew")
	req.Topics, req.TopicNames = append(req.Topics, rt), []string{"anew"}
	l.request(req)
	l.create("anew", 1)
	l.cl.PurgeTopicsFromClient("anew")
	l.produce(numberedRecords("anew", "new", 0, 10, 1)...)
	x.until(30)
	x.recs = x.recs[20:]
	x.want("new", 10)
	x.again()
	if !slices.ContainsFunc(x.warns, func(s string) bool { return strings.Contains(s, "anew") }) {
		l.t.Errorf("warnings are %q", x.warns)
	}
}

// 200 partitions over 8 readers: each is read by one.
func longManyPartitions(l *long) {
	const parts, readers, each = 200, 8, 10
	l.create("many", parts)
	l.produce(numberedRecords("many", "m", 0, parts*each, parts)...)
	src := func() *kafkasource.Source { return kafkasource.Topics("many").Stop(kafkasource.Latest()) }
	rt := l.task()
	e, err := src().Enumerator(l.t.Context(), flow.EnumeratorEnv{Node: rt.Node(), Readers: readers, Option: rt.Option, Warn: func(s string) { l.t.Log(s) }})
	if err != nil {
		l.t.Fatal(err)
	}
	defer e.Close()
	d, err := e.Discover(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	all := &reading{t: l.t}
	for i := range readers {
		rt := l.task()
		r, err := flow.Decode(src(), asText, new(flow.Policy)).NewReader(l.t.Context(), flow.ReaderEnv{Runtime: rt})
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { r.Close() })
		mine := slices.DeleteFunc(slices.Clone(d.Added), func(s flow.Split) bool { return e.Owner(s, readers) != i })
		if len(mine) != parts/readers {
			l.t.Errorf("reader %d has %d partitions", i, len(mine))
		}
		if err := r.AddSplits(mine); err != nil {
			l.t.Fatal(err)
		}
		r.NoMoreSplits()
		x := &reading{t: l.t, rt: rt, r: r}
		x.until(-1)
		all.recs = append(all.recs, x.recs...)
	}
	all.want("m", parts*each)
}

// A quota slows reading down and loses nothing.
func longQuota(l *long) {
	l.create("quota", 1)
	value := strings.Repeat("q", 50_000)
	for range 40 {
		l.produce(&kgo.Record{Topic: "quota", Value: []byte(value)})
	}
	req := kmsg.NewPtrAlterClientQuotasRequest()
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	entity := kmsg.NewAlterClientQuotasRequestEntryEntity()
	entity.Type, entity.Name = "client-id", kmsg.StringPtr("slow")
	entry.Entity = append(entry.Entity, entity)
	op := kmsg.NewAlterClientQuotasRequestEntryOp()
	op.Key, op.Value = "consumer_byte_rate", 100_000
	entry.Ops = append(entry.Ops, op)
	req.Entries = append(req.Entries, entry)
	l.request(req)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		d := kmsg.NewPtrDescribeClientQuotasRequest()
		c := kmsg.NewDescribeClientQuotasRequestComponent()
		c.EntityType, c.Match = "client-id", kmsg.StringPtr("slow")
		d.Components = append(d.Components, c)
		if len(l.request(d).(*kmsg.DescribeClientQuotasResponse).Entries) > 0 {
			break
		}
	}
	rt := l.task()
	rt.options["kafka.client-id"] = "slow"
	x := read(l.t, rt, kafkasource.Topics("quota").Stop(kafkasource.Latest()))
	x.until(-1)
	if len(x.recs) != 40 {
		l.t.Errorf("%d records, want 40", len(x.recs))
	}
	if n := rt.Counter("throttled ms").Load(); n == 0 {
		l.t.Error("no throttling was counted")
	}
}

// Offsets that are committed show in Kafka's own tool, and another run goes on from them.
func longGroup(l *long) {
	l.create("grouped", 2)
	l.produce(numberedRecords("grouped", "g", 0, 100, 2)...)
	x := read(l.t, l.task(), kafkasource.Topics("grouped").CommitTo("heddle-group"))
	x.until(100)
	c := x.r.(interface{ Unwrap() flow.MessageReader }).Unwrap().(flow.Committer)
	c.Mark(1)
	c.Delivered(1)
	x.r.Close()
	out, err := l.k.Tool("", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", l.k.Bootstrap, "--describe", "--group", "heddle-group", "--timeout", "60000")
	if err != nil {
		l.t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 5 && f[1] == "grouped" {
			n++
			if f[3] != "50" || f[4] != "50" || f[5] != "0" {
				l.t.Errorf("Kafka's tool says %s", line)
			}
		}
	}
	if n != 2 {
		l.t.Errorf("Kafka's tool says\n%s", out)
	}
	l.produce(numberedRecords("grouped", "h", 0, 10, 2)...)
	y := read(l.t, l.task(), kafkasource.Topics("grouped").Start(kafkasource.Committed("heddle-group", kafkasource.Position{})).Stop(kafkasource.Latest()))
	y.until(-1)
	y.want("h", 10)
}

// Pausing and rate limits lose and double nothing.
func longPause(l *long) {
	l.create("pause", 4)
	l.produce(numberedRecords("pause", "p", 0, 20_000, 4)...)
	rt := l.task()
	rt.options["kafka.rate-limit"] = "20000"
	x := read(l.t, rt, kafkasource.Topics("pause").Stop(kafkasource.Latest()))
	p := x.r.(flow.Pauser)
	for n := 1000; n < 16_000; n += 1000 {
		p.Pause(fmt.Sprintf("pause-%d", n/1000%4), true)
		p.Pause(fmt.Sprintf("pause-%d", (n/1000+3)%4), false)
		x.until(min(n, len(x.recs)+500))
	}
	for i := range 4 {
		p.Pause(fmt.Sprintf("pause-%d", i), false)
	}
	x.until(-1)
	x.want("p", 20_000)
}

// What the sink writes is read back by Kafka's own consumer in both isolation levels.
func longWritten(l *long) {
	l.create("written", 3)
	w, err := flow.Encode(kafkasink.Topic("written").Compression("zstd"), ofText).NewWriter(l.t.Context(), l.task())
	if err != nil {
		l.t.Fatal(err)
	}
	defer w.Close()
	write(l.t, w, "w", 0, 2000)
	if err := w.Flush(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	for _, level := range []string{"read_committed", "read_uncommitted"} {
		out, err := l.k.Tool("", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", l.k.Bootstrap, "--topic", "written",
			"--from-beginning", "--max-messages", "2000", "--timeout-ms", "30000", "--isolation-level", level)
		if err != nil {
			l.t.Fatal(err)
		}
		x := &reading{t: l.t, recs: strings.Fields(out)}
		x.want("w", 2000)
	}
}
