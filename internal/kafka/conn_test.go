package kafka

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func fetchResponse(corr int32, tags ...byte) []byte {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = fetchVersion
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic = "clicks"
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition, p.HighWatermark, p.LastStableOffset = 3, 17, 16
	p.RecordBatches = []byte("batches")
	p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 5, FirstOffset: 6}}
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	b := binary.BigEndian.AppendUint32(nil, uint32(corr))
	if len(tags) == 0 {
		tags = []byte{0}
	}
	return resp.AppendTo(append(b, tags...))
}

func TestParseFetch(t *testing.T) {
	for _, tags := range [][]byte{{0}, {2, 0, 1, 'x', 5, 0}} {
		b := fetchResponse(7, tags...)
		var resp kmsg.FetchResponse
		if err := parseFetch(b, 7, &resp); err != nil {
			t.Fatal(err)
		}
		p := resp.Topics[0].Partitions[0]
		if resp.Topics[0].Topic != "clicks" || p.Partition != 3 || string(p.RecordBatches) != "batches" || len(p.AbortedTransactions) != 1 {
			t.Errorf("response is read as %+v", resp)
		}
		if i := bytes.Index(b, []byte("batches")); &b[i] != &p.RecordBatches[0] {
			t.Error("the batches were copied")
		}
		for n := range b {
			if err := parseFetch(b[:n], 7, &resp); err == nil {
				t.Errorf("the first %d of %d bytes of a response are accepted", n, len(b))
			}
		}
	}
	var resp kmsg.FetchResponse
	if err := parseFetch(fetchResponse(8), 7, &resp); err == nil || !strings.Contains(err.Error(), "answer 8 to request 7") {
		t.Errorf("answer to another request: %v", err)
	}
}

func parseFetch(b []byte, corr int32, resp *kmsg.FetchResponse) error {
	body, err := responseBody(b, corr)
	if err != nil {
		return err
	}
	resp.Version = fetchVersion
	return resp.ReadFrom(body)
}

func FuzzParseFetch(f *testing.F) {
	f.Add(fetchResponse(1))
	f.Add(fetchResponse(1, 1, 0, 2, 'x', 'y'))
	f.Fuzz(func(t *testing.T, b []byte) {
		var resp kmsg.FetchResponse
		if err := parseFetch(b, 1, &resp); err == nil && len(resp.Topics) > len(b) {
			t.Errorf("%d topics from %d bytes", len(resp.Topics), len(b))
		}
	})
}
