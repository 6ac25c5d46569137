package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// TP names a partition.
type TP struct {
	Topic     string
	Partition int32
}

func (tp TP) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// Client asks a cluster about topics and offsets. One goroutine uses it.
type Client struct {
	o *opener // immutable

	// Owned by the goroutine that uses it.
	links   map[string]*link // by address
	brokers map[int32]string // addresses by id, from the last metadata
	next    int              // where to begin among the addresses, so that a broken one is not always the first
}

// NewClient makes a client. It connects when it is first asked something.
func NewClient(cfg Config) (*Client, error) {
	o, err := newOpener(cfg)
	if err != nil {
		return nil, err
	}
	return newClient(o), nil
}

func newClient(o *opener) *Client { return &Client{o: o, links: map[string]*link{}} }

// Close closes the connections.
func (c *Client) Close() {
	for _, l := range c.links {
		l.close()
	}
	clear(c.links)
}

// Metadata is what a broker said of topics.
type Metadata struct {
	Brokers map[int32]string // addresses by id
	Racks   map[int32]string // by id, of brokers that say theirs
	Topics  map[string]Topic
}

// Topic is what a broker said of one topic.
type Topic struct {
	Err        error // ErrUnknownTopic and others: then there are no partitions
	Internal   bool  // Kafka's own
	ID         [16]byte
	Partitions []Partition // by number
}

// Partition is what a broker said of one partition.
type Partition struct {
	ID     int32
	Leader int32 // broker id, -1: none now
	Epoch  int32
	InSync []int32 // brokers that have all of it
}

// ErrUnknownTopic says that a topic or partition does not exist (or that we may not see it).
var ErrUnknownTopic error = sarama.ErrUnknownTopicOrPartition

// Metadata asks about topics, or about all there are if none is named. It never creates one.
func (c *Client) Metadata(ctx context.Context, topics ...string) (*Metadata, error) {
	var resp *sarama.MetadataResponse
	err := c.any(ctx, func(b *sarama.Broker) (err error) {
		req := sarama.NewMetadataRequest(sarama.V2_8_0_0, topics) // older brokers are asked for less, and give no topic ids
		req.AllowAutoTopicCreation = false
		resp, err = b.GetMetadata(req)
		return err
	})
	if err != nil {
		return nil, err
	}
	md := &Metadata{Brokers: map[int32]string{}, Racks: map[int32]string{}, Topics: map[string]Topic{}}
	for _, b := range resp.Brokers {
		md.Brokers[b.ID()] = b.Addr()
		if b.Rack() != "" {
			md.Racks[b.ID()] = b.Rack()
		}
	}
	for _, t := range resp.Topics {
		topic := Topic{Internal: t.IsInternal, ID: t.Uuid}
		if t.Err != sarama.ErrNoError && t.Err != sarama.ErrLeaderNotAvailable {
			topic.Err = t.Err
		}
		for _, p := range t.Partitions {
			leader := p.Leader
			if p.Err != sarama.ErrNoError && p.Err != sarama.ErrReplicaNotAvailable {
				leader = -1
			}
			topic.Partitions = append(topic.Partitions, Partition{ID: p.ID, Leader: leader, Epoch: p.LeaderEpoch, InSync: p.Isr})
		}
		slices.SortFunc(topic.Partitions, func(a, b Partition) int { return int(a.ID) - int(b.ID) })
		md.Topics[t.Name] = topic
	}
	c.brokers = md.Brokers
	return md, nil
}

// Near is where a partition is read best: on the host of its leader, else in the racks of brokers that have all of it, the leader's first.
func (md *Metadata) Near(p Partition) (hosts, racks []string) {
	if addr, ok := md.Brokers[p.Leader]; ok {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			hosts = append(hosts, host)
		}
	}
	for _, id := range append([]int32{p.Leader}, p.InSync...) {
		if rack := md.Racks[id]; rack != "" && !slices.Contains(racks, rack) {
			racks = append(racks, rack)
		}
	}
	return hosts, racks
}

// Leader finds the leader of a partition. The error says why there is none.
func (md *Metadata) Leader(tp TP) (addr string, id, epoch int32, err error) {
	t, ok := md.Topics[tp.Topic]
	if !ok {
		return "", -1, -1, ErrUnknownTopic
	}
	if t.Err != nil {
		return "", -1, -1, t.Err
	}
	for _, p := range t.Partitions {
		if p.ID != tp.Partition {
			continue
		}
		addr, ok := md.Brokers[p.Leader]
		if !ok {
			return "", -1, -1, errors.New("the partition has no leader")
		}
		return addr, p.Leader, p.Epoch, nil
	}
	return "", -1, -1, ErrUnknownTopic
}

// addresses returns where to ask: known brokers first connected, then seeds, each once.
func (c *Client) addresses() []string {
	known := slices.Sorted(maps.Values(c.brokers))
	if n := len(known); n > 0 {
		k := c.next % n
		known = append(known[k:n:n], known[:k]...)
	}
	var out []string
	for _, a := range slices.Concat(known, c.o.cfg.Brokers) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return c.connected(b) - c.connected(a) })
	return out
}

func (c *Client) connected(addr string) int {
	if c.links[addr] != nil {
		return 1
	}
	return 0
}

// noAnswerError is when no broker answers.
type noAnswerError struct {
	brokers  string
	whys     []string
	kerberos *KerberosError // the first one among the reasons, if there is one
}

func (e *noAnswerError) Error() string {
	return fmt.Sprintf("no Kafka broker of %s answers: %s", e.brokers, strings.Join(e.whys, "; "))
}

// Unwrap tells what is wrong with Kerberos: that is not the brokers' fault.
func (e *noAnswerError) Unwrap() error {
	if e.kerberos == nil {
		return nil
	}
	return e.kerberos
}

// any asks brokers in turn until one answers.
func (c *Client) any(ctx context.Context, ask func(*sarama.Broker) error) error {
	none := &noAnswerError{brokers: strings.Join(c.o.cfg.Brokers, ", ")}
	for _, addr := range c.addresses() {
		// One that hangs must not take the time of the others.
		each, cancel := context.WithTimeout(ctx, c.o.cfg.RequestTimeout/2)
		err := c.at(each, addr, ask)
		cancel()
		if err == nil {
			return nil
		}
		c.next++
		none.whys = append(none.whys, err.Error())
		if none.kerberos == nil {
			none.kerberos, _ = errors.AsType[*KerberosError](err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return none
}

// at asks one broker, connecting if need be. A connection that has been idle may turn out dead: then it is tried once more on a new one.
func (c *Client) at(ctx context.Context, addr string, ask func(*sarama.Broker) error) error {
	for {
		l, old := c.links[addr], true
		if l != nil && !l.renew.IsZero() && time.Now().After(l.renew) {
			l.close()
			delete(c.links, addr)
			l = nil
		}
		if l == nil {
			var err error
			if l, err = c.o.open(ctx, addr); err != nil {
				return err
			}
			c.links[addr], old = l, false
		}
		stop := context.AfterFunc(ctx, func() { l.conn.Close() })
		err := ask(l.broker)
		if stop() && err == nil {
			return nil
		}
		l.close()
		delete(c.links, addr)
		if ctx.Err() != nil {
			return fmt.Errorf("cannot ask Kafka broker %s: %w", addr, outOfTime(ctx))
		}
		if !old {
			return fmt.Errorf("cannot ask Kafka broker %s: %w%s%s", addr, err, c.o.hint(err), unfit(err))
		}
	}
}

// Symbolic times for OffsetQuery.
const (
	Latest   int64 = sarama.OffsetNewest
	Earliest int64 = sarama.OffsetOldest
)

// OffsetQuery asks for the first offset of a partition whose record is not older than Time (milliseconds since the Unix epoch),
// or for one of its ends: Latest or Earliest.
type OffsetQuery struct {
	TP
	Time int64
}

// Offsets answers queries, of which there is at most one a partition. A time after the last record has the answer -1.
// Where committed is true, Latest is the end of what readers of committed data may see.
// It retries until ctx ends what a new leader may cure.
func (c *Client) Offsets(ctx context.Context, queries []OffsetQuery, committed bool) (map[TP]int64, error) {
	out := make(map[TP]int64, len(queries))
	if len(queries) == 0 {
		return out, nil
	}
	topics := topicsOf(queries)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		var left []OffsetQuery
		var why error
		md, err := c.Metadata(ctx, topics...)
		if err != nil {
			left, why = queries, err
		} else {
			left, why = c.offsetsOnce(ctx, md, queries, committed, out)
		}
		if len(left) == 0 {
			return out, nil
		}
		if k, ok := errors.AsType[sarama.KError](why); ok && !retriable(k) {
			return nil, fmt.Errorf("cannot look up offsets of %s: %w", left[0].TP, why)
		}
		queries = left
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot look up offsets of %s: %w", left[0].TP, why)
		case <-time.After(wait):
		}
	}
}

// offsetsOnce asks each leader once and returns the queries that were not answered and why the first was not.
func (c *Client) offsetsOnce(ctx context.Context, md *Metadata, queries []OffsetQuery, committed bool, out map[TP]int64) (left []OffsetQuery, why error) {
	byLeader := map[string][]OffsetQuery{}
	miss := func(err error, qs ...OffsetQuery) {
		if len(left) == 0 || !retriableError(err) {
			why = err
		}
		left = append(left, qs...)
	}
	for _, q := range queries {
		addr, _, _, err := md.Leader(q.TP)
		if err != nil {
			miss(err, q)
			continue
		}
		byLeader[addr] = append(byLeader[addr], q)
	}
	for _, addr := range slices.Sorted(maps.Keys(byLeader)) {
		qs := byLeader[addr]
		req := sarama.NewOffsetRequest(sarama.V2_8_0_0)
		if committed {
			req.IsolationLevel = sarama.ReadCommitted
		}
		for _, q := range qs {
			req.AddBlock(q.Topic, q.Partition, q.Time, 1)
		}
		var resp *sarama.OffsetResponse
		err := c.at(ctx, addr, func(b *sarama.Broker) (err error) {
			resp, err = b.GetAvailableOffsets(req)
			return err
		})
		if err != nil {
			miss(err, qs...)
			continue
		}
		for _, q := range qs {
			switch b := resp.GetBlock(q.Topic, q.Partition); {
			case b == nil:
				miss(errors.New("the answer leaves it out"), q)
			case b.Err != sarama.ErrNoError:
				miss(b.Err, q)
			default:
				out[q.TP] = b.Offset
			}
		}
	}
	return left, why
}

func topicsOf(queries []OffsetQuery) []string {
	var out []string
	for _, q := range queries {
		if !slices.Contains(out, q.Topic) {
			out = append(out, q.Topic)
		}
	}
	return out
}
