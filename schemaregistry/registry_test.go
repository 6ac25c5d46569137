package schemaregistry

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/heddle-stream/heddle/internal/flow"
)

// fake is a registry in this process.
type fake struct {
	schemas  map[string]confluentSchema // by path
	auth     string                     // wanted; "": any
	asked    atomic.Int64
	failing  atomic.Bool
	srv      *httptest.Server
	cloudera bool
}

func newFake(t *testing.T) *fake {
	f := &fake{schemas: map[string]confluentSchema{}}
	f.srv = httptest.NewTLSServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.srv.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.asked.Add(1)
	switch s, ok := f.schemas[r.URL.EscapedPath()]; {
	case f.failing.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
	case f.auth != "" && r.Header.Get("Authorization") != f.auth:
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error_code":401,"message":"who are you"}`)
	case r.Method == http.MethodPost:
		var in confluentSchema
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		f.schemas["/schemas/ids/77"] = in
		fmt.Fprint(w, `{"id":77}`)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error_code":40403,"message":"Schema not found"}`)
	case f.cloudera:
		_ = json.NewEncoder(w).Encode(map[string]any{"schemaText": s.Schema})
	default:
		_ = json.NewEncoder(w).Encode(s)
	}
}

// options are those of a client of the fake.
func (f *fake) options(t *testing.T, more ...string) func(string) (string, bool) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{optURLs: "https://127.0.0.1:1, " + f.srv.URL + "/", optCA: ca}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return func(name string) (string, bool) {
		v, ok := all[name]
		return v, ok
	}
}

type click struct {
	User string    `avro:"user"`
	N    int64     `avro:"n"`
	Note *string   `avro:"note"`
	At   time.Time `avro:"at"`
}

const clickSchema = `{"type":"record","name":"Click","fields":[{"name":"user","type":"string"},{"name":"n","type":"long"},
{"name":"note","type":["null","string"],"default":null},{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}}]}`

func open[T any](t *testing.T, f flow.Opener[T], option func(string) (string, bool)) flow.Format[T] {
	t.Helper()
	o, err := f.Open(t.Context(), option)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestAvro writes records by a schema that it registers, and reads them back as structs and as documents.
func TestAvro(t *testing.T) {
	f := newFake(t)
	f.auth = "Basic dXNlcjpodXNo"
	option := f.options(t, optUser, "user", optPassword, "hush")
	note := "hi"
	want := []click{{"a", 1, nil, time.UnixMilli(1000).UTC()}, {"b", -2, &note, time.UnixMilli(2000).UTC()}}
	w := open(t, flow.Opener[click](Avro[click]().Schema("clicks-value", clickSchema)), option)
	var m flow.Messages
	if err := w.Encode(&m, want); err != nil {
		t.Fatal(err)
	}
	r := open(t, flow.Opener[click](Avro[click]()), option)
	before := f.asked.Load()
	for range 3 {
		got, err := r.Decode(nil, &m, 0)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if n := f.asked.Load() - before; n != 1 {
		t.Errorf("the registry was asked %d times for one schema", n)
	}
	decode, err := NewDocuments("avro").Open(t.Context(), option)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := decode(m.Value(1))
	if err != nil || doc["user"] != "b" || doc["n"] != int64(-2) || !reflect.DeepEqual(doc["at"], want[1].At) {
		t.Errorf("got %#v, %v", doc, err)
	}
	if s := fmt.Sprint(doc["note"]); s != "hi" {
		t.Errorf("a field that may be null is %#v", doc["note"])
	}
	for _, bad := range []string{"", "x", "\x00\x00\x00\x00\x4d", "\x01aaaaaaaaaaaa", "\x00\x00\x00\x00\x4d\xff\xff\xff\xff\xff\xff\xff\xff\x7f"} {
		if _, err := decode([]byte(bad)); err == nil {
			t.Errorf("%q was decoded", bad)
		}
	}
}

// TestOutage: known schemas outlive the registry; an unknown one is waited for, and is then no fault of the message.
func TestOutage(t *testing.T) {
	f := newFake(t)
	f.schemas["/schemas/ids/5"] = confluentSchema{Schema: clickSchema}
	f.schemas["/schemas/ids/6"] = confluentSchema{Schema: clickSchema}
	format := Avro[click]()
	r := open(t, flow.Opener[click](format), f.options(t))
	format.registry.client.patience = 300 * time.Millisecond
	message := func(id byte) *flow.Messages {
		b := append([]byte{0, 0, 0, 0, id}, "\x02a\x04\x00\xd0\x0f"...)
		return &flow.Messages{Buf: b, Values: []flow.Span{{Off: 0, Len: int32(len(b))}}}
	}
	if got, err := r.Decode(nil, message(5), 0); err != nil || got[0].N != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	f.failing.Store(true)
	if _, err := r.Decode(nil, message(5), 0); err != nil {
		t.Errorf("a known schema: %v", err)
	}
	_, err := r.Decode(nil, message(6), 0)
	if away, ok := errors.AsType[*UnavailableError](err); !ok || !away.Fatal() {
		t.Errorf("an unknown schema: %v", err)
	}
	f.failing.Store(false)
	if _, err := r.Decode(nil, message(6), 0); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	_, err = r.Decode(nil, message(9), 0)
	if _, ok := errors.AsType[*UnavailableError](err); err == nil || ok || !strings.Contains(err.Error(), "Schema not found") {
		t.Errorf("a schema that does not exist: %v", err)
	}
}

// TestReferences: schemas that a schema needs are got too, in whatever order.
func TestReferences(t *testing.T) {
	f := newFake(t)
	f.schemas["/schemas/ids/1"] = confluentSchema{Schema: `{"type":"record","name":"Outer","fields":[{"name":"mid","type":"Mid"}]}`, References: []reference{{"Mid", "mid", 2}}}
	f.schemas["/subjects/mid/versions/2"] = confluentSchema{Schema: `{"type":"record","name":"Mid","fields":[{"name":"in","type":"Inner"}]}`, References: []reference{{"Inner", "a/b", 1}}}
	f.schemas["/subjects/a%2Fb/versions/1"] = confluentSchema{Schema: `{"type":"record","name":"Inner","fields":[{"name":"x","type":"int"}]}`}
	f.schemas["/schemas/ids/2"] = confluentSchema{Kind: "PROTOBUF", Schema: `syntax = "proto3"; import "inner.proto"; import "google/protobuf/timestamp.proto";
message First {} message Outer { message Deep { Inner in = 1; repeated int64 ns = 2; map<string, int32> by = 3; google.protobuf.Timestamp at = 4; enum E { A = 0; B = 1; } E e = 5; } }`,
		References: []reference{{"inner.proto", "inner", 1}}}
	f.schemas["/subjects/inner/versions/1"] = confluentSchema{Kind: "PROTOBUF", Schema: `syntax = "proto3"; message Inner { string s = 1; }`}
	decode, err := NewDocuments("avro").Open(t.Context(), f.options(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := decode([]byte{0, 0, 0, 0, 1, 14}); err != nil || fmt.Sprint(doc) != "map[mid:map[in:map[x:7]]]" {
		t.Errorf("avro: %v, %v", doc, err)
	}
	if decode, err = NewDocuments("protobuf").Open(t.Context(), f.options(t)); err != nil {
		t.Fatal(err)
	}
	frame := appendPath(appendFrame(nil, 2), []int{1, 0})
	doc, err := decode(append(frame, "\x0a\x03\x0a\x01z\x12\x02\x01\x02\x1a\x05\x0a\x01k\x10\x09\x22\x02\x08\x05\x28\x01"...))
	if want := "map[at:1970-01-01 00:00:05 +0000 UTC by:map[k:9] e:B in:map[s:z] ns:[1 2]]"; err != nil || fmt.Sprint(doc) != want {
		t.Errorf("protobuf: %v, %v, want %s", doc, err, want)
	}
	if _, err := decode(appendPath(appendFrame(nil, 2), []int{1, 4})); err == nil {
		t.Error("a message that the schema does not have was decoded")
	}
	if _, err := decode([]byte{0, 0, 0, 0, 1, 0}); err == nil || !strings.Contains(err.Error(), "AVRO, not PROTOBUF") {
		t.Errorf("a schema of another kind: %v", err)
	}
}

func TestProtobuf(t *testing.T) {
	f := newFake(t)
	f.auth = "Bearer hush"
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.schemas["/subjects/d-value/versions/latest"] = confluentSchema{ID: 9, Kind: "PROTOBUF", Schema: `syntax = "proto3"; package google.protobuf; message Other {} message Duration { int64 seconds = 1; int32 nanos = 2; }`}
	option := f.options(t, optTokenFile, token)
	format := open(t, flow.Opener[*durationpb.Duration](Protobuf[*durationpb.Duration]().Subject("d-value")), option)
	var m flow.Messages
	if err := format.Encode(&m, []*durationpb.Duration{durationpb.New(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if id, rest, err := parseFrame(m.Value(0)); id != 9 || err != nil || rest[0] != 2 || rest[1] != 2 {
		t.Errorf("the frame is %x", m.Value(0))
	}
	got, err := format.Decode(nil, &m, 0)
	if err != nil || len(got) != 1 || !proto.Equal(got[0], durationpb.New(time.Minute)) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := Protobuf[*durationpb.Duration]().Subject("none").Open(t.Context(), option); err == nil || !strings.Contains(err.Error(), "subject none") {
		t.Errorf("a subject that does not exist: %v", err)
	}
}

func TestCloudera(t *testing.T) {
	f := newFake(t)
	f.cloudera = true
	f.schemas["/api/v1/schemaregistry/schemas/versionsById/3"] = confluentSchema{Schema: `{"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}`}
	decode, err := NewDocuments("avro").Open(t.Context(), f.options(t, optKind, "cloudera"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][]byte{{3, 0, 0, 0, 3, 14}, {2, 0, 0, 0, 0, 0, 0, 0, 3, 14}} {
		if doc, err := decode(v); err != nil || doc["x"] != 7 {
			t.Errorf("%x: %v, %v", v, doc, err)
		}
	}
}

func TestClientErrors(t *testing.T) {
	f := newFake(t)
	f.auth = "Basic x"
	format := Avro[click]().Schema("s", clickSchema)
	_, err := format.Open(t.Context(), f.options(t, optUser, "u", optPassword, "hush"))
	if err == nil || !strings.Contains(err.Error(), "who are you") || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
	for want, more := range map[string][]string{
		"no schema registry is given":    {optURLs, ""},
		"no URL, or holds a password":    {optURLs, "https://u:hush@x"},
		"want confluent or cloudera":     {optKind, "glue"},
		"set but no password":            {optUser, "u"},
		"want one of them":               {optUser, "u", optToken, "hush"},
		"only one is set":                {optCert, "c"},
		"cannot read schema-registry.ca": {optCA, "/does/not/exist"},
	} {
		if _, err := newClient(f.options(t, more...)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want %q", more, err, want)
		}
	}
	if _, err := Avro[click]().Schema("s", "{").Open(context.Background(), f.options(t)); err == nil {
		t.Error("a bad schema is taken")
	}
	if err := Avro[click]().Encode(nil, nil); err == nil {
		t.Error("a format works outside of a job")
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 4, 2, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, rest, err := parseFrame(b)
		if err != nil {
			return
		}
		if path, rest, err := parsePath(rest); err == nil && (len(path) == 0 || len(rest) > len(b)) {
			t.Errorf("%x: %v, %x", b, path, rest)
		}
	})
}
