package doctor

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
)

// httpFaults are those of HDFS over HTTP.
func httpFaults() []fault {
	const there = `{"FileStatus":{"type":"DIRECTORY"}}`
	exception := func(class string) string {
		return fmt.Sprintf(`{"RemoteException":{"exception":%q,"message":"so it is"}}`, class)
	}
	// by answers a question for a path, "" for the root, by its status and body.
	by := func(answer func(name string) (int, string)) func(*world) {
		return func(w *world) {
			s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if _, password, _ := r.BasicAuth(); password != w.cfg.HTTPPassword {
					w.t.Errorf("asked with the password %q", password)
				}
				status, body := answer(strings.Trim(strings.TrimPrefix(r.URL.Path, "/webhdfs/v1"), "/"))
				rw.WriteHeader(status)
				fmt.Fprint(rw, body)
			}))
			w.t.Cleanup(s.Close)
			w.cfg.HTTP = map[string]string{"heddle.hdfs.http-uri": s.URL}
		}
	}
	root := func(status int, body string) func(*world) {
		return by(func(string) (int, string) { return status, body })
	}
	staging := func(status int, body string) func(*world) {
		return by(func(name string) (int, string) {
			if name != "" {
				return status, body
			}
			return http.StatusOK, there
		})
	}
	uri := func(f func(*world) string) func(*world) {
		return func(w *world) { w.cfg.HTTP = map[string]string{"heddle.hdfs.http-uri": f(w)} }
	}
	return []fault{
		{"by RPC", func(*world) {}, "hdfs-http", "", verdict.Skipped, "not set"},
		{"HTTP works", root(200, there), "hdfs-http", "", verdict.Pass, "answers, and takes our proof; /staging/alice is there"},
		{"HTTP in place of RPC", func(w *world) { root(200, there)(w); w.site["fs.defaultFS"] = "hdfs://" + closed(w.t) }, "namenode", "nn-unreachable", verdict.Warn, "hdfs.http-uri stands in for it"},
		{"no address", uri(func(*world) string { return "ftp://gateway" }), "conf", "http-options", "", "neither webhdfs nor an address"},
		{"no password", func(w *world) { w.cfg.HTTPErr = errors.New("hdfs.http-user needs a password") }, "conf", "http-options", "", "needs a password"},
		{"gateway down", uri(func(w *world) string { return "http://" + closed(w.t) }), "hdfs-http", "http-unreachable", "", "refused"},
		{"NameNodes' web service down", func(w *world) {
			w.site["dfs.namenode.http-address"] = closed(w.t)
			uri(func(*world) string { return "webhdfs" })(w)
		}, "hdfs-http", "http-unreachable", "", "refused"},
		{"one of two gateways", func(w *world) { root(200, there)(w); w.cfg.HTTP["heddle.hdfs.http-uri"] += ",http://" + closed(w.t) }, "hdfs-http", "http-unreachable", verdict.Warn, "answers"},
		{"gateway untrusted", uri(func(w *world) string {
			s := httptest.NewTLSServer(http.NotFoundHandler())
			w.t.Cleanup(s.Close)
			return s.URL
		}), "hdfs-http", "tls-untrusted", "", "certificate"},
		{"wrong password at Knox", func(w *world) {
			s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusUnauthorized) }))
			w.t.Cleanup(s.Close)
			trust(w, s)
			w.cfg.HTTP, w.cfg.HTTPPassword = map[string]string{"heddle.hdfs.http-uri": s.URL, "heddle.hdfs.http-user": "alice"}, "hush"
		}, "hdfs-http", "http-login", "", "401"},
		{"proof not taken", root(401, "<html>"), "hdfs-http", "http-login", "", "401"},
		{"gateway may not act for us", root(403, exception("AuthorizationException")), "hdfs-http", "http-denied", "", "so it is"},
		{"gateway lets us do nothing", root(403, "<html>"), "hdfs-http", "http-denied", "", "403"},
		{"NameNode in trouble", root(500, exception("NullPointerException")), "hdfs-http", "http-refused", "", "so it is"},
		{"another service", root(404, "<html>"), "hdfs-http", "http-strange", "", "404"},
		{"a page for people", root(200, "<html>"), "hdfs-http", "http-strange", "", "cannot read the answer"},
		{"NameNodes on standby over HTTP", root(403, exception("StandbyException")), "hdfs-http", "http-standby", "", "no NameNode is active"},
		{"staging not to be seen", staging(403, exception("AccessControlException")), "hdfs-http", "http-staging-denied", "", "so it is"},
		{"no staging over HTTP", staging(404, exception("FileNotFoundException")), "hdfs-http", "http-staging", verdict.Warn, "nothing is there of /staging/alice"},
		{"nothing after HTTP failed", root(404, "<html>"), "staging", "", verdict.Skipped, "needs HDFS over HTTP"},
	}
}

// trust has the authority of a server trusted.
func trust(w *world, s *httptest.Server) {
	store := w.write("trust.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	w.write("ssl-client.xml", []byte("<configuration><property><name>ssl.client.truststore.location</name><value>"+store+"</value></property></configuration>"))
}
