package kafkasource

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestBoundedOverThreeBrokers(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(8, "a"), kfake.SeedTopics(2, "b"))
	cl := newProducer(t, c)
	for p := range int32(8) {
		if p == 5 {
			continue // stays empty
		}
		for i := range 10 {
			produce(t, cl, "a", p, 100*i, 100*i+100)
		}
	}
	produce(t, cl, "b", 1, 0, 7)
	x := start(t, Topics("a", "b").Stop(Latest()), newRuntime(c.ListenAddrs()[:1]))
	produce(t, cl, "b", 1, 7, 20) // too late
	x.toEnd()
	for p := range 8 {
		if p != 5 {
			x.want(fmt.Sprintf("a-%d", p), 0, 1000)
		}
	}
	x.want("b-1", 0, 7)
	if len(x.ended) != 10 || x.total() != 7007 {
		t.Errorf("%d splits ended with %d records, want 10 with 7007", len(x.ended), x.total())
	}
	for _, s := range x.r.Splits() {
		if want := int64(len(x.got[s.ID])); s.Position != want {
			t.Errorf("position of %s is %d, want %d", s.ID, s.Position, want)
		}
	}
}

func TestCompressions(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(5, "a"))
	for p, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		cl := newProducer(t, c, kgo.ProducerBatchCompression(codec))
		produce(t, cl, "a", int32(p), 0, 1000)
		produce(t, cl, "a", int32(p), 1000, 1500)
	}
	x := start(t, Topics("a").Stop(Latest()), newRuntime(c.ListenAddrs()))
	x.toEnd()
	for p := range 5 {
		x.want(fmt.Sprintf("a-%d", p), 0, 1500)
	}
}

func TestRecordHasEverything(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cl := newProducer(t, c)
	err := cl.ProduceSync(t.Context(),
		&kgo.Record{Topic: "a", Key: []byte("k"), Value: []byte("v"), Timestamp: time.UnixMilli(5), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}, {Key: "n"}}},
		&kgo.Record{Topic: "a", Timestamp: time.UnixMilli(6)}).FirstErr()
	if err != nil {
		t.Fatal(err)
	}
	src := Topics("a").Stop(Latest())
	rt := newRuntime(c.ListenAddrs())
	e, err := src.Enumerator(t.Context(), env(rt, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	d, _ := e.Discover(t.Context())
	r, err := flow.Decode(src, Records(), new(flow.Policy)).NewReader(t.Context(), flow.ReaderEnv{Runtime: rt})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.AddSplits(d.Added)
	r.NoMoreSplits()
	var got []string
	for {
		st, err := r.Poll(func(_ string, b flow.Batch[Record], _ bool) error {
			for _, r := range b.Recs {
				got = append(got, fmt.Sprintf("%s %d %d %d %q %q %v %q", r.Topic, r.Partition, r.Offset, r.Time.UnixMilli(), r.Key, r.Value, r.Value == nil, r.Headers))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if st == flow.SourceEnd {
			break
		}
		if st == flow.SourceWait {
			<-rt.woken
		}
	}
	want := []string{`a 0 0 5 "k" "v" false [{"h" "x"} {"n" ""}]`, `a 0 1 6 "" "" true []`}
	if !slices.Equal(got, want) {
		t.Errorf("records are\n%q\nwant\n%q", got, want)
	}
}

func TestStartAndStop(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "a"))
	cl := newProducer(t, c)
	for i := range 10 { // a-0: 100 records in batches of 10, at times 1000 to 1099; a-1: 50; a-2 is empty
		produce(t, cl, "a", 0, 10*i, 10*i+10)
		produce(t, cl, "a", 1, 5*i, 5*i+5)
	}
	if err := c.DeleteRecords("a", 1, 10); err != nil {
		t.Fatal(err)
	}
	type span [2]int
	for _, tc := range []struct {
		name        string
		start, stop Position
		want        [3]span
	}{
		{"all", Earliest(), Latest(), [3]span{{0, 100}, {10, 50}, {}}},
		{"default start", Position{}, Latest(), [3]span{{0, 100}, {10, 50}, {}}},
		{"nothing", Latest(), Latest(), [3]span{}},
		{"also nothing", Earliest(), Earliest(), [3]span{}},
		{"timestamps", Timestamp(time.UnixMilli(1033)), Timestamp(time.UnixMilli(1045)), [3]span{{33, 45}, {33, 45}, {}}},
		{"timestamp before all", Timestamp(time.UnixMilli(1)), Latest(), [3]span{{0, 100}, {10, 50}, {}}},
		{"timestamp after some", Timestamp(time.UnixMilli(1077)), Latest(), [3]span{{77, 100}, {}, {}}},
		{"stop before start", Timestamp(time.UnixMilli(1045)), Timestamp(time.UnixMilli(1033)), [3]span{}},
		{"offsets", Offsets(map[string]map[int32]int64{"a": {0: 12}}), Offsets(map[string]map[int32]int64{"a": {0: 13, 1: 44, 2: 0}}), [3]span{{12, 13}, {10, 44}, {}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := start(t, Topics("a").Start(tc.start).Stop(tc.stop), newRuntime(c.ListenAddrs()))
			x.toEnd()
			for p, want := range tc.want {
				x.want(fmt.Sprintf("a-%d", p), want[0], want[1])
			}
			if len(x.ended) != 3 {
				t.Errorf("%d splits ended, want 3", len(x.ended))
			}
		})
	}
}

// Unbounded starts are resolved when the job starts, also where the partition is empty.
func TestUnboundedStarts(t *testing.T) {
	for name, pos := range map[string]Position{"latest": Latest(), "timestamp of no record": Timestamp(time.UnixMilli(5000))} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "a"))
			cl := newProducer(t, c)
			produce(t, cl, "a", 0, 0, 10)
			x := start(t, Topics("a").Start(pos), newRuntime(c.ListenAddrs()))
			produce(t, cl, "a", 0, 10, 20)
			produce(t, cl, "a", 1, 0, 10)
			x.until(20)
			x.want("a-0", 10, 20)
			x.want("a-1", 0, 10)
		})
	}
}

func TestStartErrors(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 10)
	if err := c.DeleteRecords("a", 0, 5); err != nil {
		t.Fatal(err)
	}
	gone := newCluster(t, kfake.NumBrokers(1))
	addr := gone.ListenAddrs()[0]
	gone.Close()
	at := func(p int32, o int64) Position { return Offsets(map[string]map[int32]int64{"a": {p: o}}) }
	for _, tc := range []struct {
		src  *Source
		want string
	}{
		{Topics("a", "clikcs"), `topic "clikcs" does not exist`},
		{Topics(" "), "names no topic"},
		{Pattern("a("), "cannot use kafkasource.Pattern"},
		{Partitions(map[string][]int32{"a": {0, 7}}), `partition 7 of topic "a" does not exist`},
		{Topics("a").Brokers(addr), "no Kafka broker of " + addr + " answers"},
		{Topics("a").Brokers("nohost"), "want host:port"},
		{Topics("a").OnDataLoss("ignore"), "want fail, earliest or latest"},
		{Topics("a").Start(at(0, 3)), "cannot start at offset 3 of a-0: it has offsets 5 to 10"},
		{Topics("a").Start(at(0, 11)), "cannot start at offset 11 of a-0"},
		{Topics("a").Start(at(9, 0)), "not among the partitions read"},
		{Topics("a").Stop(at(0, 7)), "no stop offset is given for a-1"},
	} {
		e, err := tc.src.Enumerator(t.Context(), env(newRuntime(c.ListenAddrs()), nil))
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error is %v, want %q in it", err, tc.want)
		}
	}
	if infos := c.TopicInfo("clikcs"); infos != nil {
		t.Error("looking for a topic has created it")
	}
}

func TestDiscovery(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "logs-a"), kfake.SeedTopics(1, "logs-x"), kfake.SeedTopics(1, "other"))
	cl := newProducer(t, c)
	produce(t, cl, "logs-a", 0, 0, 3)
	n := newNetwork()
	x := start(t, through(Pattern("logs-.*").Exclude(".*-x").Start(Latest()), n), newRuntime(c.ListenAddrs()))
	if err := c.CreateTopic("logs-b", 2, nil); err != nil {
		t.Fatal(err)
	}
	cl = newProducer(t, c)            // one that knows the topic
	produce(t, cl, "logs-b", 1, 0, 5) // before it is discovered
	produce(t, cl, "logs-a", 0, 3, 5)

	n.cut()
	if d := x.discover(); len(d.Added) != 0 || d.Final || d.Next > retryDiscovery {
		t.Errorf("discovery without brokers is %+v", d)
	}
	if len(x.warns) != 1 || !strings.Contains(x.warns[0], "the test has cut the network") {
		t.Errorf("warnings are %q, want one with the cause", x.warns)
	}
	n.mend()
	if d := x.discover(); len(d.Added) != 2 || d.Next != 5*time.Minute || d.Final {
		t.Errorf("discovery is %+v, want two splits and again in 5 min", d)
	}
	if d := x.discover(); len(d.Added) != 0 {
		t.Errorf("discovery gives %v again", d.Added)
	}
	x.until(7)
	x.want("logs-b-1", 0, 5)
	x.want("logs-a-0", 3, 5)
	if len(x.got) != 2 {
		t.Errorf("records of %s, want logs-a and logs-b only", x.counts())
	}
}

func TestDiscoveryInterval(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	for _, tc := range []struct {
		src    *Source
		option string
		want   flow.Discovery
	}{
		{Topics("a"), "", flow.Discovery{Next: 5 * time.Minute}},
		{Topics("a"), "30s", flow.Discovery{Next: 30 * time.Second}},
		{Topics("a"), "0", flow.Discovery{Final: true}},
		{Topics("a"), "-1s", flow.Discovery{Final: true, Next: -time.Second}},
		{Topics("a").DiscoveryInterval(time.Second), "30s", flow.Discovery{Next: time.Second}},
		{Topics("a").DiscoveryInterval(0), "30s", flow.Discovery{Final: true}},
		{Topics("a").Stop(Latest()), "30s", flow.Discovery{Final: true}},
	} {
		rt := newRuntime(c.ListenAddrs())
		rt.options[kafka.OptDiscoveryInterval] = tc.option
		e, err := tc.src.Enumerator(t.Context(), env(rt, nil))
		if err != nil {
			t.Fatal(err)
		}
		d, err := e.Discover(t.Context())
		if err != nil || d.Final != tc.want.Final || d.Next != tc.want.Next || len(d.Added) != 1 {
			t.Errorf("%s with interval %q: %+v, %v; want %+v", tc.src.Describe(), tc.option, d, err, tc.want)
		}
		e.Close()
	}
}
