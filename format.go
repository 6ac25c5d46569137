package heddle

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/heddle-stream/heddle/internal/flow"
)

// errNull is a message without a value, as Kafka has for deleted keys.
var errNull = errors.New("the message has no value")

// Text is the format of messages that are text: a line of a file, say.
func Text() Format[string] { return textFormat{} }

type textFormat struct{}

func (textFormat) Name() string               { return "text" }
func (textFormat) Fields() flow.MessageFields { return 0 }

// Decode implements Format: the strings of a batch share one copy of its memory.
func (textFormat) Decode(dst []string, m *Messages, from int) ([]string, error) {
	if from >= m.Len() {
		return dst, nil
	}
	all := string(m.Buf)
	for _, v := range m.Values[from:] {
		if v.Len < 0 {
			return dst, errNull
		}
		dst = append(dst, all[v.Off:v.Off+v.Len])
	}
	return dst, nil
}

func (textFormat) Encode(m *Messages, recs []string) error {
	for _, s := range recs {
		m.Values = append(m.Values, flow.Span{Off: int32(len(m.Buf)), Len: int32(len(s))})
		m.Buf = append(m.Buf, s...)
	}
	return nil
}

// Raw is the format of messages that stay bytes. A record is borrowed for the call that gets it; a message without a value is nil.
func Raw() Format[[]byte] { return rawFormat{} }

type rawFormat struct{}

func (rawFormat) Name() string               { return "raw" }
func (rawFormat) Fields() flow.MessageFields { return 0 }

func (rawFormat) Decode(dst [][]byte, m *Messages, from int) ([][]byte, error) {
	for _, v := range m.Values[min(from, m.Len()):] {
		dst = append(dst, m.At(v))
	}
	return dst, nil
}

func (rawFormat) Encode(m *Messages, recs [][]byte) error {
	for _, r := range recs {
		n := int32(len(r))
		if r == nil {
			n = -1
		}
		m.Values = append(m.Values, flow.Span{Off: int32(len(m.Buf)), Len: n})
		m.Buf = append(m.Buf, r...)
	}
	return nil
}

// JSON is the format of messages that are JSON documents, by the rules of encoding/json.
func JSON[T any]() Format[T] { return jsonFormat[T]{} }

type jsonFormat[T any] struct{}

func (jsonFormat[T]) Name() string               { return "json" }
func (jsonFormat[T]) Fields() flow.MessageFields { return 0 }

func (jsonFormat[T]) Decode(dst []T, m *Messages, from int) ([]T, error) {
	for i := from; i < m.Len(); i++ {
		v := m.Value(i)
		if v == nil {
			return dst, errNull
		}
		var rec T
		if err := json.Unmarshal(v, &rec); err != nil {
			return dst, err
		}
		dst = append(dst, rec)
	}
	return dst, nil
}

func (jsonFormat[T]) Encode(m *Messages, recs []T) error {
	buf := bytes.NewBuffer(m.Buf)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for i := range recs {
		at := buf.Len()
		if err := enc.Encode(&recs[i]); err != nil {
			return err
		}
		buf.Truncate(buf.Len() - 1) // the encoder's line feed
		m.Values = append(m.Values, flow.Span{Off: int32(at), Len: int32(buf.Len() - at)})
	}
	m.Buf = buf.Bytes()
	return nil
}
