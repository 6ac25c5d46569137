package kafkasource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
)

const (
	defaultDiscovery = 5 * time.Minute
	startTimeout     = 30 * time.Second // to look at the topics before the job starts
	discoverTimeout  = 30 * time.Second // to look at them again
	retryDiscovery   = 10 * time.Second // after a discovery that came to nothing
)

// enumerator finds partitions. One goroutine of the master uses it.
type enumerator struct {
	src      *Source
	client   *kafka.Client
	interval time.Duration // ≤ 0: only once
	warn     func(string)

	found  []flow.Split // by the first look, not yet given out
	given  bool         // the first look was given out
	known  map[kafka.TP]bool
	near   map[kafka.TP]place  // where each is read best, as far as is known
	order  map[kafka.TP]int    // in which partitions were found
	ids    map[string][16]byte // of the topics read
	failed int                 // discoveries in a row that came to nothing
}

func newEnumerator(ctx context.Context, s *Source, env flow.EnumeratorEnv) (*enumerator, error) {
	cfg, err := s.config(env.Option)
	if err != nil {
		return nil, err
	}
	e := &enumerator{src: s, interval: defaultDiscovery, warn: env.Warn, known: map[kafka.TP]bool{}, near: map[kafka.TP]place{}, order: map[kafka.TP]int{}, ids: map[string][16]byte{}}
	if v, ok := env.Option(kafka.OptDiscoveryInterval); ok && v != "" {
		if e.interval, err = time.ParseDuration(v); err != nil {
			return nil, fmt.Errorf("%s is %q: want a duration such as 5m, or 0 for never", kafka.OptDiscoveryInterval, v)
		}
	}
	if s.discovery != nil {
		e.interval = *s.discovery
	}
	if s.Bounded() {
		e.interval = 0
	}
	if e.client, err = kafka.NewClient(cfg); err != nil {
		return nil, fmt.Errorf("cannot set up %s: %w", s.Describe(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if e.found, err = e.first(ctx); err != nil {
		e.client.Close()
		return nil, fmt.Errorf("cannot read %s: %w", s.Describe(), err)
	}
	s.warnOfState(env)
	if n := e.without(env.Readers); n > 0 && len(e.found) > 0 {
		env.Warn(fmt.Sprintf("%d of %d subtasks have no partition of %s to read, and are idle until there is one", n, env.Readers, s.Describe()))
	}
	return e, nil
}

// without is how many readers get none of what was found first.
func (e *enumerator) without(readers int) int {
	busy := map[int]bool{}
	if readers <= 0 {
		return 0
	}
	for _, s := range e.found {
		busy[e.Owner(s, readers)] = true
	}
	return readers - len(busy)
}

// Discover implements flow.Enumerator.
func (e *enumerator) Discover(ctx context.Context) (flow.Discovery, error) {
	d := flow.Discovery{Final: e.interval <= 0, Next: e.interval}
	if !e.given {
		e.given = true
		d.Added, e.found = e.found, nil
		return d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	added, err := e.again(ctx)
	if err != nil {
		e.failed++
		e.warn(fmt.Sprintf("cannot look for new partitions of %s (%d times in a row), trying again: %v", e.src.Describe(), e.failed, err))
		d.Failed, d.Next = true, min(e.interval, retryDiscovery)
		return d, nil
	}
	e.failed = 0
	d.Added = added
	return d, nil
}

// Owner implements flow.Enumerator.
func (e *enumerator) Owner(s flow.Split, readers int) int {
	state, err := parseSplit(s)
	if err != nil {
		panic(err) // it is our own
	}
	if e.src.global {
		return e.order[state.TP] % readers
	}
	return owner(state.TP, readers)
}

// Close implements flow.Enumerator.
func (e *enumerator) Close() error {
	e.client.Close()
	return nil
}

// place is where a partition is read best.
type place struct{ hosts, racks []string }

// of says so of its split.
func (p place) of(s flow.Split) flow.Split {
	s.Hosts, s.Racks = p.hosts, p.racks
	return s
}

// first looks at the topics, and fails where one is missing or a position can't be had.
func (e *enumerator) first(ctx context.Context) ([]flow.Split, error) {
	tps, err := e.list(ctx, true)
	if err != nil {
		return nil, err
	}
	starts, stops, err := e.resolve(ctx, tps)
	if err != nil {
		return nil, err
	}
	splits := make([]flow.Split, 0, len(tps))
	for _, tp := range tps {
		e.know(tp)
		stop := int64(noStop)
		if stops != nil {
			stop = stops[tp]
		}
		splits = append(splits, e.near[tp].of(splitState{TP: tp, Start: starts[tp], Stop: stop}.split()))
	}
	return splits, nil
}

func (e *enumerator) know(tp kafka.TP) {
	e.known[tp] = true
	e.order[tp] = len(e.order)
}

// resolve turns Start and Stop into offsets, and checks those that the author gave.
func (e *enumerator) resolve(ctx context.Context, tps []kafka.TP) (starts, stops map[kafka.TP]int64, err error) {
	var at ends
	if at.first, err = e.client.Offsets(ctx, queriesAt(tps, kafka.Earliest), false); err != nil {
		return nil, nil, err
	}
	if at.last, err = e.client.Offsets(ctx, queriesAt(tps, kafka.Latest), !e.src.uncommitted); err != nil {
		return nil, nil, err
	}
	if starts, err = e.lookUp(ctx, e.src.start, tps, at, false); err != nil {
		return nil, nil, fmt.Errorf("cannot start at %v: %w", e.src.start, err)
	}
	for _, tp := range tps {
		if o := starts[tp]; (o < at.first[tp] || o > at.last[tp]) && e.src.onLoss == kafka.FailOnLoss {
			return nil, nil, fmt.Errorf("cannot start at offset %d of %s: it has offsets %d to %d. To start where there is data, set the source's OnDataLoss to earliest or latest", o, tp, at.first[tp], at.last[tp])
		}
	}
	if !e.src.Bounded() {
		return starts, nil, nil
	}
	if stops, err = e.lookUp(ctx, e.src.stop, tps, at, true); err != nil {
		return nil, nil, fmt.Errorf("cannot stop at %v: %w", e.src.stop, err)
	}
	return starts, stops, nil
}

// lookUp turns a position into offsets.
func (e *enumerator) lookUp(ctx context.Context, p Position, tps []kafka.TP, at ends, stop bool) (map[kafka.TP]int64, error) {
	if p.kind != committed {
		found, err := e.client.Offsets(ctx, p.queries(tps), !e.src.uncommitted)
		if err != nil {
			return nil, err
		}
		return p.resolve(tps, at, found, stop)
	}
	if p.group == "" {
		return nil, errors.New("kafkasource.Committed names no group")
	}
	out, err := e.client.Committed(ctx, p.group, tps)
	if err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(tps), func(tp kafka.TP) bool { _, ok := out[tp]; return ok })
	if len(rest) == 0 {
		return out, nil
	}
	if p.otherwise.kind == unset {
		return nil, fmt.Errorf("group %q has committed nothing for %s: check its name, or say by kafkasource.Committed where to be otherwise", p.group, rest[0])
	}
	others, err := e.lookUp(ctx, *p.otherwise, rest, at, stop)
	if err != nil {
		return nil, err
	}
	for _, tp := range rest {
		out[tp] = others[tp]
	}
	return out, nil
}

func queriesAt(tps []kafka.TP, time int64) []kafka.OffsetQuery {
	out := make([]kafka.OffsetQuery, len(tps))
	for i, tp := range tps {
		out[i] = kafka.OffsetQuery{TP: tp, Time: time}
	}
	return out
}

// again looks for partitions that were not there before. They are read from their earliest record.
func (e *enumerator) again(ctx context.Context) ([]flow.Split, error) {
	tps, err := e.list(ctx, false)
	if err != nil {
		return nil, err
	}
	tps = slices.DeleteFunc(tps, func(tp kafka.TP) bool { return e.known[tp] })
	starts, err := e.client.Offsets(ctx, queriesAt(tps, kafka.Earliest), false)
	if err != nil {
		return nil, err
	}
	var added []flow.Split
	for _, tp := range tps {
		e.know(tp)
		added = append(added, e.near[tp].of(splitState{TP: tp, Start: starts[tp], Stop: noStop}.split()))
	}
	return added, nil
}

// list returns the partitions to read, in order.
func (e *enumerator) list(ctx context.Context, strict bool) ([]kafka.TP, error) {
	s := e.src
	md, err := e.client.Metadata(ctx, s.topics...) // none named: all
	if err != nil {
		return nil, err
	}
	var out []kafka.TP
	e.compare(md)
	for _, name := range slices.Sorted(maps.Keys(md.Topics)) {
		t := md.Topics[name]
		if s.pattern != nil && (t.Internal || !s.pattern.MatchString(name) || s.exclude != nil && s.exclude.MatchString(name)) {
			continue
		}
		if t.Err != nil {
			if _, read := e.ids[name]; read && !strict {
				continue // gone: compare has said so
			}
			if errors.Is(t.Err, kafka.ErrUnknownTopic) {
				return nil, fmt.Errorf("topic %q does not exist at %s, or our user may not describe it: create it, or use a pattern for topics that come later", name, brokersOf(md))
			}
			return nil, fmt.Errorf("cannot look at topic %q: %w%s", name, t.Err, kafka.ReadHint(t.Err))
		}
		e.ids[name] = t.ID
		for _, p := range t.Partitions {
			tp := kafka.TP{Topic: name, Partition: p.ID}
			out = append(out, tp)
			at := place{}
			at.hosts, at.racks = md.Near(p)
			e.near[tp] = at
		}
	}
	if s.partitions != nil {
		return e.only(out, strict)
	}
	for _, name := range s.topics {
		if _, ok := md.Topics[name]; !ok {
			return nil, fmt.Errorf("topic %q is missing in the answer of %s", name, brokersOf(md))
		}
	}
	return out, nil
}

// compare warns of topics that were deleted, or deleted and made anew. What becomes of their splits is their readers' affair:
// those of a deleted topic fail when kafka.unavailable-timeout has passed, those of one made anew follow OnDataLoss.
func (e *enumerator) compare(md *kafka.Metadata) {
	for _, name := range slices.Sorted(maps.Keys(e.ids)) {
		was, none := e.ids[name], [16]byte{}
		t, ok := md.Topics[name]
		switch {
		case !ok || errors.Is(t.Err, kafka.ErrUnknownTopic):
			if was != none {
				e.ids[name] = none
				e.warn(fmt.Sprintf("topic %q was deleted while it is read", name))
			}
		case t.Err == nil && was != none && t.ID != none && t.ID != was:
			e.warn(fmt.Sprintf("topic %q was deleted and made anew while it is read", name))
		}
	}
}

// only picks the partitions that the author named.
func (e *enumerator) only(have []kafka.TP, strict bool) ([]kafka.TP, error) {
	var out []kafka.TP
	for _, topic := range e.src.topics {
		for _, n := range e.src.partitions[topic] {
			tp := kafka.TP{Topic: topic, Partition: n}
			switch {
			case slices.Contains(out, tp):
			case slices.Contains(have, tp):
				out = append(out, tp)
			case strict:
				return nil, fmt.Errorf("partition %d of topic %q does not exist", n, topic)
			}
		}
	}
	slices.SortFunc(out, func(a, b kafka.TP) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out, nil
}

func brokersOf(md *kafka.Metadata) string {
	return strings.Join(slices.Sorted(maps.Values(md.Brokers)), ", ")
}
