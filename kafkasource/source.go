package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// Source describes what to read. Make one by Topics, Pattern or Partitions; its methods change it and return it.
// It is a source of messages for heddle.From.
type Source struct {
	topics     []string
	pattern    *regexp.Regexp
	exclude    *regexp.Regexp
	partitions map[string][]int32

	brokers     []string
	start       Position
	stop        Position
	discovery   *time.Duration
	uncommitted bool
	onLoss      kafka.DataLoss
	global      bool
	rate        float64
	rateSet     bool
	group       string // to commit to; "": none
	commitEvery *time.Duration

	cfg func(*kafka.Config) // tests set what is no option
	err error               // of the description
}

// Topics reads all partitions of the named topics. Each must exist when the job starts.
func Topics(names ...string) *Source {
	s := &Source{}
	for _, n := range names {
		if n = strings.TrimSpace(n); n != "" && !slices.Contains(s.topics, n) {
			s.topics = append(s.topics, n)
		}
	}
	if len(s.topics) == 0 {
		s.err = errors.New("kafkasource.Topics names no topic")
	}
	return s
}

// Pattern reads all partitions of the topics whose whole name matches a regular expression, Kafka's internal ones apart.
// Topics that appear later are found by discovery; none need exist when the job starts.
func Pattern(expr string) *Source {
	s := &Source{}
	s.pattern = s.regexp("kafkasource.Pattern", expr)
	return s
}

// Partitions reads the given partitions of each topic. Each must exist when the job starts.
func Partitions(byTopic map[string][]int32) *Source {
	s := &Source{partitions: maps.Clone(byTopic)}
	s.topics = slices.Sorted(maps.Keys(byTopic))
	if len(s.topics) == 0 {
		s.err = errors.New("kafkasource.Partitions names no partition")
	}
	return s
}

func (s *Source) regexp(what, expr string) *regexp.Regexp {
	re, err := regexp.Compile("^(?:" + expr + ")$")
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("cannot use %s: %w", what, err)
	}
	return re
}

// Exclude leaves out the topics of a Pattern whose whole name matches expr.
func (s *Source) Exclude(expr string) *Source {
	s.exclude = s.regexp("kafkasource.Exclude", expr)
	return s
}

// Brokers names brokers (host:port) of the cluster to read from, in place of the option kafka.brokers.
func (s *Source) Brokers(addrs ...string) *Source {
	s.brokers = addrs
	return s
}

// Start says where to begin in the partitions that exist when the job starts. By default that is Earliest.
func (s *Source) Start(p Position) *Source {
	s.start = p
	return s
}

// Stop makes the source bounded: it ends each partition at p, as that is resolved when the job starts.
// Partitions that appear later are not read.
func (s *Source) Stop(p Position) *Source {
	s.stop = p
	return s
}

// DiscoveryInterval says how often to look for new partitions, in place of the option kafka.discovery-interval;
// 0 or less means never. A bounded source never does.
func (s *Source) DiscoveryInterval(d time.Duration) *Source {
	s.discovery = &d
	return s
}

// ReadUncommitted reads records of transactions that are not, or never will be, committed.
func (s *Source) ReadUncommitted() *Source {
	s.uncommitted = true
	return s
}

// OnDataLoss says what to do when the offset to be read is not there any more, since retention deleted it: "fail" (the default),
// or go on at the "earliest" or "latest" record there is. Going on is logged and counted.
func (s *Source) OnDataLoss(policy string) *Source {
	switch policy {
	case "fail", "":
		s.onLoss = kafka.FailOnLoss
	case "earliest":
		s.onLoss = kafka.EarliestAfter
	case "latest":
		s.onLoss = kafka.LatestAfter
	default:
		s.err = fmt.Errorf("kafkasource.OnDataLoss is %q: want fail, earliest or latest", policy)
	}
	return s
}

// AssignGlobal gives partitions to subtasks in the order in which they are found, whatever their topic: many small topics are then spread
// evenly. By default each topic is spread by itself, as in Flink.
func (s *Source) AssignGlobal() *Source {
	s.global = true
	return s
}

// RateLimit bounds how many records a second are read of each partition, in place of the option kafka.rate-limit; 0 means no bound.
func (s *Source) RateLimit(perSecond float64) *Source {
	if s.rate = perSecond; !(perSecond >= 0) {
		s.err = fmt.Errorf("kafkasource.RateLimit is %v: want a number of records a second, or 0 for no bound", perSecond)
	}
	s.rateSet = true
	return s
}

func (s *Source) rateLimit(cfg kafka.Config) float64 {
	if s.rateSet {
		return s.rate
	}
	return cfg.RateLimit
}

// Bounded implements heddle's source: it reports whether Stop was given.
func (s *Source) Bounded() bool { return s.stop.kind != unset }

// Describe implements heddle's source.
func (s *Source) Describe() string {
	switch {
	case s.pattern != nil:
		return "kafka " + strings.TrimSuffix(strings.TrimPrefix(s.pattern.String(), "^(?:"), ")$")
	case s.partitions != nil:
		var names []string
		for _, t := range s.topics {
			for _, p := range s.partitions[t] {
				names = append(names, kafka.TP{Topic: t, Partition: p}.String())
			}
		}
		return "kafka " + strings.Join(names, ",")
	}
	return "kafka " + strings.Join(s.topics, ",")
}

// Enumerator implements heddle's source. It looks at the topics and resolves where to begin and end,
// so that a job that can't be read is refused before it runs.
func (s *Source) Enumerator(ctx context.Context, env flow.EnumeratorEnv) (flow.Enumerator, error) {
	return newEnumerator(ctx, s, env)
}

// NewMessageReader implements heddle's source.
func (s *Source) NewMessageReader(ctx context.Context, env flow.ReaderEnv, want flow.MessageFields) (flow.MessageReader, error) {
	return newReader(ctx, s, env, want)
}

// config is how to reach the cluster.
func (s *Source) config(option func(string) (string, bool)) (kafka.Config, error) {
	if s.err != nil {
		return kafka.Config{}, s.err
	}
	cfg, err := kafka.FromOptions(option, s.brokers)
	if err != nil {
		return kafka.Config{}, fmt.Errorf("cannot set up %s: %w", s.Describe(), err)
	}
	if s.cfg != nil {
		s.cfg(&cfg)
	}
	return cfg, nil
}
