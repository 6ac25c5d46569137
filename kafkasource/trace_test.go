package kafkasource

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// TestTracesOfHeaders: messages whose headers have a sampled traceparent are told of, whatever stands beside it; others, and those whose headers can't
// be read, are not.
func TestTracesOfHeaders(t *testing.T) {
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	header := func(name, value string) batch.RecordHeader {
		return batch.RecordHeader{Key: name, Value: []byte(value)}
	}
	m := &flow.Messages{}
	add := func(headers ...batch.RecordHeader) {
		at := len(m.Buf)
		m.Buf = batch.AppendHeaders(m.Buf, headers)
		m.Headers = append(m.Headers, flow.Span{Off: int32(at), Len: int32(len(m.Buf) - at)})
	}
	add()
	add(header("a", "1"), header("traceparent", "00-"+id+"-"+span+"-01"), header("b", "2"))
	add(header("traceparent", "00-"+id+"-"+span+"-00"))                                                // not sampled
	add(header("traceparent", "nonsense"))                                                             // none
	add(header("x-traceparent", "00-"+id+"-"+span+"-01"))                                              // another's
	add(header("traceparent", "nonsense"), header("traceparent", "00-"+id+"-"+span+"-03"))             // of several, the first that is one
	add(header("note", "traceparent"), header("traceparent", "cc-"+id+"-"+span+"-01-from the future")) // a later version
	at := len(m.Buf)
	m.Buf = append(m.Buf, "\x05traceparent"...) // broken
	m.Headers = append(m.Headers, flow.Span{Off: int32(at), Len: int32(len(m.Buf) - at)})
	m.Traces = []flow.MessageTrace{{Index: 99}} // of the batch before
	(&reader{}).findTraces(m)
	var got []int
	for _, tr := range m.Traces {
		got = append(got, tr.Index)
		if tr.Context.Trace[0] != 0x0a || tr.Context.Span[0] != 0xb7 || !tr.Context.Sampled() {
			t.Errorf("message %d has the trace %+v", tr.Index, tr.Context)
		}
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 5 || got[2] != 6 {
		t.Errorf("messages %v have traces, want 1, 5 and 6", got)
	}
}
