package web

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/profile"
)

// profiler is the view, if profiles can be taken, and if the caller may: a profile tells what a program does, so it takes the right to change it.
func (s *Server) profiler(w http.ResponseWriter, r *http.Request) (appmaster.Profiler, bool) {
	view, ok := s.view.(appmaster.Profiler)
	if !ok {
		fail(w, http.StatusNotImplemented, "no profiles can be taken of this application")
		return nil, false
	}
	if c, _ := s.who(r); !c.modify {
		fail(w, http.StatusForbidden, "%s may look at this application but not take profiles of it", c.user)
		return nil, false
	}
	return view, true
}

// takeProfile begins a profile. It does not wait: YARN's proxy gives up requests that take long.
func (s *Server) takeProfile(w http.ResponseWriter, r *http.Request) {
	view, ok := s.profiler(w, r)
	if !ok {
		return
	}
	q := r.URL.Query()
	kind, d := profile.Kind(q.Get("kind")), time.Duration(0)
	if text := q.Get("for"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			fail(w, http.StatusBadRequest, "%q is no duration such as 30s", text)
			return
		}
	}
	s.cfg.Logger.Info("asked for a profile", "of", q.Get("of"), "kind", kind, "from", r.RemoteAddr)
	p, err := view.TakeProfile(q.Get("of"), kind, d)
	switch {
	case errors.Is(err, appmaster.ErrNoProcess):
		fail(w, http.StatusNotFound, "%v", err)
	case errors.Is(err, appmaster.ErrProfiling):
		fail(w, http.StatusConflict, "%v", err)
	case errors.Is(err, appmaster.ErrNoProfiles):
		fail(w, http.StatusForbidden, "%v", err)
	case err != nil:
		fail(w, http.StatusBadRequest, "%v", err)
	default:
		reply(w, http.StatusAccepted, p)
	}
}

func (s *Server) profiles(w http.ResponseWriter, r *http.Request) {
	if view, ok := s.profiler(w, r); ok {
		reply(w, http.StatusOK, list(view.Profiles()))
	}
}

// profileData gives a profile out as a file.
func (s *Server) profileData(w http.ResponseWriter, r *http.Request) {
	view, ok := s.profiler(w, r)
	if !ok {
		return
	}
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	var data []byte
	if err == nil {
		data = view.ProfileData(id)
	}
	if data == nil {
		fail(w, http.StatusNotFound, "there is no profile %q, or not yet, or not any more", r.PathValue("id"))
		return
	}
	name := "profile"
	for _, p := range view.Profiles() {
		if p.ID == id {
			name = fmt.Sprintf("%s-%s-%s.%s", word(s.view.Snapshot().App), word(p.Of), p.Kind, p.Kind.Ext())
		}
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client is gone if this fails
}

// word is a text that is safe in a file's name.
func word(text string) string {
	out := []byte(text)
	for i, c := range out {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			out[i] = '_'
		}
	}
	return string(out)
}
