package flow

import "slices"

// Need is something outside of a job that a connector or format must be let to use.
type Need struct {
	Kind NeedKind
	// Name is the topic, the group, the path or the like. Of a subject it may be "": those of the topics that the same operator reads.
	Name string
	// Pattern marks a Name that is a regular expression (of topics) or a pattern of path.Match (of paths).
	Pattern bool
	Read    bool
	Write   bool
	At      string // brokers of the cluster, or whatever else tells one from another; "": the configured one
}

// NeedKind is what kind of thing is needed.
type NeedKind string

// Kinds of needs.
const (
	NeedTopic   NeedKind = "topic"   // of Kafka
	NeedGroup   NeedKind = "group"   // consumer group of Kafka, whose offsets are read or written
	NeedSubject NeedKind = "subject" // of a schema registry
	NeedPath    NeedKind = "path"    // a file or folder, or the URI of one
)

// Needing is a connector or format that knows what it needs.
type Needing interface {
	Needs() []Need
}

// NeedsOf returns what connectors and formats need, as far as they say.
func NeedsOf(parts ...any) []Need {
	var out []Need
	for _, p := range parts {
		n, ok := p.(Needing)
		if !ok {
			continue
		}
		for _, need := range n.Needs() {
			if !slices.Contains(out, need) {
				out = append(out, need)
			}
		}
	}
	return out
}

// Needs implements Needing where the connector or the format does.
func (d decoded[T]) Needs() []Need {
	out := NeedsOf(d.MessageSource, d.format)
	for i, n := range out {
		if n.Kind == NeedSubject && n.Name == "" {
			out[i].Read, out[i].Write = true, false
		}
	}
	return out
}

// Needs implements Needing where the connector or the format does. What a format needs to read by, it does not need here.
func (e encoded[T]) Needs() []Need {
	return slices.DeleteFunc(NeedsOf(e.sink, e.format), func(n Need) bool { return n.Kind == NeedSubject && n.Name == "" })
}
