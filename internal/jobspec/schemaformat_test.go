package jobspec

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// newSchemaServer is a registry that takes any schema, and gives each an id.
func newSchemaServer(t *testing.T) string {
	type entry struct {
		ID     int    `json:"id"`
		Schema string `json:"schema"`
		Kind   string `json:"schemaType,omitempty"`
	}
	var all []entry
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			e := entry{ID: len(all) + 1}
			if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			e.ID = len(all) + 1
			all = append(all, e)
			_ = json.NewEncoder(w).Encode(e)
			return
		}
		id := 0
		_, _ = fmt.Sscanf(r.URL.Path, "/schemas/ids/%d", &id)
		if id < 1 || id > len(all) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(all[id-1])
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestWritesByRegistry writes records by a schema, and reads them back by what the registry has then.
func TestWritesByRegistry(t *testing.T) {
	for _, c := range []struct{ kind, schema, more string }{
		{"avro", `{"type": "record", "name": "Click", "fields": [{"name": "user", "type": "string"}, {"name": "n", "type": ["null", "long"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "tags", "type": {"type": "array", "items": "string"}}]}`, ""},
		{"protobuf", `syntax = "proto3"; package web; import "google/protobuf/timestamp.proto"; message None {}
        message Click { string user = 1; optional int64 n = 2; google.protobuf.Timestamp at = 3; repeated string tags = 4; }`, ", message: web.Click"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			k := newKafkaTest(t, "in", "middle", "out", "bad")
			k.registry = newSchemaServer(t)
			k.produce(0, `{"user": "ann", "n": 3, "at": "2026-03-01T12:00:00Z", "tags": ["x", "y"]}`, `{"user": "bob", "n": null, "at": "2026-03-01T12:00:01Z", "tags": []}`)
			err := k.run(k.ctx, `
name: write
source: { kafka: { topics: [in], format: json, stop: latest }, fields: { user: string, n: int, at: time, tags: list } }
sink:
  kafka:
    topic: middle
    key: user
    headers: { who: user }
    format: { `+c.kind+`: { subject: s`+c.more+`, schema: '`+c.schema+`' } }
`)
			if err != nil {
				t.Fatal(err)
			}
			err = k.run(k.ctx, `
name: read
source: { kafka: { topics: [middle], format: `+c.kind+`, stop: latest }, fields: { user: string, n: int, at: time, tags: list } }
steps: [ { set: { who: '_key + string(_headers.who)' } } ]
sink: { kafka: { topic: out, format: json } }
`)
			if err != nil {
				t.Fatal(err)
			}
			got := k.read(2)
			if got[0] > got[1] {
				got[0], got[1] = got[1], got[0]
			}
			if !strings.HasPrefix(got[0], `out: {"user":"ann","n":3,"at":"2026-03-01T12:00:00Z","tags":["x","y"],"who":"annann"}`) {
				t.Errorf("got %s", got[0])
			}
			for _, part := range []string{`"user":"bob"`, `"at":"2026-03-01T12:00:01Z"`, `"tags":[]`} {
				if !strings.Contains(got[1], part) || strings.Contains(got[1], `"n":0`) {
					t.Errorf("got %s, want %s", got[1], part)
				}
			}
		})
	}
}

// TestWriteErrors: a record that the schema can't hold fails the job with the field and the sink's place.
func TestWriteErrors(t *testing.T) {
	k := newKafkaTest(t, "in", "out")
	k.registry = newSchemaServer(t)
	k.produce(0, `{"user": "ann", "n": "many"}`)
	err := k.run(k.ctx, `
name: write
source: { kafka: { topics: [in], format: json, stop: latest } }
sink: { kafka: { topic: out, format: { avro: { schema: '{"type": "record", "name": "C", "fields": [{"name": "user", "type": "string"}, {"name": "n", "type": "int"}]}' } } } }
`)
	if err == nil {
		t.Fatal("the job finished")
	}
	for _, want := range []string{`field "n": a whole number is wanted, not the string "many"`, "job.yaml:4", "avro"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not say %q", err, want)
		}
	}
}

// TestSchemasChecked: what is wrong with a schema is found when the file is read.
func TestSchemasChecked(t *testing.T) {
	const source = "name: a\nsource: { kafka: { topics: [in], format: json }, fields: { user: string, n: int } }\nsink: { kafka: { topic: out, format: { %s } } }\n"
	const fields = `"type": "record", "name": "C", "fields": [{"name": "user", "type": "string"}`
	for format, want := range map[string]string{
		`avro: { schema: "{" }`:                                                     "cannot use the schema",
		`avro: { schema: '{` + fields + `]}' }`:                                     `no field for the column "n"`,
		`avro: { schema: '{` + fields + `, {"name": "m", "type": "int"}]}' }`:       `no column for the field "m"`,
		`avro: { schema_file: none.avsc }`:                                          "cannot read the schema: no file none.avsc",
		`avro: { schema_file: c.avsc, schema: "{}" }`:                               "exclude each other",
		`avro: { message: C }`:                                                      "goes with protobuf only",
		`avro: { register: false }`:                                                 "register needs schema",
		`avro: { strategy: record }`:                                                "needs the record's name",
		`avro: { strategy: record, subject: s, schema_file: c.avsc }`:               "subject and strategy exclude each other",
		`protobuf: { schema_file: c.avsc }`:                                         "cannot use the schema",
		`avro: { schema_file: c.avsc, strategy: topic-record, register: false }`:    "",
		`protobuf: { schema: 'syntax = "proto3"; message C { string user = 1; }' }`: `no field for the column "n"`,
		`protobuf: { message: web.Click, strategy: record }`:                        "",
	} {
		_, err := Load("job.yaml", fmt.Appendf(nil, source, format), Options{ReadFile: func(name string) ([]byte, error) {
			if name != "c.avsc" {
				return nil, fmt.Errorf("no file %s", name)
			}
			return []byte("{" + fields + `, {"name": "n", "type": ["null", "long"]}]}`), nil
		}})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", format, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "job.yaml:3:")):
			t.Errorf("%s: got %v, want %q at its place", format, err, want)
		}
	}
	if _, err := Load("job.yaml", []byte("name: a\nsource: { kafka: { topics: [in], format: json } }\nsink: { stdout: { format: avro } }\n"), Options{}); err == nil || !strings.Contains(err.Error(), "only messages of Kafka") {
		t.Errorf("avro on standard output: %v", err)
	}
}

// TestMaxDrift: sources of a job wait for each other as the file says.
func TestMaxDrift(t *testing.T) {
	const file = "name: a\nsources:\n  a: { kafka: { topics: [a], format: json }, event_time: at%s }\n  b: { kafka: { topics: [b], format: json }, event_time: at%s }\n" +
		"steps: [ { union: [a, b] } ]\nsink: { discard: {} }\n"
	for _, c := range []struct{ a, b, groups, err string }{
		{"", "", " ", ""},
		{", max_drift: 1m", "", "source a 1m0s ", ""},
		{", max_drift: 1m, align: g", ", max_drift: 2m, align: g", "g 1m0s g 2m0s", ""},
		{", align: g", "", "", "align needs max_drift"},
		{", max_drift: 1m, align: ''", "", "", "the group's name is empty"},
		{", max_drift: 0s", "", "", "max_drift"},
	} {
		job, err := Load("job.yaml", fmt.Appendf(nil, file, c.a, c.b), Options{})
		if err != nil || c.err != "" {
			if c.err == "" || err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %s: got %v, want %q", c.a, c.b, err, c.err)
			}
			continue
		}
		var got []string
		for _, n := range job.Graph().Nodes {
			if n.Source != nil {
				text := n.Align.Group
				if n.Align.MaxDrift > 0 {
					text += " " + n.Align.MaxDrift.String()
				}
				got = append(got, text)
			}
		}
		if text := strings.Join(got, " "); text != c.groups {
			t.Errorf("%s %s: groups are %q, want %q", c.a, c.b, text, c.groups)
		}
	}
	_, err := Load("job.yaml", []byte("name: a\nsource: { generator: { record: { at: n } }, event_time: at, max_drift: 1s }\nsink: { discard: {} }\n"), Options{})
	if err == nil || !strings.Contains(err.Error(), "event_time of a generator") {
		t.Errorf("a generator with event_time: %v", err)
	}
}

// TestNoRegistry: what a sink or source with schemas lacks is told before anything is read.
func TestNoRegistry(t *testing.T) {
	const sink = "name: a\nsource: { kafka: { topics: [in], format: json, stop: latest }, fields: { user: string } }\nsink: { kafka: { topic: out, format: %s } }\n"
	const source = "name: a\nsource: { kafka: { topics: [in], format: %s, stop: latest }, fields: { user: string } }\nsink: { kafka: { topic: out, format: json } }\n"
	taken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, code := http.StatusNotFound, 40401
		if r.Method == http.MethodPost {
			status, code = http.StatusConflict, 409
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error_code": %d, "message": "so says the registry"}`, code)
	}))
	t.Cleanup(taken.Close)
	avro := `{ avro: { schema: '{"type": "record", "name": "C", "fields": [{"name": "user", "type": "string"}]}' } }`
	for _, c := range []struct{ file, format, registry, want string }{
		{sink, "avro", "", "no schema registry is given"},
		{source, "protobuf", "", "no schema registry is given"},
		{sink, "avro", taken.URL, "the registry does not have it (404 Not Found: so says the registry)"},
		{sink, avro, taken.URL, "the schema registry refuses: 409 Conflict: so says the registry"},
	} {
		k := newKafkaTest(t, "in", "out")
		k.registry = c.registry
		k.produce(0, `{"user": "ann"}`)
		err := k.run(k.ctx, fmt.Sprintf(c.file, c.format))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "cannot start s") {
			t.Errorf("%s %s: got %v, want %q", c.format, c.registry, err, c.want)
		}
	}
}
