package kafkasink

import (
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Needs implements flow.Needing: the topic.
func (s *Sink) Needs() []flow.Need {
	return []flow.Need{{Kind: flow.NeedTopic, Name: s.topic, Write: true, At: strings.Join(s.brokers, ",")}}
}
