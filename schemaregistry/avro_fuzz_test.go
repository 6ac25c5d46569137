package schemaregistry

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// TestNested: neither a schema nor a value makes the stack grow without end.
func TestNested(t *testing.T) {
	for text, says := range map[string]string{
		`{"type":"record","name":"r","fields":[{"name":"next","type":"r"}]}`:                                                             "holds itself",
		`{"type":"record","name":"r","fields":[{"name":"x","type":{"type":"record","name":"s","fields":[{"name":"y","type":"r"}]}}]}`:    "holds itself",
		`{"type":"record","name":"r","fields":[{"name":"next","type":["null","r"]}]}`:                                                    "",
		`{"type":"record","name":"r","fields":[{"name":"next","type":{"type":"array","items":"r"}}]}`:                                    "",
		`{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"map","values":"long"}},{"name":"b","type":["null","long"]}]}`: "",
	} {
		s, err := parseAvro(&schema{text: text, kind: "AVRO"})
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
		if err != nil {
			continue
		}
		var v any
		err = readAvro(newAvroReader(avroLimits.Freeze()), s, bytes.Repeat([]byte{2}, 10<<20), &v)
		if deep := !strings.Contains(text, `"map"`); deep && (err == nil || !strings.Contains(err.Error(), "nested")) {
			t.Errorf("%s: %v", text, err)
		}
		_ = readAvro(newAvroReader(avroLimits.Freeze()), s, bytes.Repeat([]byte{2}, maxNested), &v)
		if deep := !strings.Contains(text, `"map"`); deep { // wide, and not deep
			wide := bytes.Repeat([]byte{0}, 1<<20)
			if err := readAvro(newAvroReader(avroLimits.Freeze()), s, wide, &v); err != nil {
				t.Errorf("%s, what follows a value: %v", text, err)
			}
		}
	}
}

// TestItemsOfNoBytes: a few bytes that say that there are very many items keep nobody busy, whether they are read or passed over.
func TestItemsOfNoBytes(t *testing.T) {
	for _, items := range []string{`"null"`, `{"type":"fixed","name":"f","size":0}`, `{"type":"record","name":"e","fields":[{"name":"n","type":"null"}]}`} {
		s, err := parseAvro(&schema{text: `{"type":"record","name":"r","fields":[{"name":"m","type":["null","r",{"type":"array","items":` + items + `}]},{"name":"n","type":"long"}]}`, kind: "AVRO"})
		if err != nil {
			t.Error(err)
			continue
		}
		var v struct {
			N int64 `avro:"n"`
		}
		most := binary.AppendVarint([]byte{4}, 1<<62)
		if err := readAvro(newAvroReader(avroLimits.Freeze()), s, most, &v); err == nil || !strings.Contains(err.Error(), "more than 65536 items that take no bytes") {
			t.Errorf("2^62 items of %s: %v", items, err)
		}
		twice := append(binary.AppendVarint(binary.AppendVarint([]byte{4}, maxEmpty), 1), 0, 2)
		if err := readAvro(newAvroReader(avroLimits.Freeze()), s, twice, &v); err == nil || !strings.Contains(err.Error(), "more than 65536 items that take no bytes") {
			t.Errorf("too many items of %s in two blocks: %v", items, err)
		}
		if strings.Contains(items, "null") { // which the library does not pass over
			continue
		}
		some := append(binary.AppendVarint([]byte{4}, maxEmpty), 0, 2)
		if err := readAvro(newAvroReader(avroLimits.Freeze()), s, some, &v); err != nil || v.N != 1 {
			t.Errorf("some items of %s: %v, and then %d", items, err, v.N)
		}
	}
}

// FuzzAvro: records of anybody's, by a schema of a registry's that has every type.
func FuzzAvro(f *testing.F) {
	const all = `{"type":"record","name":"r","fields":[{"name":"s","type":["null","string"]},{"name":"b","type":"bytes"},{"name":"a","type":{"type":"array","items":"long"}},
		{"name":"m","type":{"type":"map","values":"double"}},{"name":"e","type":{"type":"enum","name":"e","symbols":["A","B"]}},{"name":"f","type":{"type":"fixed","name":"f","size":4}},
		{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},{"name":"next","type":["null","r"]}]}`
	f.Add(all, []byte{2, 2, 'x', 2, 'y', 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 1, 0})
	f.Add(all, []byte{0, 0xfe, 0xff, 0xff, 0xff, 0x0f})
	f.Add(`{"type":"record","name":"r","fields":[]}`, []byte{})
	f.Add(`{"type":"record","name":"r","fields":[{"name":"next","type":"r"}]}`, []byte{2})
	f.Add(`"string"`, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, text string, payload []byte) {
		s, err := parseAvro(&schema{text: text, kind: "AVRO"})
		if err != nil {
			return
		}
		var v any
		_ = readAvro(newAvroReader(avroLimits.Freeze()), s, payload, &v)
	})
}
