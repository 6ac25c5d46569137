// Package hrest asks those of Hadoop's web services that several servers may offer: key servers, WebHDFS and HttpFS. Exceptions are those of package hrpc.
// Addresses with what comes behind a question mark, which may be a token, are in no error.
package hrest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// Config is what a client needs to know.
type Config struct {
	Bases []string // what paths are put behind, such as http://host:9600/kms/v1; each server will do
	// Transport carries requests; nil: Go's own.
	Transport http.RoundTripper
	// Authorize puts onto a request to one of Bases what proves who we are; nil: nothing. Other servers, to which these send us, get nothing.
	Authorize func(*http.Request) error
	// Timeout bounds how long nothing comes and goes; 0: 30 s.
	Timeout time.Duration
	// Attempts is how often a server that can't be reached, or asks for patience, is asked; 0: 4.
	Attempts int
}

// Client asks a service. It is for concurrent use.
type Client struct {
	cfg  Config
	http http.Client
	at   atomic.Uint32 // index in Bases of the server that answered last
}

// New makes a client. It asks nobody.
func New(cfg Config) (*Client, error) {
	if len(cfg.Bases) == 0 {
		return nil, errors.New("cannot ask a web service: no server is named")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 4
	}
	if cfg.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy = nil
		cfg.Transport = t
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{cfg: cfg, http: http.Client{Transport: cfg.Transport, CheckRedirect: stay}}, nil
}

// Close closes connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is what is asked.
type Request struct {
	Method string
	Path   string // escaped; behind the base
	Query  url.Values
	Body   []byte // of type application/json
	Safe   bool   // to be asked again where the answer was lost, whatever Method says
}

// op names a request for people.
func (r *Request) op() string {
	if op := r.Query.Get("op"); op != "" {
		return op
	}
	return r.Method + " " + r.Path
}

// Do asks until a server answers, and returns an answer that is no exception: it may be a redirect. The caller closes its body, which has the client's time limit.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	n := len(c.cfg.Bases)
	for try := 0; ; try++ {
		at := int(c.at.Load()) % n
		resp, err := c.once(ctx, c.cfg.Bases[at], r)
		if err == nil || !again(err, r.Safe || r.Method == http.MethodGet) || ctx.Err() != nil || try+1 >= c.cfg.Attempts*n {
			return resp, err
		}
		c.at.CompareAndSwap(uint32(at), uint32((at+1)%n))
		if (try+1)%n == 0 && !Pause(ctx, time.Duration((try+1)/n)*250*time.Millisecond) {
			return nil, err
		}
	}
}

// Pause waits for d. False: ctx ended before.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once asks one server.
func (c *Client) once(ctx context.Context, base string, r Request) (*http.Response, error) {
	target := strings.TrimSuffix(base, "/") + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	ctx, w := watch(ctx, c.cfg.Timeout)
	req, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		w.stop()
		return nil, errors.New("cannot ask a web service: its address is no URL")
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.cfg.Authorize != nil {
		if err := c.cfg.Authorize(req); err != nil {
			w.stop()
			return nil, err
		}
	}
	return c.send(req, w, r.op())
}

// Follow goes where an answer sends us, with a body, if any. It goes there once.
func (c *Client) Follow(ctx context.Context, method, location string, body *bytes.Reader) (*http.Response, error) {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" {
		return nil, errors.New("cannot go where the server sends us: that is no URL")
	}
	ctx, w := watch(ctx, c.cfg.Timeout)
	var sent io.Reader
	if body != nil {
		sent = body
	}
	req, err := http.NewRequestWithContext(ctx, method, location, sent)
	if err != nil {
		w.stop()
		return nil, errors.New("cannot go where the server sends us: that is no URL")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/octet-stream")
		size := body.Size()
		req.GetBody = func() (io.ReadCloser, error) { // for who has to prove itself meanwhile
			return io.NopCloser(&progress{io.NewSectionReader(body, 0, size), w}), nil
		}
		req.Body, _ = req.GetBody()
	}
	if c.cfg.Authorize != nil && c.knows(u) {
		if err := c.cfg.Authorize(req); err != nil {
			w.stop()
			return nil, err
		}
	}
	return c.send(req, w, u.Query().Get("op"))
}

// knows reports whether an address is that of one of our servers.
func (c *Client) knows(u *url.URL) bool {
	for _, b := range c.cfg.Bases {
		if own, err := url.Parse(b); err == nil && own.Scheme == u.Scheme && strings.EqualFold(own.Host, u.Host) {
			return true
		}
	}
	return false
}

// send sends a request and makes exceptions errors.
func (c *Client) send(req *http.Request, w *watchdog, op string) (*http.Response, error) {
	req.Header.Set("X-XSRF-Header", "heddle")
	resp, err := c.http.Do(req)
	if err != nil {
		late := w.stop()
		return nil, connError(req.URL.Host, err, late)
	}
	if resp.StatusCode >= 400 {
		defer w.stop()
		defer resp.Body.Close()
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		return nil, exception(req.URL.Host, op, resp.StatusCode, b)
	}
	w.reset()
	resp.Body = &answer{resp.Body, w}
	return resp, nil
}

// connError is an error of a connection without the address that was asked for.
func connError(host string, err error, late bool) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if late {
		err = errors.Join(context.DeadlineExceeded, errors.New("nothing came in time"))
	}
	return &hrpc.ConnError{Addr: host, Err: err}
}

// exception reads what a server refused by.
func exception(host, op string, status int, body []byte) error {
	var j struct {
		RemoteException struct{ Exception, JavaClassName, Message string }
	}
	if err := json.Unmarshal(body, &j); err == nil && (j.RemoteException.JavaClassName != "" || j.RemoteException.Exception != "") {
		class := j.RemoteException.JavaClassName
		if class == "" {
			class = j.RemoteException.Exception
		}
		text, _, _ := strings.Cut(j.RemoteException.Message, "\n\tat ")
		return &hrpc.RemoteError{Addr: host, Method: op, Class: class, Message: strings.TrimSpace(text)}
	}
	return &StatusError{Host: host, Op: op, Status: status}
}

// StatusError is an answer that is neither what was asked for nor an exception.
type StatusError struct {
	Host, Op string
	Status   int
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("cannot call %s at %s: HTTP status %d (%s)", e.Op, e.Host, e.Status, http.StatusText(e.Status))
	switch e.Status {
	case http.StatusUnauthorized:
		text += ": it does not take what proves who we are"
	case http.StatusNotFound:
		text += ": compare the path of its address"
	}
	return text
}

// again reports whether another server, or the same one later, may do better.
func again(err error, safe bool) bool {
	switch hrpc.ClassOf(err) {
	case hrpc.ClassStandby, hrpc.ClassRetriable, hrpc.ClassObserver, "StandbyException", "RetriableException":
		return true
	}
	if s, ok := errors.AsType[*StatusError](err); ok {
		return s.Status == http.StatusServiceUnavailable || s.Status == http.StatusBadGateway || s.Status == http.StatusTooManyRequests
	}
	if _, ok := errors.AsType[*hrpc.ConnError](err); !ok {
		return false
	}
	op, ok := errors.AsType[*net.OpError](err)
	return safe || ok && op.Op == "dial" // what was not sent was not done
}

// JSON asks and reads an answer. A nil out wants none.
func (c *Client) JSON(ctx context.Context, r Request, out any) error {
	resp, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return &StatusError{Host: resp.Request.URL.Host, Op: r.op(), Status: resp.StatusCode}
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return connError(resp.Request.URL.Host, err, false)
	case len(b) > maxAnswer:
		return fmt.Errorf("cannot read the answer of %s to %s: it has more than %d bytes", resp.Request.URL.Host, r.op(), maxAnswer)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("cannot read the answer of %s to %s: %w", resp.Request.URL.Host, r.op(), err)
	}
	return nil
}

// maxAnswer bounds an answer that is read whole.
const maxAnswer = 256 << 20
