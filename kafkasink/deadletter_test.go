package kafkasink

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

func TestDeadLetters(t *testing.T) {
	var m flow.Messages
	err := DeadLetters().Encode(&m, []flow.DeadRecord{
		{Operator: "source", Reason: "bad", Record: "shown", Value: []byte("raw"), Topic: "in", Partition: 3, Offset: 17, Key: []byte("k")},
		{Operator: "map", Reason: "worse", Record: "shown"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ key, value, headers string }{
		{"k", "raw", "heddle-reason=bad heddle-operator=source heddle-topic=in heddle-partition=3 heddle-offset=17 "},
		{"", "shown", "heddle-reason=worse heddle-operator=map "},
	} {
		hs, err := batch.Headers(nil, m.At(m.Headers[i]))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, h := range hs {
			text += h.Key + "=" + string(h.Value) + " "
		}
		if got := string(m.At(m.Keys[i])); got != want.key || string(m.Value(i)) != want.value || text != want.headers {
			t.Errorf("message %d: key %q, value %q, headers %q, want %+v", i, got, m.Value(i), text, want)
		}
	}
}
