package schemaregistry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options that say where the registry is and who we are to it.
const (
	optURLs         = "schema-registry.urls"
	optKind         = "schema-registry.kind"
	optUser         = "schema-registry.user"
	optPassword     = "schema-registry.password"
	optPasswordFile = "schema-registry.password-file"
	optToken        = "schema-registry.token"
	optTokenFile    = "schema-registry.token-file"
	optCA           = "schema-registry.ca-file"
	optCert         = "schema-registry.cert-file"
	optKey          = "schema-registry.key-file"
)

// schema is a schema as a registry has it.
type schema struct {
	id         int64
	text       string
	kind       string // AVRO or PROTOBUF
	references map[string]string
}

// client asks a registry, by whichever of its URLs answers. What it has learnt it keeps: a schema never changes, and is there when the registry is not.
type client struct {
	// Immutable.
	urls      []string
	cloudera  bool
	http      *http.Client
	authorize func(*http.Request) error // nil: nothing is to be done for it
	patience  time.Duration             // how long to try before giving up

	mu   sync.Mutex
	byID map[int64]*schema // guarded by mu
	next int               // guarded by mu: the URL that answered last
}

// UnavailableError says that no URL of a registry answers, or that we can't ask it because Kerberos does not. No record is at fault for it.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string {
	if k, ok := e.Err.(*kerberosError); ok {
		return k.Error()
	}
	return "the schema registry does not answer: " + e.Err.Error()
}
func (e *UnavailableError) Unwrap() error { return e.Err }

// Fatal tells that the error is not one of a record.
func (e *UnavailableError) Fatal() bool { return true }

func newClient(option func(string) (string, bool)) (*client, error) {
	str := func(name string) string {
		if v, ok := option(name); ok {
			return strings.TrimSpace(v)
		}
		return ""
	}
	c := &client{byID: map[int64]*schema{}, patience: time.Minute}
	for u := range strings.SplitSeq(str(optURLs), ",") {
		if u = strings.TrimRight(strings.TrimSpace(u), "/"); u == "" {
			continue
		}
		if p, err := url.Parse(u); err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" || p.User != nil {
			return nil, fmt.Errorf("%s has an entry that is no URL, or holds a password: want https://host:port, and %s", optURLs, optUser)
		}
		c.urls = append(c.urls, u)
	}
	if len(c.urls) == 0 {
		return nil, fmt.Errorf("no schema registry is given: set %s to its URL, or several separated by commas", optURLs)
	}
	switch kind := str(optKind); kind {
	case "", "confluent":
	case "cloudera":
		c.cloudera = true
	default:
		return nil, fmt.Errorf("%s is %q: want confluent or cloudera", optKind, kind)
	}
	tc, err := tlsConfig(str(optCA), str(optCert), str(optKey))
	if err != nil {
		return nil, err
	}
	// It is asked now and then: no connection waits for that.
	tr := &http.Transport{Proxy: nil, TLSClientConfig: tc, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second}
	proven, err := byKerberos(tr, option)
	if err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: proven, Timeout: 10 * time.Second}
	if c.authorize, err = authorization(str(optUser), option); err == nil && c.authorize != nil && proven != http.RoundTripper(tr) {
		err = fmt.Errorf("%s is set beside %s or %s: want one of them", optKerberos, optUser, optToken)
	}
	return c, err
}

// authorization says how a request proves who we are. Files are read anew each time, since tokens end.
func authorization(user string, option func(string) (string, bool)) (func(*http.Request) error, error) {
	secret := func(name, file string) (func() (string, error), bool) {
		if v, ok := option(name); ok && v != "" {
			return func() (string, error) { return v, nil }, true
		}
		path, ok := option(file)
		return func() (string, error) {
			b, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("cannot read %s: %w", file, err)
			}
			return strings.TrimSpace(string(b)), nil
		}, ok && path != ""
	}
	token, hasToken := secret(optToken, optTokenFile)
	password, hasPassword := secret(optPassword, optPasswordFile)
	switch {
	case hasToken && user != "":
		return nil, fmt.Errorf("both %s and %s are set: want one of them", optToken, optUser)
	case hasToken:
		return func(r *http.Request) error {
			t, err := token()
			r.Header.Set("Authorization", "Bearer "+t)
			return err
		}, nil
	case user != "" && !hasPassword:
		return nil, fmt.Errorf("%s is set but no password: set %s or %s", optUser, optPassword, optPasswordFile)
	case user != "":
		return func(r *http.Request) error {
			p, err := password()
			r.SetBasicAuth(user, p)
			return err
		}, nil
	}
	return nil, nil
}

func tlsConfig(ca, cert, key string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		b, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", optCA, err)
		}
		if cfg.RootCAs = x509.NewCertPool(); !cfg.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("cannot use %s %s: it holds no PEM certificate", optCA, ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, fmt.Errorf("of %s and %s only one is set: a client certificate needs both", optCert, optKey)
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cannot use %s and %s: %w", optCert, optKey, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// schema returns a schema by its id. While the registry is away it tries for a while, if it does not know the schema.
func (c *client) schema(ctx context.Context, id int64) (*schema, error) {
	c.mu.Lock()
	s := c.byID[id]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	var err error
	if c.cloudera {
		var a struct {
			Text string `json:"schemaText"`
		}
		if err = c.ask(ctx, http.MethodGet, "/api/v1/schemaregistry/schemas/versionsById/"+strconv.FormatInt(id, 10), nil, &a); err == nil {
			s = &schema{id: id, text: a.Text, kind: "AVRO"}
		}
	} else {
		var a confluentSchema
		if err = c.ask(ctx, http.MethodGet, "/schemas/ids/"+strconv.FormatInt(id, 10), nil, &a); err == nil {
			s, err = c.whole(ctx, id, &a)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get schema %d: %w", id, err)
	}
	c.mu.Lock()
	c.byID[id] = s
	c.mu.Unlock()
	return s, nil
}

// confluentSchema is a schema in the notation of Confluent's registry.
type confluentSchema struct {
	ID         int64       `json:"id,omitempty"`
	Schema     string      `json:"schema"`
	Kind       string      `json:"schemaType,omitempty"` // "": AVRO
	References []reference `json:"references,omitempty"`
}

type reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// maxReferences bounds how many other schemas one may need.
const maxReferences = 1000

// whole gets what a schema refers to, and what that refers to.
func (c *client) whole(ctx context.Context, id int64, a *confluentSchema) (*schema, error) {
	s := &schema{id: id, text: a.Schema, kind: a.Kind, references: map[string]string{}}
	if s.kind == "" {
		s.kind = "AVRO"
	}
	for todo := a.References; len(todo) > 0; todo = todo[1:] {
		r := todo[0]
		if _, ok := s.references[r.Name]; ok {
			continue
		}
		if len(s.references) == maxReferences {
			return nil, fmt.Errorf("it needs more than %d others", maxReferences)
		}
		var other confluentSchema
		if err := c.ask(ctx, http.MethodGet, fmt.Sprintf("/subjects/%s/versions/%d", url.PathEscape(r.Subject), r.Version), nil, &other); err != nil {
			return nil, fmt.Errorf("cannot get %s, which it refers to: %w", r.Name, err)
		}
		s.references[r.Name] = other.Schema
		todo = append(todo, other.References...)
	}
	return s, nil
}

// register makes sure that a subject has a schema, and returns its id.
func (c *client) register(ctx context.Context, subject, kind, text string) (int64, error) {
	body, err := json.Marshal(confluentSchema{Schema: text, Kind: kind})
	if err != nil {
		return 0, err
	}
	var a confluentSchema
	if err := c.ask(ctx, http.MethodPost, "/subjects/"+url.PathEscape(subject)+"/versions", body, &a); err != nil {
		return 0, fmt.Errorf("cannot register the schema of subject %s: %w", subject, err)
	}
	return a.ID, nil
}

// latest returns the newest schema of a subject.
func (c *client) latest(ctx context.Context, subject string) (*schema, error) {
	var a confluentSchema
	err := c.ask(ctx, http.MethodGet, "/subjects/"+url.PathEscape(subject)+"/versions/latest", nil, &a)
	if err != nil {
		return nil, fmt.Errorf("cannot get the schema of subject %s: %w", subject, err)
	}
	return c.whole(ctx, a.ID, &a)
}

// ask asks the URLs in turn until one answers, or the patience is over.
func (c *client) ask(ctx context.Context, method, path string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	var why error
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		c.mu.Lock()
		first := c.next
		c.mu.Unlock()
		for i := range c.urls {
			n := (first + i) % len(c.urls)
			err := c.once(ctx, method, c.urls[n]+path, body, answer)
			if away, ok := errors.AsType[*UnavailableError](err); ok {
				if why == nil || !ofKerberos(why) { // what is wrong with that is told even if another URL is dead
					why = away
				}
				continue
			}
			c.mu.Lock()
			c.next = n
			c.mu.Unlock()
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return why
		case <-t.C:
		}
	}
}

// once asks one URL.
func (c *client) once(ctx context.Context, method, url string, body []byte, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/vnd.schemaregistry.v1+json, application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	}
	if c.authorize != nil {
		if err := c.authorize(req); err != nil {
			return &refusedError{text: err.Error()}
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return unanswered(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	switch {
	case err != nil:
		return &UnavailableError{err}
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return &UnavailableError{fmt.Errorf("%s says %s", req.URL.Host, resp.Status)}
	case resp.StatusCode == http.StatusNotFound && method == http.MethodGet:
		return &statusError{resp.StatusCode, fmt.Errorf("the registry does not have it (%s)", message(b, resp.Status))}
	case resp.StatusCode == http.StatusConflict:
		return &conflictError{refusedError{text: fmt.Sprintf("the schema registry refuses: %s", message(b, resp.Status))}}
	case resp.StatusCode >= 300:
		return &statusError{resp.StatusCode, &refusedError{text: fmt.Sprintf("the schema registry refuses: %s", message(b, resp.Status))}}
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return &refusedError{text: fmt.Sprintf("the answer of %s is not that of a schema registry: %v", req.URL.Host, err)}
	}
	return nil
}

// refusedError is one that no record is at fault for, and no other URL cures.
type refusedError struct {
	text     string
	kerberos bool // a KDC refused
}

func (e *refusedError) Error() string { return e.text }

// Fatal tells that the error is not one of a record.
func (e *refusedError) Fatal() bool { return true }

// statusError is an error with the status of the answer that told it.
type statusError struct {
	status int
	error
}

func (e *statusError) Unwrap() error { return e.error }

// conflictError says that what is there already is against it.
type conflictError struct{ refusedError }

// message is what a registry says of an error.
func message(body []byte, status string) string {
	var m struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &m) == nil && m.Message != "" {
		return status + ": " + m.Message
	}
	return status
}
