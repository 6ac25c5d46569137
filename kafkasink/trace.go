package kafkasink

import (
	"slices"
	"strconv"
	"sync/atomic"

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
	send := w.tracer.Send("send "+w.topic, telemetry.A("messaging.system", "kafka"), telemetry.A("messaging.operation.name", "send"),
		telemetry.A("messaging.operation.type", "send"), telemetry.A("messaging.destination.name", w.topic), telemetry.A("messaging.batch.message_count", m.Len()))
	if send == nil {
		return w.Producer.Write(m)
	}
	headers := m.Headers
	if err := addTraces(m, send.Context()); err != nil {
		return err
	}
	err := w.Producer.WriteFollowed(m, delivered(send, m.Len()))
	m.Headers = headers
	return err
}

// delivered ends the span of a delivery with the last of n messages that was acknowledged.
func delivered(send flow.Delivery, n int) func(partition int32) {
	var left atomic.Int64
	left.Store(int64(n))
	return func(partition int32) {
		if left.Add(-1) == 0 {
			send.Done(telemetry.A("messaging.destination.partition.id", strconv.Itoa(int(partition))))
		}
	}
}

// addTraces gives messages that are followed a header that names the span of their delivery, in place of any that they have of its name.
func addTraces(m *flow.Messages, c flow.TraceContext) error {
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
		headers = append(headers, batch.RecordHeader{Key: traceparent, Value: telemetry.AppendTraceparent(nil, c)})
		at := len(m.Buf)
		m.Buf = batch.AppendHeaders(m.Buf, headers)
		own[t.Index] = flow.Span{Off: int32(at), Len: int32(len(m.Buf) - at)}
	}
	m.Headers = own
	return nil
}
