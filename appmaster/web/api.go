package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/logs"
	"github.com/heddle-stream/heddle/internal/profile"
)

// route is a request of the API, for the server and for the document that describes it.
type route struct {
	method, path, summary string
	code                  int
	answer                any // a value of the type of the answer
	handle                http.HandlerFunc
	query                 []param
}

// param is a parameter of a request's query.
type param struct {
	name, doc string
	values    []string // that there are; nil: any
	needed    bool
}

func (s *Server) routes() []route {
	get := func(path, summary string, answer any, f http.HandlerFunc) route {
		return route{http.MethodGet, path, summary, http.StatusOK, answer, f, nil}
	}
	of := func(f func(*appmaster.Snapshot) any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, f(s.view.Snapshot())) }
	}
	return []route{
		get("/api/job", "The whole state of the application at one moment.", appmaster.Snapshot{},
			of(func(v *appmaster.Snapshot) any { return v })),
		get("/api/vertices", "The vertices of the job graph, with their subtasks.", []appmaster.Vertex{},
			of(func(v *appmaster.Snapshot) any { return list(v.Vertices) })),
		get("/api/vertices/{id}", "One vertex.", appmaster.Vertex{}, s.vertex),
		get("/api/agents", "The agents, with their slots and figures.", []appmaster.Agent{},
			of(func(v *appmaster.Snapshot) any { return list(v.Agents) })),
		get("/api/slots", "The slots of all agents.", []appmaster.Slot{},
			of(func(v *appmaster.Snapshot) any { return slots(v) })),
		get("/api/containers", "The containers of agents, with their times, and of those that ended how; the latest 100 of these.", []appmaster.Container{},
			of(func(v *appmaster.Snapshot) any { return list(v.Held) })),
		get("/api/profiles", "Profiles under way and the latest that were taken. Wants the right to modify.", []appmaster.ProcessProfile{}, s.profiles),
		get("/api/configuration", "The options in force, secrets masked, with their origins.", []Option{}, s.configuration),
		get("/api/logs/{name}", "The last lines of the log of an agent, or of the appmaster.", Log{}, s.log),
		get("/api/session", "What the caller may do, and the token that the body of an action carries.", Session{}, s.session),
		get("/api/openapi.json", "This document.", map[string]any{}, s.openapi),
		{http.MethodPut, "/api/job/cancel", "Asks for the end of the job. The body is {\"token\": …} of /api/session, unless the request has the application's token.",
			http.StatusAccepted, Status{}, s.action(s.cancel), nil},
		{http.MethodPut, "/api/log-level", "Has a component (all, without one) log from a level on, for a while. The body is as for cancel.",
			http.StatusAccepted, Status{}, s.action(s.logLevel), logLevelQuery},
		{http.MethodPut, "/api/profiles", "Begins a profile of a process. When it is taken, /api/profiles/{id}/data gives it out, as a file. The body is as for cancel.",
			http.StatusAccepted, appmaster.ProcessProfile{}, s.action(s.takeProfile), profileQuery},
		{http.MethodPut, "/api/tokens", "Says that fresh delegation tokens are in the application's folder in HDFS. They themselves never come this way. The body is as for cancel.",
			http.StatusAccepted, Status{}, s.action(s.tokensThere), nil},
	}
}

// What actions take.
var (
	logLevelQuery = []param{
		{"component", "The component; all, without one.", logs.Components, false},
		{"level", "The level; default: as configured.", []string{"debug", "info", "warn", "error", "default"}, true},
		{"for", "How long, such as 10m; until the application ends, without it.", nil, false},
	}
	profileQuery = []param{
		{"of", "The process: an agent, or appmaster.", nil, true},
		{"kind", "What the profile shows.", []string{string(profile.CPU), string(profile.Heap), string(profile.Stacks), string(profile.Trace)}, true},
		{"for", "How long, such as 30s, for cpu and trace.", nil, false},
	}
)

// Log is the end of a log.
type Log struct {
	Lines []string `json:"lines"`
}

// Status is what became of an action.
type Status struct {
	Status string `json:"status"`
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.method+" "+r.path, r.handle)
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		if allowed := allowed(mux, r); allowed != "" {
			w.Header().Set("Allow", allowed)
			fail(w, http.StatusMethodNotAllowed, "there is no %s %s, only %s", r.Method, r.URL.Path, allowed)
			return
		}
		fail(w, http.StatusNotFound, "there is no %s %s", r.Method, r.URL.Path)
	})
	mux.HandleFunc("GET /api/profiles/{id}/data", s.profileData)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /ui/{file}", s.asset)
	return s.guard(mux)
}

// allowed are the methods that there are for the path of a request, of which the mux tells nothing where a pattern takes every method; "": none.
func allowed(mux *http.ServeMux, r *http.Request) string {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); strings.Contains(pattern, " ") {
			methods = append(methods, method)
		}
	}
	return strings.Join(methods, ", ")
}

// list makes an empty slice of none, since JSON's null is nobody's friend.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func slots(v *appmaster.Snapshot) []appmaster.Slot {
	out := []appmaster.Slot{}
	for _, a := range v.Agents {
		out = append(out, a.Slots...)
	}
	return out
}

func (s *Server) vertex(w http.ResponseWriter, r *http.Request) {
	vertices := s.view.Snapshot().Vertices
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || id < 0 || id >= len(vertices) {
		fail(w, http.StatusNotFound, "there is no vertex %q: the job has 0 to %d", r.PathValue("id"), len(vertices)-1)
		return
	}
	reply(w, http.StatusOK, vertices[id])
}

func (s *Server) configuration(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.Options == nil {
		fail(w, http.StatusNotFound, "this application does not show its configuration")
		return
	}
	reply(w, http.StatusOK, list(s.cfg.Options()))
}

func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Log == nil {
		fail(w, http.StatusNotFound, "the logs of this application are not on the ApplicationMaster's host")
		return
	}
	lines, err := s.cfg.Log(r.PathValue("name"))
	if err != nil {
		fail(w, http.StatusNotFound, "%v", err)
		return
	}
	reply(w, http.StatusOK, Log{list(lines)})
}

// tokensThere passes on that tokens were handed in.
func (s *Server) tokensThere(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.TokensThere == nil {
		fail(w, http.StatusNotImplemented, "this application needs no delegation tokens: the cluster does not demand Kerberos, or there is none")
		return
	}
	s.cfg.TokensThere()
	reply(w, http.StatusAccepted, Status{"looking"})
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) {
	s.cfg.Logger.Info("asked to cancel", "from", r.RemoteAddr)
	s.view.Cancel("asked for by the REST API")
	reply(w, http.StatusAccepted, Status{"canceling"})
}
