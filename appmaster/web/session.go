package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
)

// Session is what the dashboard knows of whoever looks at it.
type Session struct {
	User  string   `json:"user,omitempty"` // as far as it is known
	May   []string `json:"may"`            // view, modify
	Token string   `json:"token"`          // goes into the body of each action
}

// actionToken is what an action's body has to carry: only who can read an answer of ours knows it, so that a page of
// another site, which can have a browser send requests but not see the answers, can't act.
func (s *Server) actionToken(user string) string {
	mac := hmac.New(sha256.New, s.token[:])
	mac.Write([]byte("action\x00" + user))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	c, _ := s.who(r)
	me := Session{User: c.user, May: []string{"view"}}
	if c.modify {
		me.May, me.Token = append(me.May, "modify"), s.actionToken(c.user)
	}
	reply(w, http.StatusOK, me)
}

// maxAction bounds the body of an action.
const maxAction = 64 << 10

// action lets an action through that carries the application's token in its header or the action token in its body.
func (s *Server) action(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := proven(r)
		if p != nil && !p.modify {
			fail(w, http.StatusForbidden, "%s may look at this application but not change it", p.user)
			return
		}
		if p == nil && !s.bearer(r) {
			var body struct{ Token string }
			data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAction))
			c, _ := s.who(r)
			if !c.modify {
				fail(w, http.StatusForbidden, "%s may look at this application but not change it", c.user)
				return
			}
			if err != nil || json.Unmarshal(data, &body) != nil || !hmac.Equal([]byte(body.Token), []byte(s.actionToken(c.user))) {
				fail(w, http.StatusForbidden, `this needs the token of api/session in its body: {"token":"…"}`)
				return
			}
		}
		next(w, r)
	}
}
