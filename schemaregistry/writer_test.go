package schemaregistry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hamba/avro/v2"
)

const orderSchema = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
	{"name": "id", "type": "long"}, {"name": "user", "type": "string"}, {"name": "paid", "type": "boolean"},
	{"name": "price", "type": "double"}, {"name": "n", "type": "int", "default": 7}, {"name": "note", "type": ["null", "string"], "default": null},
	{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "tags", "type": {"type": "array", "items": "string"}},
	{"name": "extra", "type": {"type": "map", "values": ["null", "long", "string"]}},
	{"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["BUY", "SELL"]}},
	{"name": "address", "type": ["null", {"type": "record", "name": "Address", "fields": [{"name": "zip", "type": "int"}]}]}]}`

const orderProto = `syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Other { int32 x = 1; }
message Order { int64 id = 1; string user = 2; bool paid = 3; double price = 4; int32 n = 5; optional string note = 6;
  google.protobuf.Timestamp at = 7; repeated string tags = 8; map<string, int64> extra = 9; enum Kind { BUY = 0; SELL = 1; } Kind kind = 10;
  message Address { int32 zip = 1; } Address address = 11; }`

func order() map[string]any {
	return map[string]any{
		"id": int64(1) << 40, "user": "ann", "paid": true, "price": 2.5, "n": int64(3), "note": "x", "at": time.UnixMilli(1700000000123).UTC(),
		"tags": []any{"a", "b"}, "extra": map[string]any{"k": int64(5)}, "kind": "SELL", "address": map[string]any{"zip": int64(123)},
	}
}

// TestDocumentsRoundTrip: what is written by a schema is read by it, for every registry, kind of schema and way to find one.
func TestDocumentsRoundTrip(t *testing.T) {
	f := newRegistry(t)
	for _, c := range []struct {
		name     string
		w        Writing
		cloudera bool
		subject  string
	}{
		{name: "avro, registered", w: Writing{Kind: "avro", Schema: orderSchema}, subject: "orders-value"},
		{name: "avro, by record", w: Writing{Kind: "avro", Schema: orderSchema, Strategy: "record"}, subject: "shop.Order"},
		{name: "avro, by both", w: Writing{Kind: "avro", Schema: orderSchema, Strategy: "topic-record"}, subject: "orders-shop.Order"},
		{name: "avro, there already", w: Writing{Kind: "avro", Schema: orderSchema, Existing: true}, subject: "orders-value"},
		{name: "avro, the newest", w: Writing{Kind: "avro"}, subject: "orders-value"},
		{name: "protobuf, registered", w: Writing{Kind: "protobuf", Schema: orderProto, Message: "shop.Order", Subject: "orders-p"}, subject: "orders-p"},
		{name: "protobuf, the newest", w: Writing{Kind: "protobuf", Message: "shop.Order", Subject: "orders-p"}, subject: "orders-p"},
		{name: "cloudera, registered", w: Writing{Kind: "avro", Schema: orderSchema}, cloudera: true, subject: "orders"},
		{name: "cloudera, there already", w: Writing{Kind: "avro", Schema: orderSchema, Existing: true}, cloudera: true, subject: "orders"},
		{name: "cloudera, the newest", w: Writing{Kind: "avro"}, cloudera: true, subject: "orders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.w.Topic = "orders"
			kind, first := "confluent", byte(0)
			if c.cloudera {
				kind, first = "cloudera", 3
			}
			option := f.options(kind)
			w, err := NewWriter(c.w)
			if err != nil {
				t.Fatal(err)
			}
			encode, err := w.Open(t.Context(), option)
			if err != nil {
				t.Fatal(err)
			}
			b, err := encode([]byte("before"), order())
			if err != nil {
				t.Fatal(err)
			}
			if b = b[len("before"):]; b[0] != first {
				t.Errorf("its frame begins with %d, want %d", b[0], first)
			}
			if _, ok := f.subjects[kind+c.subject]; !ok {
				t.Errorf("there is no subject %s; there are %v", c.subject, f.subjects)
			}
			decode, err := NewDocuments(c.w.Kind).Open(t.Context(), option)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if have, want := fmt.Sprint(got), fmt.Sprint(order()); have != want {
				t.Errorf("got  %s\nwant %s", have, want)
			}
		})
	}
}

// TestFieldErrors: a value that the schema can't hold is told with the field's place in the record.
func TestFieldErrors(t *testing.T) {
	for _, c := range []struct {
		change  func(map[string]any)
		avro    string
		protobf string
	}{
		{func(d map[string]any) { d["user"] = int64(3) }, `field "user": a string is wanted, not the number 3`, `field "user": a string is wanted, not the number 3`},
		{func(d map[string]any) { delete(d, "user") }, `field "user": the record does not have it, and the schema has no default for it`, ""},
		{func(d map[string]any) { delete(d, "n"); delete(d, "note") }, "", ""},
		{func(d map[string]any) { d["n"] = int64(1) << 33 }, `field "n": a number of 32 bits (int) is wanted, not the number 8589934592`, `field "n": a number of the kind int32 is wanted, not the number 8589934592`},
		{func(d map[string]any) { d["n"] = 1.5 }, `field "n": a whole number is wanted, not the number 1.5`, `field "n": a whole number is wanted, not the number 1.5`},
		{func(d map[string]any) { d["tags"] = []any{"a", true} }, `field "tags[1]": a string is wanted, not a bool`, `field "tags[1]": a string is wanted, not a bool`},
		{func(d map[string]any) { d["address"] = map[string]any{"zip": "x"} }, `field "address.zip": a whole number is wanted, not the string "x"`, `field "address.zip": a whole number is wanted, not the string "x"`},
		{func(d map[string]any) { d["kind"] = "SWAP" }, `field "kind": one of BUY, SELL is wanted, not the string "SWAP"`, `field "kind": a value of the enum shop.Order.Kind is wanted, not the string "SWAP"`},
		{func(d map[string]any) { d["more"] = int64(1) }, `field "more": the schema shop.Order does not have it`, `field "more": the message shop.Order does not have it`},
		{func(d map[string]any) { d["id"] = time.Unix(0, 0) }, `field "id": a number, since the schema does not say that it is a time (logicalType) is wanted, not the time `, `field "id": a whole number is wanted, not the time `},
		{func(d map[string]any) { d["extra"] = map[string]any{"k": true} }, `field "extra.k": one of null, long, string is wanted, not a bool`, `field "extra.k": a whole number is wanted, not a bool`},
	} {
		for kind, want := range map[string]string{"avro": c.avro, "protobuf": c.protobf} {
			w := Writing{Kind: kind, Message: map[string]string{"protobuf": "shop.Order"}[kind]}
			s, err := w.compile(&schema{text: map[string]string{"avro": orderSchema, "protobuf": orderProto}[kind], kind: w.registryKind()})
			if err != nil {
				t.Fatal(err)
			}
			d := order()
			c.change(d)
			_, err = s.append(nil, d)
			if got := fmt.Sprint(err); err == nil && want != "" || err != nil && (want == "" || !strings.HasPrefix(got, want)) {
				t.Errorf("%s: got %v, want %q", kind, err, want)
			}
		}
	}
}

// TestAvroAsTheLibrary compares the encoding of values with what the library reads.
func TestAvroAsTheLibrary(t *testing.T) {
	for _, c := range []struct {
		schema string
		value  any
		want   any
	}{
		{`["null", "int"]`, nil, nil},
		{`["null", "int"]`, int64(3), 3},
		{`["string", "double", "long"]`, int64(3), int64(3)},
		{`["string", "double"]`, int64(3), 3.0},
		{`"float"`, 0.5, float32(0.5)},
		{`"bytes"`, []byte("ab"), []byte("ab")},
		{`{"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}`, 12.34, "617/50"},
		{`{"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}`, "-0.01", "-1/100"},
		{`{"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}`, int64(-128), "-128"},
		{`{"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 6, "scale": 2}`, -2.5, "-5/2"},
		{`{"type": "fixed", "name": "f", "size": 2}`, "ab", [2]byte{'a', 'b'}},
		{`{"type": "long", "logicalType": "timestamp-micros"}`, time.UnixMicro(-5).UTC(), time.UnixMicro(-5).UTC()},
		{`{"type": "int", "logicalType": "date"}`, time.Date(1969, 12, 31, 23, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)},
		{`{"type": "array", "items": "int"}`, []any{}, []any{}},
	} {
		s, err := avro.ParseWithCache(c.schema, "", new(avro.SchemaCache))
		if err != nil {
			t.Fatal(err)
		}
		b, err := appendAvro(nil, s, c.value)
		if err != nil {
			t.Errorf("%s of %v: %v", c.schema, c.value, err)
			continue
		}
		var got any
		if err := readAvro(newAvroReader(avroLimits.Freeze()), s, b, &got); err != nil {
			t.Errorf("%s of %v: %v", c.schema, c.value, err)
			continue
		}
		if r, ok := got.(interface{ RatString() string }); ok {
			got = r.RatString()
		}
		if !reflect.DeepEqual(got, c.want) && fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s of %v is read as %v (%T), want %v", c.schema, c.value, got, got, c.want)
		}
	}
}

func TestWriterErrors(t *testing.T) {
	for want, w := range map[string]Writing{
		"cannot parse":              {Kind: "avro", Schema: `{"type": "rec`},
		"the schema is a string":    {Kind: "avro", Schema: `"string"`},
		"no message shop.None":      {Kind: "protobuf", Schema: orderProto, Message: "shop.None"},
		"no schema is given":        {Kind: "avro", Existing: true},
		"syntax error":              {Kind: "protobuf", Schema: "syntax = \"proto3\"; messag X {}"},
		"the schema has no message": {Kind: "protobuf", Schema: "syntax = \"proto3\";"},
	} {
		if _, err := NewWriter(w); err == nil {
			t.Errorf("%+v is accepted, want %q", w, want)
		}
	}
	f := newRegistry(t)
	for want, c := range map[string]struct {
		w    Writing
		kind string
	}{
		"subject nothing-value": {Writing{Kind: "avro", Topic: "nothing"}, "confluent"},
		"of subject new-value":  {Writing{Kind: "avro", Topic: "new", Schema: orderSchema, Existing: true}, "confluent"},
		"no schemas of protobu": {Writing{Kind: "protobuf", Topic: "new", Schema: orderProto}, "cloudera"},
		"needs the name of the": {Writing{Kind: "avro", Topic: "new", Strategy: "record"}, "confluent"},
	} {
		w, err := NewWriter(c.w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Open(t.Context(), f.options(c.kind)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// registryFake is a registry in this process that takes schemas, Confluent's and Cloudera's at once.
type registryFake struct {
	srv      *httptest.Server
	subjects map[string]int // ids by kind and subject
	texts    map[int]confluentSchema
}

func newRegistry(t *testing.T) *registryFake {
	f := &registryFake{subjects: map[string]int{}, texts: map[int]confluentSchema{}}
	f.srv = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.srv.Close)
	return f
}

func (f *registryFake) options(kind string) func(string) (string, bool) {
	all := map[string]string{optURLs: f.srv.URL, optKind: kind}
	return func(name string) (string, bool) { v, ok := all[name]; return v, ok }
}

func (f *registryFake) serve(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var in struct {
		confluentSchema
		Name string `json:"name"`
		Text string `json:"schemaText"`
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
	}
	add := func(key string, s confluentSchema) int {
		id := len(f.texts) + 1
		f.subjects[key], f.texts[id] = id, s
		return id
	}
	version := func(id int) clouderaVersion {
		return clouderaVersion{ID: int64(id), Version: id, Text: f.texts[id].Schema}
	}
	find := func(key string) int {
		id := f.subjects[key]
		if id == 0 {
			w.WriteHeader(http.StatusNotFound)
		}
		return id
	}
	switch {
	case path[0] == "schemas":
		var id int
		fmt.Sscan(path[2], &id)
		answer(f.texts[id])
	case path[0] == "subjects" && r.Method == http.MethodPost && len(path) == 3:
		answer(map[string]int{"id": add("confluent"+path[1], in.confluentSchema)})
	case path[0] == "subjects":
		if id := find("confluent" + path[1]); id > 0 {
			s := f.texts[id]
			s.ID = int64(id)
			answer(s)
		}
	case r.Method == http.MethodPost && len(path) == 4:
		if _, ok := f.subjects["cloudera"+in.Name]; ok {
			w.WriteHeader(http.StatusConflict)
			return
		}
		answer(1)
	case r.Method == http.MethodPost:
		answer(add("cloudera"+path[4], confluentSchema{Schema: in.Text}))
	case path[4] == "versionsById":
		var id int
		fmt.Sscan(path[5], &id)
		answer(version(id))
	case len(path) == 6:
		if id := find("cloudera" + path[4]); id > 0 {
			answer(map[string]any{"entities": []clouderaVersion{version(id)}})
		}
	default:
		if id := find("cloudera" + path[4]); id > 0 {
			answer(version(id))
		}
	}
}
