package kafkasink

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// traceparent is the header that W3C's Trace Context names.
const traceparent = "traceparent"

// Write implements flow.MessageWriter. Messages that are followed take their trace along in a header.
func (w *writer) Write(m *flow.Messages) error {
	if len(m.Traces) == 0 {
		return w.Producer.Write(m)
	}
	w.tracer.Attr(telemetry.A("messaging.system", "kafka"), telemetry.A("messaging.operation.name", "send"),
		telemetry.A("messaging.operation.type", "send"), telemetry.A("messaging.destination.name", w.topic))
	headers := m.Headers
	if err := addTraces(m); err != nil {
		return err
	}
	err := w.Producer.Write(m)
	m.Headers = headers
	return err
}

// addTraces gives messages that are followed a header, in place of any that they have of its name.
func addTraces(m *flow.Messages) error {
	own := make([]flow.Span, m.Len())
	copy(own, m.Headers)
	for _, t := range m.Traces {
		if t.Index >= len(own) {
			continue
		}
		var headers []batch.RecordHeader
		if s := own[t.Index]; s.Len > 0 {
			var err error
			if headers, err = batch.Headers(nil, m.At(s)); err != nil {
				return err
			}
		}
		headers = slices.DeleteFunc(headers, func(h batch.RecordHeader) bool { return h.Key == traceparent })
		headers = append(headers, batch.RecordHeader{Key: traceparent, Value: telemetry.AppendTraceparent(nil, t.Context)})
		at := len(m.Buf)
		m.Buf = batch.AppendHeaders(m.Buf, headers)
		own[t.Index] = flow.Span{Off: int32(at), Len: int32(len(m.Buf) - at)}
	}
	m.Headers = own
	return nil
}
