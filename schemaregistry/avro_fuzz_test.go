package schemaregistry

import "testing"

// FuzzAvro: records of anybody's, by a schema of a registry's that has every type.
func FuzzAvro(f *testing.F) {
	const all = `{"type":"record","name":"r","fields":[{"name":"s","type":["null","string"]},{"name":"b","type":"bytes"},{"name":"a","type":{"type":"array","items":"long"}},
		{"name":"m","type":{"type":"map","values":"double"}},{"name":"e","type":{"type":"enum","name":"e","symbols":["A","B"]}},{"name":"f","type":{"type":"fixed","name":"f","size":4}},
		{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},{"name":"next","type":["null","r"]}]}`
	f.Add(all, []byte{2, 2, 'x', 2, 'y', 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 1, 0})
	f.Add(all, []byte{0, 0xfe, 0xff, 0xff, 0xff, 0x0f})
	f.Add(`{"type":"record","name":"r","fields":[]}`, []byte{})
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
