package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// reached is a cluster of Kafka that answered.
type reached struct {
	KafkaCluster
	brokers map[int32]string // by the names that they advertise
}

// nothing is a topic that nobody has: who asks for it is told of the brokers, and of nothing else.
const nothing = "heddle-doctor-asks-for-no-topic"

// askKafka asks every cluster for its brokers.
func (p *patient) askKafka(ctx context.Context) (string, verdict.Verdict) {
	if len(p.cfg.Kafka) == 0 {
		return "", verdict.Skip("no brokers are configured (kafka.brokers), and no job was named that reads or writes topics")
	}
	var vs []verdict.Verdict
	var tried []string
	for _, c := range p.cfg.Kafka {
		tried = append(tried, strings.Join(c.Config.Brokers, ", "))
		md, err := ask(ctx, c, func(k *kafka.Client) (*kafka.Metadata, error) {
			_, md, err := k.Allowed(ctx, nothing)
			return md, err
		})
		if c.Err != nil {
			vs = append(vs, verdict.Verdict{Status: verdict.Fail, Diagnosis: "kafka-options", Means: c.Err.Error(), Fix: "see kafka.* in `heddle config`"})
			continue
		}
		n := 0
		if err == nil {
			n = len(md.Brokers)
			p.kafka = append(p.kafka, reached{c, md.Brokers})
		}
		vs = append(vs, verdict.Brokers(c.Config.Brokers, n, c.Config.SASL.Mechanism, err))
	}
	return "ask " + strings.Join(tried, "; ") + " for the cluster's brokers", verdict.All(vs)
}

// ask puts a question to a cluster on connections of its own.
func ask[T any](ctx context.Context, c KafkaCluster, question func(*kafka.Client) (T, error)) (out T, err error) {
	if c.Err != nil {
		return out, c.Err
	}
	cfg := c.Config
	cfg.DialTimeout, cfg.RequestTimeout = callTime, 2*callTime
	k, err := kafka.NewClient(cfg)
	if err != nil {
		return out, err
	}
	defer k.Close()
	return question(k)
}

// askListeners connects to each broker under the name that it advertises.
func (p *patient) askListeners(ctx context.Context) (string, verdict.Verdict) {
	type at struct {
		c reached
		l verdict.Listener
	}
	var all []at
	var tried []string
	for _, c := range p.kafka {
		for _, id := range slices.Sorted(maps.Keys(c.brokers)) {
			all = append(all, at{c, verdict.Listener{ID: id, Addr: c.brokers[id]}})
			tried = append(tried, c.brokers[id])
		}
	}
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { p.greet(ctx, all[i].c, &all[i].l) })
	}
	wg.Wait()
	ls := make([]verdict.Listener, len(all))
	for i := range all {
		ls[i] = all[i].l
	}
	return "look up and connect to " + strings.Join(tried, ", "), verdict.Listeners(ls)
}

func (p *patient) greet(ctx context.Context, c reached, l *verdict.Listener) {
	host, _, err := net.SplitHostPort(l.Addr)
	if err != nil {
		l.DNS = err
		return
	}
	if net.ParseIP(host) == nil {
		if _, l.DNS = p.cfg.Resolver.LookupHost(ctx, host); l.DNS != nil {
			return
		}
	}
	_, l.Err = ask(ctx, c.KafkaCluster, func(k *kafka.Client) (struct{}, error) { return struct{}{}, k.Greet(ctx, l.Addr) })
}

// principal is who Kafka takes us for.
func (p *patient) principal(c KafkaCluster) string {
	s := c.Config.SASL
	switch {
	case s.Mechanism == "GSSAPI" && s.Kerberos.Principal != "":
		name, _, _ := strings.Cut(s.Kerberos.Principal, "@")
		return "User:" + name
	case s.User != "":
		return "User:" + s.User
	}
	return "our user"
}

// of is the cluster that a need is about, if it answered.
func (p *patient) of(n flow.Need) (reached, bool) {
	i := slices.IndexFunc(p.kafka, func(c reached) bool { return c.At == n.At })
	if i < 0 {
		return reached{}, false
	}
	return p.kafka[i], true
}

func (p *patient) askTopics(ctx context.Context) (string, verdict.Verdict) {
	needs := p.needed(flow.NeedTopic)
	if len(needs) == 0 {
		return "", verdict.Skip(noJob)
	}
	var vs []verdict.Verdict
	for _, c := range p.kafka {
		var mine []flow.Need
		for _, n := range needs {
			if n.At == c.At {
				mine = append(mine, n)
			}
		}
		if len(mine) > 0 {
			vs = append(vs, p.askTopicsOf(ctx, c.KafkaCluster, mine))
		}
	}
	return "describe the topics, with what we may do with them", verdict.All(vs)
}

func (p *patient) askTopicsOf(ctx context.Context, c KafkaCluster, needs []flow.Need) verdict.Verdict {
	var names []string
	var patterns []*regexp.Regexp
	for _, n := range needs {
		if !n.Pattern {
			names = append(names, n.Name)
		} else if re, err := regexp.Compile("^(?:" + n.Name + ")$"); err == nil {
			patterns = append(patterns, re)
		}
	}
	if len(patterns) > 0 {
		names = nil // all that we may see
	}
	answers, err := ask(ctx, c, func(k *kafka.Client) (map[string]kafka.AllowedTopic, error) {
		a, _, err := k.Allowed(ctx, names...)
		return a, err
	})
	if err != nil {
		return verdict.Brokers(c.Config.Brokers, 0, "", err)
	}
	var all []verdict.Topic
	for _, n := range needs {
		if a, ok := answers[n.Name]; !n.Pattern {
			if !ok {
				a.Err = kafka.ErrUnknownTopic
			}
			all = append(all, verdict.Topic{Name: n.Name, Read: n.Read, Write: n.Write, AllowedTopic: a})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if slices.ContainsFunc(patterns, func(re *regexp.Regexp) bool { return re.MatchString(name) }) {
			all = append(all, verdict.Topic{Name: name, Read: true, AllowedTopic: answers[name]})
		}
	}
	return verdict.Topics(all, p.principal(c))
}

func (p *patient) askGroups(ctx context.Context) (string, verdict.Verdict) {
	needs := p.needed(flow.NeedGroup)
	if len(needs) == 0 {
		return "", verdict.Skip(noJob)
	}
	var all []verdict.Group
	who := ""
	for _, n := range needs {
		c, ok := p.of(n)
		if !ok {
			continue
		}
		who = p.principal(c.KafkaCluster)
		a, err := ask(ctx, c.KafkaCluster, func(k *kafka.Client) (kafka.AllowedGroup, error) { return askGroup(ctx, k, n.Name) })
		all = append(all, verdict.Group{Name: n.Name, Write: n.Write, AllowedGroup: a, Fault: err})
	}
	return "describe the groups, without joining them", verdict.Groups(all, who)
}

// askGroup asks about a group, again while a cluster that never had one makes the topic of their offsets.
func askGroup(ctx context.Context, k *kafka.Client, name string) (kafka.AllowedGroup, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callTime)
	defer cancel()
	for {
		a, err := k.AllowedGroup(ctx, name)
		if err != nil || !errors.Is(a.Err, sarama.ErrConsumerCoordinatorNotAvailable) && !errors.Is(a.Err, sarama.ErrOffsetsLoadInProgress) {
			return a, err
		}
		t := time.NewTimer(200 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return a, err
		case <-t.C:
		}
	}
}

// askCollector connects to the collector of traces. Nothing is sent.
func (p *patient) askCollector(ctx context.Context) (string, verdict.Verdict) {
	if p.cfg.Collector == "" {
		return "", verdict.Skip("no endpoint is configured (trace.endpoint, OTEL_EXPORTER_OTLP_ENDPOINT)")
	}
	tried := "connect to " + p.cfg.Collector
	u, err := url.Parse(p.cfg.Collector)
	if err != nil {
		return tried, verdict.Collector(p.cfg.Collector, err)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), map[string]string{"https": "443"}[u.Scheme]+map[string]string{"http": "80"}[u.Scheme])
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var nc net.Conn
	if u.Scheme == "https" {
		nc, err = (&tls.Dialer{}).DialContext(ctx, "tcp", addr)
	} else {
		nc, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	if err == nil {
		nc.Close()
	}
	return tried, verdict.Collector(p.cfg.Collector, err)
}
