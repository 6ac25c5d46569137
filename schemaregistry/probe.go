package schemaregistry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
)

// Trouble is why a registry could not be asked about something.
type Trouble string

// Troubles.
const (
	Fine        Trouble = ""
	Unreachable Trouble = "unreachable" // no URL answers
	Untrusted   Trouble = "untrusted"   // its certificate, or there is no TLS at all
	Unknown     Trouble = "unknown"     // it does not take us for anybody
	Denied      Trouble = "denied"      // we may not do it
	NoTicket    Trouble = "no-ticket"   // Kerberos gives us none
	Missing     Trouble = "missing"     // it does not have it
	Strange     Trouble = "strange"     // the answer is not a registry's
)

// Answer is what came of asking a registry about a subject, or for "" about the registry itself.
type Answer struct {
	Subject string
	Trouble Trouble
	Err     error // why; nil if all is fine
}

// Probe asks the configured registry whether it takes us and whether it has schemas of subjects. One that is away is not waited for, and nothing is
// registered. The error says why nobody can be asked with these options.
func Probe(ctx context.Context, option func(string) (string, bool), subjects ...string) (urls []string, out []Answer, err error) {
	c, err := newClient(option)
	if err != nil {
		return nil, nil, err
	}
	c.patience = 0 // each URL is asked once
	ask := func(subject string) Answer {
		var any json.RawMessage
		err := c.askNow(ctx, c.probed(subject), &any)
		return Answer{subject, troubleOf(err), err}
	}
	if len(subjects) == 0 {
		return c.urls, []Answer{ask("")}, nil
	}
	for _, s := range subjects {
		a := ask(s)
		out = append(out, a)
		if a.Trouble != Fine && a.Trouble != Missing && a.Trouble != Denied {
			break // the others would say the same
		}
	}
	return c.urls, out, nil
}

// probed is what a registry is asked for to learn about a subject.
func (c *client) probed(subject string) string {
	switch {
	case c.cloudera && subject == "":
		return "/api/v1/schemaregistry/schemaproviders"
	case c.cloudera:
		return clouderaSchemas + "/" + url.PathEscape(subject) + "/versions/latest"
	case subject == "":
		return "/schemas/types"
	}
	return "/subjects/" + url.PathEscape(subject) + "/versions/latest"
}

// askNow asks each URL once, until one answers.
func (c *client) askNow(ctx context.Context, path string, answer any) error {
	var why error
	for _, u := range c.urls {
		err := c.once(ctx, http.MethodGet, u+path, nil, answer)
		if away, ok := errors.AsType[*UnavailableError](err); ok {
			if why == nil || troubleOf(why) == Unreachable {
				why = away
			}
			continue
		}
		return err
	}
	return why
}

func troubleOf(err error) Trouble {
	if err == nil {
		return Fine
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		switch e.status {
		case http.StatusUnauthorized:
			return Unknown
		case http.StatusForbidden:
			return Denied
		case http.StatusNotFound:
			return Missing
		}
		return Strange
	}
	if ofKerberos(err) {
		return NoTicket
	}
	_, verified := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case verified, record, authority:
		return Untrusted
	}
	if _, away := errors.AsType[*UnavailableError](err); away {
		return Unreachable
	}
	if r, ok := errors.AsType[*refusedError](err); ok && r.kerberos {
		return NoTicket
	}
	return Strange
}
