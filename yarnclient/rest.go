package yarnclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Auth puts onto a request what proves who sends it.
type Auth interface {
	Authorize(*http.Request) error
}

// UserName names a user, which clusters without security believe.
type UserName string

// Authorize implements Auth.
func (u UserName) Authorize(r *http.Request) error {
	q := r.URL.Query()
	q.Set("user.name", string(u))
	r.URL.RawQuery = q.Encode()
	return nil
}

// StaticUser says nothing, so that the cluster takes the user it is configured to take.
type StaticUser struct{}

// Authorize implements Auth.
func (StaticUser) Authorize(*http.Request) error { return nil }

// Config is what a client needs to know.
type Config struct {
	// Bases are the web addresses of the ResourceManagers, such as http://rm1:8088.
	Bases []string
	// Auth proves who we are; nil: StaticUser.
	Auth Auth
	// Transport carries requests; nil: one that ignores HTTP_PROXY, as Hadoop's own clients do.
	Transport http.RoundTripper
	// Timeout bounds one attempt of a request, with its answer; 0: 30 s.
	Timeout time.Duration
	// Attempts bounds how often a request is tried in all; 0: 8.
	Attempts int
	// PauseMin and PauseMax bound the pauses between attempts, whatever a server's Retry-After says; 0: 200 ms and 5 s.
	PauseMin, PauseMax time.Duration
	Logger             *slog.Logger // nil: none
}

// Client is a client of the ResourceManagers' REST API. It is for concurrent use.
type Client struct {
	// Immutable.
	cfg   Config
	bases []*url.URL
	http  *http.Client
	log   *slog.Logger

	mu sync.Mutex // guards at
	at int        // index of the ResourceManager that was active last
}

// maxBody bounds what is read of an answer.
const maxBody = 64 << 20

// New returns a client.
func New(cfg Config) (*Client, error) {
	if len(cfg.Bases) == 0 {
		return nil, errors.New("cannot reach YARN: no ResourceManager's web address is configured")
	}
	if cfg.Auth == nil {
		cfg.Auth = StaticUser{}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 8
	}
	if cfg.PauseMin == 0 {
		cfg.PauseMin = 200 * time.Millisecond
	}
	if cfg.PauseMax == 0 {
		cfg.PauseMax = 5 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{cfg: cfg, log: cfg.Logger}
	for _, b := range cfg.Bases {
		u, err := url.Parse(b)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("cannot use %q as a ResourceManager's web address: it is not http://host:port", b)
		}
		c.bases = append(c.bases, u)
	}
	if cfg.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy = nil
		cfg.Transport = t
	}
	c.http = &http.Client{
		Transport: cfg.Transport, Timeout: cfg.Timeout,
		// A redirect is a standby's way to say that it isn't active. Following it blindly would carry credentials anywhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// APIError is a refusal of the ResourceManager.
type APIError struct {
	What      string // what was tried, such as "submit application_1_0001"
	Base      string
	Status    int
	Exception string // short name of the Java exception, if one was given
	Message   string
}

func (e *APIError) Error() string {
	msg := e.Message
	if e.Exception != "" {
		msg = e.Exception + ": " + msg
	}
	if msg == "" {
		msg = http.StatusText(e.Status)
	}
	return fmt.Sprintf("cannot %s: %s answered %d: %s", e.What, e.Base, e.Status, msg)
}

// UnreachableError says that no ResourceManager could be asked.
type UnreachableError struct {
	What  string
	Bases []string
	Err   error // of the last attempt
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot %s: no ResourceManager is reachable and active (asked %s): %v", e.What, strings.Join(e.Bases, ", "), e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// request is one use of the API.
type request struct {
	what, method, path string
	query              url.Values
	body               any // marshalled as JSON; nil: none
	header             http.Header
	fixed              bool // ask this ResourceManager only, active or not
	at                 int  // with fixed
}

// exchange is the state of a request's attempts.
type exchange struct {
	c     *Client
	r     request
	at    int   // index of the ResourceManager that is asked
	moved int   // ResourceManagers turned away from so far
	tries int   // attempts that failed so far
	last  error // of the attempt before
	again bool  // the same ResourceManager shall be asked again without delay
}

// do sends a request and decodes its answer into out, unless that is nil. It returns the status, the answer's header and how many attempts failed before.
func (c *Client) do(ctx context.Context, r request, out any) (int, http.Header, int, error) {
	x := &exchange{c: c, r: r, at: r.at}
	if !r.fixed {
		x.at = c.active()
	}
	var payload []byte
	if r.body != nil {
		var err error
		if payload, err = json.Marshal(r.body); err != nil {
			return 0, nil, 0, fmt.Errorf("cannot %s: %w", r.what, err)
		}
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, r.method, x.url().String(), payload)
	if err != nil {
		return 0, nil, 0, fmt.Errorf("cannot %s: %w", r.what, err)
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("X-XSRF-Header", "heddle")
	req.Header.Set("User-Agent", "heddle")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if err := c.cfg.Auth.Authorize(req.Request); err != nil {
		return 0, nil, 0, fmt.Errorf("cannot %s: %w", r.what, err)
	}
	rc := &retryablehttp.Client{
		HTTPClient: c.http, RetryMax: c.cfg.Attempts - 1, CheckRetry: x.check, Backoff: x.pause,
		PrepareRetry: x.prepare, ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	resp, err := rc.Do(req)
	if resp != nil {
		defer resp.Body.Close()
	}
	if ctx.Err() != nil && (err != nil || x.last != nil) {
		err = fmt.Errorf("%w (last error: %v)", ctx.Err(), x.last)
		return 0, nil, x.tries, &UnreachableError{What: r.what, Bases: c.cfg.Bases, Err: err}
	}
	if x.last != nil {
		return 0, nil, x.tries, &UnreachableError{What: r.what, Bases: c.cfg.Bases, Err: x.last}
	}
	if err != nil {
		return 0, nil, x.tries, &UnreachableError{What: r.what, Bases: c.cfg.Bases, Err: err}
	}
	if !r.fixed {
		c.setActive(x.at)
	}
	status, err := c.decode(resp, x, out)
	return status, resp.Header, x.tries, err
}

// decode turns the answer into out or an error.
func (c *Client) decode(resp *http.Response, x *exchange, out any) (int, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return resp.StatusCode, fmt.Errorf("cannot %s: the answer breaks off: %w", x.r.what, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.StatusCode, apiError(x.r.what, c.bases[x.at].String(), resp.StatusCode, body)
	}
	if out == nil {
		return resp.StatusCode, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return resp.StatusCode, fmt.Errorf("cannot %s: cannot read the answer of %s: %w", x.r.what, c.bases[x.at], err)
	}
	return resp.StatusCode, nil
}

func apiError(what, base string, status int, body []byte) *APIError {
	e := &APIError{What: what, Base: base, Status: status}
	var j struct {
		RemoteException struct {
			Exception, Message, JavaClassName string
		}
	}
	if json.Unmarshal(body, &j) == nil && j.RemoteException.Exception != "" {
		e.Exception, e.Message = j.RemoteException.Exception, j.RemoteException.Message
	} else if text := strings.TrimSpace(string(body)); !strings.HasPrefix(text, "<") {
		e.Message = text
	}
	if len(e.Message) > 2000 {
		e.Message = e.Message[:2000] + "…"
	}
	return e
}

func (c *Client) active() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *Client) setActive(at int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

func (x *exchange) url() *url.URL {
	u := *x.c.bases[x.at]
	u.Path = strings.TrimRight(u.Path, "/") + "/ws/v1/cluster" + x.r.path
	u.RawQuery = x.r.query.Encode()
	return &u
}

// check implements retryablehttp.CheckRetry. It decides whether an attempt was in vain and where the next one goes.
func (x *exchange) check(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	x.again = false
	if err != nil {
		x.failed(withoutURL(err))
		x.moveOn()
		return true, nil
	}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 && isJSON(resp) {
		x.last = nil
		return false, nil
	}
	// The whole body is read here, so that the connection can be used again whatever its length.
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		x.failed(err)
		return true, nil
	}
	switch {
	case x.standby(resp, body):
		return true, nil
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusBadGateway,
		resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusGatewayTimeout:
		x.failed(fmt.Errorf("%s answered %d", x.c.bases[x.at], resp.StatusCode))
		if resp.StatusCode != http.StatusTooManyRequests {
			x.moveOn()
		}
		return true, nil
	}
	x.last = nil
	return false, nil
}

func (x *exchange) failed(err error) {
	x.last = err
	x.tries++
}

// withoutURL unwraps the error that repeats the address, whose query may name more than a log should hold.
func withoutURL(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", ue.URL[:strings.IndexAny(ue.URL+"?", "?")], ue.Err)
	}
	return err
}

func isJSON(resp *http.Response) bool {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && t == "application/json"
}

// standby reports whether the answer is a standby's, and turns to the ResourceManager it points to or else the next.
func (x *exchange) standby(resp *http.Response, body []byte) bool {
	redirect := resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusFound || resp.StatusCode == http.StatusSeeOther
	text := resp.StatusCode == http.StatusOK && (bytes.Contains(body, []byte("no active RM")) || bytes.Contains(body, []byte("standby RM")))
	if !redirect && !text {
		return false
	}
	x.failed(fmt.Errorf("%s is on standby", x.c.bases[x.at]))
	to, err := resp.Location()
	if err != nil {
		if _, after, ok := strings.Cut(resp.Header.Get("Refresh"), "url="); ok {
			to, err = url.Parse(after)
		}
	}
	if err == nil && to != nil {
		for i, b := range x.c.bases {
			if i != x.at && to.Host == b.Host {
				x.at = i
				x.again = x.moved < 2*len(x.c.bases)
				x.moved++
				return true
			}
		}
	}
	x.moveOn()
	return true
}

// moveOn turns to the next ResourceManager. The first round through all of them is without delay.
func (x *exchange) moveOn() {
	if x.r.fixed || len(x.c.bases) == 1 {
		return
	}
	x.at = (x.at + 1) % len(x.c.bases)
	x.moved++
	x.again = x.moved < len(x.c.bases)
}

// pause implements retryablehttp.Backoff.
func (x *exchange) pause(_, _ time.Duration, n int, resp *http.Response) time.Duration {
	if x.again {
		return 0
	}
	d := x.c.cfg.PauseMin << min(n, 20)
	if resp != nil {
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
			d = time.Duration(min(s, 3600)) * time.Second
		}
	}
	return max(min(d, x.c.cfg.PauseMax), x.c.cfg.PauseMin)
}

// prepare implements retryablehttp.PrepareRetry: it addresses the request anew.
func (x *exchange) prepare(r *http.Request) error {
	x.c.log.Debug("YARN request failed, trying again", "request", x.r.what, "at", x.c.bases[x.at].Host, "err", x.last)
	r.URL, r.Host = x.url(), ""
	return x.c.cfg.Auth.Authorize(r)
}
