package kafkasource

import (
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Needs implements flow.Needing: the topics, and the groups whose offsets are read or committed.
func (s *Source) Needs() []flow.Need {
	at := strings.Join(s.brokers, ",")
	var out []flow.Need
	for _, t := range s.topics {
		out = append(out, flow.Need{Kind: flow.NeedTopic, Name: t, Read: true, At: at})
	}
	if s.pattern != nil {
		expr := strings.TrimSuffix(strings.TrimPrefix(s.pattern.String(), "^(?:"), ")$")
		out = append(out, flow.Need{Kind: flow.NeedTopic, Name: expr, Pattern: true, Read: true, At: at})
	}
	for _, p := range []*Position{&s.start, &s.stop} {
		for ; p != nil; p = p.otherwise {
			if p.group != "" && p.group != s.group {
				out = append(out, flow.Need{Kind: flow.NeedGroup, Name: p.group, Read: true, At: at})
			}
		}
	}
	if s.group != "" {
		out = append(out, flow.Need{Kind: flow.NeedGroup, Name: s.group, Read: true, Write: true, At: at})
	}
	return out
}
