package appmaster

import (
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// TokenUpdate brings news of an application's tokens for services outside.
type TokenUpdate struct {
	Credentials []byte      // fresh ones for all agents, as they understand them; nil: they keep those they have
	Held        []Token     // what the application has now
	Push        *PushResult // what became of those that somebody handed in; nil: nothing new
	Warning     string      // "": none
}

// Token is a token for a service outside, as people see it. It holds no secret.
type Token struct {
	Kind    string    `json:"kind"`
	Service string    `json:"service"`
	Owner   string    `json:"owner,omitempty"`
	Renewer string    `json:"renewer,omitempty"`
	Source  string    `json:"source,omitempty"` // submission, keytab (the ApplicationMaster fetched it) or push
	Issued  time.Time `json:"issued,omitzero"`
	Max     time.Time `json:"max,omitzero"`    // when it ends for good, whoever renews it
	Until   time.Time `json:"until,omitzero"`  // when it ends as things are; absent: that is not known
	Minor   bool      `json:"minor,omitempty"` // the job goes on when it has ended
}

// Tokens are those of an application for services outside.
type Tokens struct {
	Version uint64      `json:"version"` // of the latest that agents were given; 0: they have those they were started with
	Held    []Token     `json:"held"`
	Push    *PushResult `json:"push,omitempty"` // the latest
}

// PushResult is what became of tokens that somebody handed in.
type PushResult struct {
	ID      string    `json:"id"` // as the sender called it
	Time    time.Time `json:"time"`
	Taken   []string  `json:"taken,omitempty"`   // services whose tokens were taken
	Left    []string  `json:"left,omitempty"`    // services whose present tokens are good for as long
	Refused string    `json:"refused,omitempty"` // why nothing was taken
	Version uint64    `json:"version"`           // that agents have when they use what was taken
}

// tokens are what is known of tokens, and the latest that agents were given.
type tokens struct {
	version     uint64 // 0: those they started with
	credentials []byte
	view        *Tokens // nil: nobody told of any. It is replaced, never changed
}

// renew takes news of tokens, and hands fresh ones to all agents.
func (m *master) renew(news TokenUpdate, open bool) {
	if !open {
		m.cfg.Tokens = nil // nobody sends any more
		return
	}
	if news.Credentials != nil {
		m.tokens.version++
		m.tokens.credentials = news.Credentials
		n := 0
		for _, a := range m.agents {
			if a.session != nil && a.session.accepted {
				m.handTokens(a)
				n++
			}
		}
		m.log.Info("handed fresh tokens to the agents", "version", m.tokens.version, "agents", n)
	}
	view := &Tokens{Version: m.tokens.version, Held: slices.Clone(news.Held)}
	if m.tokens.view != nil {
		view.Push = m.tokens.view.Push
	}
	if news.Push != nil {
		p := *news.Push
		p.Version, view.Push = m.tokens.version, &p
	}
	m.tokens.view, m.dirty = view, true
	if news.Warning != "" {
		m.warn(news.Warning)
	}
}

// handTokens gives the latest tokens to an agent that may have older ones.
func (m *master) handTokens(a *agentRecord) {
	if m.tokens.version == 0 {
		return
	}
	a.session.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Tokens{Tokens: &ctlpb.Tokens{Version: m.tokens.version, Credentials: m.tokens.credentials}}})
}

// tookTokens notes which tokens an agent says it has.
func (m *master) tookTokens(a *agentRecord, agent string, version uint64) {
	if version > a.tokens {
		m.log.Debug("an agent uses fresh tokens", "agent", agent, "version", version)
	}
	if version != a.tokens {
		a.tokens, m.dirty = version, true
	}
}

// First is the token that ends first, of those that the job needs and whose end is known; nil: there is none.
func (t *Tokens) First() *Token {
	var first *Token
	if t == nil {
		return nil
	}
	for i := range t.Held {
		if h := &t.Held[i]; !h.Minor && !h.Until.IsZero() && (first == nil || h.Until.Before(first.Until)) {
			first = h
		}
	}
	return first
}

// Awaited are the agents that are there and do not use a version of tokens yet.
func (s *Snapshot) Awaited(version uint64) []string {
	var out []string
	for _, a := range s.Agents {
		if a.State == "alive" && a.Tokens < version {
			out = append(out, a.ID)
		}
	}
	return out
}

// Left says how much longer a token is good, for people.
func (t *Token) Left(now time.Time) string {
	left := t.Until.Sub(now)
	switch {
	case t.Until.IsZero():
		return "-"
	case left <= 0:
		return "ended"
	case left >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", left.Hours()/24)
	case left >= time.Hour:
		return left.Round(time.Minute).String()
	}
	return left.Round(time.Second).String()
}
