package hdfs

import (
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Where a Knox has WebHDFS, and where it sends for data: to itself (its service definition of webhdfs, 2.4.0).
const (
	knoxPath = "/gateway/default/webhdfs/v1"
	knoxData = "/gateway/default/webhdfs/data/v1"
)

// behindKnox puts a Knox in front of the file system. It wants alice's password with every request, also where it has sent us, hides the addresses of DataNodes in an encrypted query,
// takes no change without a header that pages of other sites can't send, and answers for itself in HTML.
func (f *fakeWeb) behindKnox() *fakeWeb {
	f.knox = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := func(status int, header ...string) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>")
		}
		user, password, _ := r.BasicAuth()
		path, named := strings.CutPrefix(r.URL.EscapedPath(), knoxPath)
		query := r.URL.RawQuery
		if data, ok := strings.CutPrefix(r.URL.EscapedPath(), knoxData+"/webhdfs/v1"); ok {
			b, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("_"))
			path, query, named = data, string(b), err == nil
		}
		switch {
		case user != "alice" || password != "hush":
			page(http.StatusUnauthorized, "WWW-Authenticate", `BASIC realm="application"`)
			return
		case !named:
			page(http.StatusNotFound)
			return
		case r.Method != http.MethodGet && r.Header.Get("X-XSRF-Header") == "":
			page(http.StatusBadRequest)
			return
		}
		inner := httptest.NewRequest(r.Method, "/webhdfs/v1"+path+"?"+query, r.Body)
		q := inner.URL.Query()
		q.Set("delegation", secretToken) // it has proofs of its own
		inner.URL.RawQuery = q.Encode()
		inner.Header.Set("Content-Type", r.Header.Get("Content-Type"))
		rec := httptest.NewRecorder()
		f.serve(rec, inner)
		maps.Copy(w.Header(), rec.Header())
		if to, err := url.Parse(rec.Header().Get("Location")); err == nil && to.Host != "" {
			w.Header().Set("Location", f.knox.URL+knoxData+to.EscapedPath()+"?_="+base64.RawURLEncoding.EncodeToString([]byte(to.RawQuery)))
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}))
	f.t.Cleanup(f.knox.Close)
	return f
}

// viaKnox is how the Knox is spoken to with a password.
func (f *fakeWeb) viaKnox(password string) Web {
	return Web{Bases: []string{f.knox.URL + knoxPath}, Attempts: 2, Authorize: func(r *http.Request) error {
		r.SetBasicAuth("alice", password)
		return nil
	}}
}

// TestKnox tells what Knox itself says apart from what the NameNode says behind it.
func TestKnox(t *testing.T) {
	fake := newFake(t, false).behindKnox()
	fake.denied = "/user/bob"
	for name, x := range map[string]struct {
		web     Web
		path    string
		trouble Trouble
		says    string
	}{
		"well":             {fake.viaKnox("hush"), "/user", NoTrouble, ""},
		"another password": {fake.viaKnox("SECRET"), "/user", Denied, "HTTP status 401"},
		"another topology": {func() Web {
			w := fake.viaKnox("hush")
			w.Bases[0] = strings.Replace(w.Bases[0], "/default/", "/none/", 1)
			return w
		}(), "/user", NoTrouble, "compare the path of its address"},
		"the NameNode denies":   {fake.viaKnox("hush"), "/user/bob", Denied, "Permission denied: user=alice"},
		"the NameNode has none": {fake.viaKnox("hush"), "/user/none", NotFound, "File does not exist"},
	} {
		f, err := Open(Config{NameNodes: []string{"127.0.0.1:1"}, User: "alice", Web: func([]string) (Web, error) { return x.web, nil }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Stat(x.path)
		if (err == nil) != (x.says == "") || err != nil && (!strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), "SECRET")) || TroubleOf(err) != x.trouble {
			t.Errorf("%s: %v (%s)", name, err, TroubleOf(err))
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
