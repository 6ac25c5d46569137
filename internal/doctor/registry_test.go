package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/flow"
)

// registryFaults are those of a schema registry that has the subject in-value and wants a token.
func registryFaults() []fault {
	with := func(needs []flow.Need, status int, options ...string) func(*world) {
		return func(w *world) {
			s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case r.Header.Get("Authorization") != "Bearer good":
					rw.WriteHeader(http.StatusUnauthorized)
				case status != 0:
					rw.WriteHeader(status)
				case strings.Contains(r.URL.Path, "/in-value/"), r.URL.Path == "/schemas/types":
					fmt.Fprint(rw, `{}`)
				default:
					rw.WriteHeader(http.StatusNotFound)
				}
			}))
			w.t.Cleanup(s.Close)
			all := map[string]string{"schema-registry.urls": "http://" + closed(w.t) + "," + s.URL, "schema-registry.token": "good"}
			for i := 0; i < len(options); i += 2 {
				all["schema-registry."+options[i]] = options[i+1]
			}
			w.cfg.Hadoop, w.cfg.Needs = false, needs
			w.cfg.Registry = func(name string) (string, bool) { v, ok := all[name]; return v, ok && v != "" }
		}
	}
	subject := func(name string, write bool) []flow.Need {
		return []flow.Need{{Kind: flow.NeedSubject, Name: name, Read: true, Write: write}}
	}
	ofTopic := func(topic string) []flow.Need {
		return []flow.Need{{Kind: flow.NeedSubject, Read: true}, {Kind: flow.NeedTopic, Name: topic, Read: true}}
	}
	return []fault{
		{"registry works", with(subject("in-value", false), 0), "schema-registry", "", verdict.Pass, "has schemas of in-value"},
		{"registry, nothing named", with(nil, 0), "schema-registry", "", verdict.Pass, "answers"},
		{"registry, of a topic", with(ofTopic("in"), 0), "schema-registry", "", verdict.Pass, "in-value"},
		{"registry, of a new topic", with(ofTopic("new"), 0), "schema-registry", "subject-missing", verdict.Warn, "new-value"},
		{"registry, to be written", with(subject("new-value", true), 0), "schema-registry", "", verdict.Pass, "is new"},
		{"registry, no schema to write by", with(subject("new-value", false), 0), "schema-registry", "subject-missing", "", "by which the job is to write"},
		{"registry down", func(w *world) {
			with(nil, 0)(w)
			at := closed(w.t)
			w.cfg.Registry = func(name string) (string, bool) { return "http://" + at, name == "schema-registry.urls" }
		}, "schema-registry", "registry-unreachable", "", "refused"},
		{"registry's token", with(nil, 0, "token", "bad"), "schema-registry", "registry-login", "", "401"},
		{"registry denies", with(subject("in-value", false), http.StatusForbidden), "schema-registry", "subject-denied", "", "in-value"},
		{"registry fails", with(nil, http.StatusInternalServerError), "schema-registry", "registry-unreachable", "", "500"},
		{"registry, options", with(nil, 0, "kind", "other"), "schema-registry", "registry-options", "", "other"},
	}
}
