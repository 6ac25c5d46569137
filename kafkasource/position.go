package kafkasource

import (
	"fmt"
	"maps"
	"time"

	"github.com/heddle-stream/heddle/internal/kafka"
)

// Position is a place in each partition. Where it depends on what the partitions hold, it is looked up once, when the job starts.
type Position struct {
	kind    positionKind
	time    time.Time
	offsets map[kafka.TP]int64

	group     string    // committed
	otherwise *Position // committed, for partitions without
}

type positionKind uint8

const (
	unset positionKind = iota
	earliest
	latest
	timestamp
	offsets
	committed
)

// Earliest is the first record there is.
func Earliest() Position { return Position{kind: earliest} }

// Latest is the end: after the last record there is.
func Latest() Position { return Position{kind: latest} }

// Timestamp is the first record whose Kafka timestamp is not before t, or the end if there is none.
func Timestamp(t time.Time) Position { return Position{kind: timestamp, time: t} }

// Offsets gives each partition its own offset. To start at, partitions that are left out have their earliest one;
// to stop at, none may be left out.
func Offsets(byTopic map[string]map[int32]int64) Position {
	p := Position{kind: offsets, offsets: map[kafka.TP]int64{}}
	for topic, parts := range byTopic {
		for n, o := range parts {
			p.offsets[kafka.TP{Topic: topic, Partition: n}] = o
		}
	}
	return p
}

// Committed is what a consumer group has committed, such as that of a program which read the topics before. Partitions for which
// there is nothing are at the position otherwise; with Position{} there, they are an error.
// Heddle only looks: it does not become a member of the group.
func Committed(group string, otherwise Position) Position {
	return Position{kind: committed, group: group, otherwise: &otherwise}
}

func (p Position) String() string {
	switch p.kind {
	case earliest:
		return "earliest"
	case latest:
		return "latest"
	case timestamp:
		return p.time.Format(time.RFC3339Nano)
	case committed:
		return fmt.Sprintf("what group %q has committed, otherwise %v", p.group, *p.otherwise)
	case offsets:
		return fmt.Sprintf("offsets of %d partitions", len(p.offsets))
	}
	return "none"
}

// ends are the offsets at which partitions begin and end now.
type ends struct{ first, last map[kafka.TP]int64 }

// queries lists what has to be asked of the brokers to resolve p beside the ends.
func (p Position) queries(tps []kafka.TP) []kafka.OffsetQuery {
	if p.kind != timestamp {
		return nil
	}
	out := make([]kafka.OffsetQuery, len(tps))
	for i, tp := range tps {
		out[i] = kafka.OffsetQuery{TP: tp, Time: p.time.UnixMilli()}
	}
	return out
}

// resolve gives each partition its offset. found answers queries.
func (p Position) resolve(tps []kafka.TP, e ends, found map[kafka.TP]int64, stop bool) (map[kafka.TP]int64, error) {
	switch p.kind {
	case latest:
		return e.last, nil
	case timestamp:
		out := maps.Clone(e.last)
		for tp, o := range found {
			if o >= 0 {
				out[tp] = min(o, e.last[tp])
			}
		}
		return out, nil
	case offsets:
		out := map[kafka.TP]int64{}
		for _, tp := range tps {
			o, ok := p.offsets[tp]
			if !ok && stop {
				return nil, fmt.Errorf("no stop offset is given for %s", tp)
			}
			if !ok {
				o = e.first[tp]
			}
			if o < 0 {
				return nil, fmt.Errorf("offset %d of %s is negative", o, tp)
			}
			out[tp] = o
		}
		for tp := range p.offsets {
			if _, ok := out[tp]; !ok {
				return nil, fmt.Errorf("an offset is given for %s, which is not among the partitions read", tp)
			}
		}
		return out, nil
	}
	return e.first, nil
}
