package kafkasink

import (
	"strconv"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Names of the headers that DeadLetters writes.
const (
	HeaderReason    = "heddle-reason"
	HeaderOperator  = "heddle-operator"
	HeaderTopic     = "heddle-topic"
	HeaderPartition = "heddle-partition"
	HeaderOffset    = "heddle-offset"
)

// DeadLetters is the format of a topic for what could not be read or processed:
//
//	heddle.To(clicks.DeadLetters(), kafkasink.Topic("clicks-bad"), kafkasink.DeadLetters())
//
// A message has the value (and, where the source's format looks at keys, the key) that it had, or the printed record, and headers with the reason, the operator, and
// where the message was.
func DeadLetters() flow.Format[flow.DeadRecord] {
	return RecordFormat("dead letter", func(d flow.DeadRecord, r *Record) error {
		if r.Key, r.Value = d.Key, d.Value; r.Value == nil {
			r.Value = []byte(d.Record)
		}
		header := func(name, value string) { r.Headers = append(r.Headers, Header{name, []byte(value)}) }
		header(HeaderReason, d.Reason)
		header(HeaderOperator, d.Operator)
		if d.Topic != "" {
			header(HeaderTopic, d.Topic)
			header(HeaderPartition, strconv.Itoa(int(d.Partition)))
			header(HeaderOffset, strconv.FormatInt(d.Offset, 10))
		}
		return nil
	})
}
