package kafkasource

import (
	"bytes"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

var traceparent = []byte("traceparent")

// findTraces notes which messages of m came with a sampled trace in their headers.
func (r *reader) findTraces(m *flow.Messages) {
	m.Traces = m.Traces[:0]
	for i, s := range m.Headers {
		if s.Len <= 1 { // a count of 0
			continue
		}
		b := m.At(s)
		if !bytes.Contains(b, traceparent) {
			continue
		}
		headers, err := batch.Headers(r.headers[:0], b)
		if r.headers = headers; err != nil {
			continue // who reads the headers will say so
		}
		for _, h := range headers {
			if h.Key != string(traceparent) {
				continue
			}
			if c, ok := telemetry.ParseTraceparent(string(h.Value)); ok && c.Sampled() {
				m.Traces = append(m.Traces, flow.MessageTrace{Index: i, Context: c})
				break
			}
		}
	}
}
