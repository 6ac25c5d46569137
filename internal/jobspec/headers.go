package jobspec

import (
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// headerColumns are the columns that become headers.
func (k *kafkaSink) headerColumns() (names []string) {
	if k.Headers == nil {
		return nil
	}
	for _, e := range k.Headers.Entries {
		names = append(names, e.Value.Value)
	}
	return names
}

// headed is the format with headers from columns.
func (n *sinkNode) headed(b *builder, f *row.Format, have row.Schema) heddle.Format[row.Row] {
	h := headedFormat{Format: f, zone: b.plan.zone}
	if h.zone == nil {
		h.zone = time.UTC
	}
	for _, e := range n.spec.Kafka.Headers.Entries {
		i := have.Index(e.Value.Value)
		if i < 0 {
			b.plan.doc.Failf(e.Value.Place(), "unknown column %q%s", e.Value.Value, strict.Suggest(e.Value.Value, have.Names()))
			continue
		}
		h.names, h.cols = append(h.names, e.Key.Value), append(h.cols, i)
	}
	return h
}

// headedFormat adds headers to the messages that a format makes.
type headedFormat struct {
	*row.Format
	names []string
	cols  []int
	zone  *time.Location
}

// Encode implements flow.Format.
func (f headedFormat) Encode(m *flow.Messages, recs []row.Row) error {
	if err := f.Format.Encode(m, recs); err != nil {
		return err
	}
	hs := make([]batch.RecordHeader, 0, len(f.cols))
	for _, r := range recs {
		hs = hs[:0]
		for i, c := range f.cols {
			if v := r.At(c); !v.IsNull() {
				hs = append(hs, batch.RecordHeader{Key: f.names[i], Value: []byte(v.Text(f.zone))})
			}
		}
		at := len(m.Buf)
		m.Buf = batch.AppendHeaders(m.Buf, hs)
		m.Headers = append(m.Headers, flow.Span{Off: int32(at), Len: int32(len(m.Buf) - at)})
	}
	return nil
}
