package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/internal/ship"
)

// zones is HDFS with an encryption zone at /zone, and a folder at /shut that may not be looked at.
func zones(t *testing.T) *hdfs.FS {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/webhdfs/v1")
		switch {
		case r.URL.Query().Get("op") == "GETSERVERDEFAULTS":
			fmt.Fprint(w, `{"FsServerDefaults":{}}`)
		case strings.HasPrefix(name, "/shut"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"RemoteException":{"exception":"AccessControlException","message":"no"}}`)
		case name == "/" || name == "/data" || name == "/zone" || name == "/user":
			fmt.Fprintf(w, `{"FileStatus":{"type":"DIRECTORY","encBit":%v}}`, name == "/zone")
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"RemoteException":{"exception":"FileNotFoundException","message":"none"}}`)
		}
	}))
	t.Cleanup(s.Close)
	f, err := hdfs.Open(hdfs.Config{NameNodes: []string{"nn:8020"}, Web: func([]string) (hdfs.Web, error) {
		return hdfs.Web{Bases: []string{s.URL + "/webhdfs/v1"}, Attempts: 1}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestKeyless: a key server that gives no token keeps those applications back that are known to need it, and warns the others.
func TestKeyless(t *testing.T) {
	f, conf := zones(t), hadoopConf(t, map[string]string{"fs.defaultFS": "hdfs://nn:8020"})
	need := func(name string, pattern bool) flow.Need {
		return flow.Need{Kind: flow.NeedPath, Name: name, Pattern: pattern, Read: true}
	}
	for name, x := range map[string]struct {
		root   string
		needs  []flow.Need
		of     string
		refuse string
		warn   string
	}{
		"nothing":          {"/user/alice/.heddle", []flow.Need{need("/local/zone", false), {Kind: flow.NeedTopic, Name: "hdfs:///zone"}}, "", "", "nothing that the job names is in one"},
		"staging":          {"/zone/staging", nil, "", "hdfs://nn:8020/zone/staging is in an encryption zone", ""},
		"input":            {"/user/alice/.heddle", []flow.Need{need("hdfs:///data/in", false), need("hdfs:///zone/in", false)}, "", "hdfs:///zone/in is in an encryption zone", ""},
		"pattern":          {"/user/alice/.heddle", []flow.Need{need("hdfs://nn:8020/zone/a*/b", true)}, "", "hdfs://nn:8020/zone is in an encryption zone", ""},
		"other pattern":    {"/user/alice/.heddle", []flow.Need{need("hdfs:///*.csv", true)}, "", "", "nothing that the job names"},
		"another's server": {"/zone/staging", nil, "hdfs://other:8020", "", "nothing that the job names"},
		"not to be seen":   {"/user/alice/.heddle", []flow.Need{need("hdfs:///shut/in", false)}, "", "", "whether hdfs:///shut/in is in one could not be seen"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			sub := &submission{s: &session{env: Env{Stderr: &said}}, h: &hadoop{conf: conf, user: "alice"}, store: &ship.Store{URI: "hdfs://nn:8020", Root: x.root}, fs: f, needs: x.needs}
			lack := &identity.KeyTokenError{Systems: []string{"hdfs://nn:8020"}, Err: errors.New("the key server refuses")}
			if x.of != "" {
				lack.Systems[0] = x.of
			}
			err := sub.keyless(t.Context(), lack)
			if e, ok := errors.AsType[*exitError](err); (err != nil) != (x.refuse != "") || err != nil && (!ok || e.code != exitPrecondition || !strings.Contains(err.Error(), x.refuse) || !strings.Contains(err.Error(), "the key server refuses")) {
				t.Errorf("%v; want %q", err, x.refuse)
			}
			if x.warn == "" && said.Len() > 0 || !strings.Contains(said.String(), x.warn) || x.warn != "" && !strings.HasPrefix(said.String(), "heddle: warning: the key server refuses; without it") {
				t.Errorf("warned %q; want %q", &said, x.warn)
			}
		})
	}
}

// TestWithoutKeys splits what a refresh came to, and knows whether an application has a key server's token.
func TestWithoutKeys(t *testing.T) {
	lack := &identity.KeyTokenError{Err: errors.New("no")}
	if keyless, other := withoutKeys(fmt.Errorf("so: %w", lack)); keyless == nil || other != nil {
		t.Errorf("a key server's: %v, %v", keyless, other)
	}
	if keyless, other := withoutKeys(errors.New("another")); keyless != nil || other == nil {
		t.Errorf("another: %v, %v", keyless, other)
	}
	if keyless, other := withoutKeys(nil); keyless != nil || other != nil {
		t.Errorf("none: %v, %v", keyless, other)
	}
	snap := &appmaster.Snapshot{Tokens: &appmaster.Tokens{Held: []appmaster.Token{{Kind: token.KindHDFS}}}}
	if holds(snap, token.KindKMS) || !holds(snap, token.KindHDFS) {
		t.Error("which tokens it has is not told")
	}
}
