// Package creds keeps account of an application's delegation tokens: what they say of themselves, until when they are good, which of two is better, and when
// it is time to warn of their end. It asks nobody and holds no clock.
package creds

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// Held is a token as people see it. It holds no secret.
type Held struct {
	Kind    string    `json:"kind"`
	Service string    `json:"service"`
	Owner   string    `json:"owner,omitempty"`
	Renewer string    `json:"renewer,omitempty"`
	Source  string    `json:"source,omitempty"` // where it came from: see Sources
	Issued  time.Time `json:"issued,omitzero"`
	Max     time.Time `json:"max,omitzero"`   // when it ends for good, whoever renews it
	Until   time.Time `json:"until,omitzero"` // when it ends as things are; zero: that is not known
}

// Sources of tokens.
const (
	Submitted = "submission" // they came with the application; the ResourceManager renews them
	Fetched   = "keytab"     // the ApplicationMaster fetched them itself
	Pushed    = "push"       // somebody handed them in
)

// Note is what is known of a token beside what it says itself.
type Note struct {
	Alias  string    `json:"alias"`
	Source string    `json:"source,omitempty"`
	Owner  string    `json:"owner,omitempty"`
	Issued time.Time `json:"issued,omitzero"`
	Max    time.Time `json:"max,omitzero"`
	Until  time.Time `json:"until,omitzero"` // when it ends unless somebody renews it; zero: not known, or it is renewed up to Max
}

// notesSecret is the name of notes among the secrets of credentials.
const notesSecret = "heddle.token-notes"

// WithNotes returns credentials that carry notes, in place of those there were.
func WithNotes(c token.Credentials, notes []Note) (token.Credentials, error) {
	data, err := json.Marshal(notes)
	if err != nil {
		return c, err
	}
	c.Secrets = append(slices.DeleteFunc(slices.Clone(c.Secrets), func(s token.Secret) bool { return s.Name == notesSecret }), token.Secret{Name: notesSecret, Value: data})
	return c, nil
}

// Notes are those that credentials carry.
func Notes(c token.Credentials) ([]Note, error) {
	data := c.Secret(notesSecret)
	if data == nil {
		return nil, nil
	}
	var out []Note
	err := json.Unmarshal(data, &out)
	return out, err
}

// Delegations are the delegation tokens among credentials: those of YARN's own protocols are left out.
func Delegations(c token.Credentials) []token.Named {
	var out []token.Named
	for _, t := range c.Tokens {
		switch t.Token.Kind {
		case token.KindAMRM, token.KindNM, token.KindContainer:
		default:
			out = append(out, t)
		}
	}
	return out
}

// Describe tells of the delegation tokens among credentials, as they say themselves and as notes say.
func Describe(c token.Credentials, notes []Note) []Held {
	var out []Held
	for _, t := range Delegations(c) {
		h := Held{Kind: t.Token.Kind, Service: t.Token.Service, Source: Submitted}
		if d, err := t.Token.Delegation(); err == nil {
			h.Owner, h.Renewer, h.Issued, h.Max = d.Owner, d.Renewer, d.Issued, d.Max
		}
		if i := slices.IndexFunc(notes, func(n Note) bool { return n.Alias == t.Alias }); i >= 0 {
			n := notes[i]
			h.Source, h.Owner, h.Until = cmp.Or(n.Source, h.Source), cmp.Or(n.Owner, h.Owner), n.Until
			if h.Max.IsZero() {
				h.Issued, h.Max = n.Issued, n.Max
			}
		}
		if h.Until.IsZero() || !h.Max.IsZero() && h.Max.Before(h.Until) {
			h.Until = h.Max
		}
		out = append(out, h)
	}
	slices.SortStableFunc(out, func(a, b Held) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Service, b.Service))
	})
	return out
}

// First is the token that ends first, of those whose end is known.
func First(held []Held) (first Held, ok bool) {
	for _, h := range held {
		if !h.Until.IsZero() && (!ok || h.Until.Before(first.Until)) {
			first, ok = h, true
		}
	}
	return first, ok
}

// NoteOf makes the note of a token from what it says itself.
func NoteOf(t token.Named, source string, until time.Time) Note {
	return Note{Alias: t.Alias, Source: source, Until: until}
}

// Choice is which of fresh tokens are better than those that are there.
type Choice struct {
	Take  token.Credentials // tokens only
	Notes []Note            // of those that are taken and of all others that stay
	Left  []Held            // fresh ones that end no later than those in their place
}

// Choose takes fresh tokens that end later than those in their places, or whose place is empty; all of them if force is set. A token whose
// end is not known is better than none, and worse than one whose end is.
func Choose(old token.Credentials, oldNotes []Note, fresh token.Credentials, freshNotes []Note, force bool) Choice {
	c := Choice{Notes: slices.Clone(oldNotes)}
	for _, t := range Delegations(fresh) {
		its := Describe(token.Credentials{Tokens: []token.Named{t}}, freshNotes)[0]
		if i := slices.IndexFunc(old.Tokens, func(o token.Named) bool { return o.Alias == t.Alias && o.Token.Kind == t.Token.Kind }); i >= 0 && !force {
			there := Describe(token.Credentials{Tokens: old.Tokens[i : i+1]}, oldNotes)[0]
			if !its.Until.After(there.Until) {
				c.Left = append(c.Left, its)
				continue
			}
		}
		c.Take.Tokens = append(c.Take.Tokens, t)
		c.Notes = slices.DeleteFunc(c.Notes, func(n Note) bool { return n.Alias == t.Alias })
		if i := slices.IndexFunc(freshNotes, func(n Note) bool { return n.Alias == t.Alias }); i >= 0 {
			c.Notes = append(c.Notes, freshNotes[i])
		}
	}
	return c
}
