package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/web"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// client asks the REST API of an application's ApplicationMaster.
type client struct {
	id    string // of the application
	token string // "": none is sent
	// ticket is YARN's, which proves who we are where there is no token; nil: there is none.
	ticket *token.Token
	query  string                 // of each request, for who passes it on
	cookie *http.Cookie           // likewise; nil: none
	find   func() (string, error) // its address; nil: it is known
	http   http.Client
	web    string // address, once it is known

	channel *web.Channel // by which it is asked; nil: not encrypted, or not by proofs
	unsure  bool         // it may speak HTTP, though its address says otherwise
}

func newClient(app appDir, sec secrets) *client {
	c := clientOf(app.id, sec.Token)
	c.find = func() (string, error) {
		var addr appmaster.Addr
		if err := app.readJSON(addrFile, &addr); err != nil || addr.Web == "" {
			return "", errNotUp
		}
		return addr.Web, nil
	}
	return c
}

func clientOf(id, secret string) *client {
	return &client{id: id, token: secret, http: http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{Proxy: nil}, // it is this host, or the cluster: no proxy, whatever the environment says
	}}
}

// openClient makes a client for an application that was started by another process.
func openClient(app appDir) (*client, error) {
	sec, err := app.readSecrets()
	if err != nil {
		return nil, precondition(fmt.Errorf("cannot read the secrets of %s: %w", app.id, err))
	}
	return newClient(app, sec), nil
}

// errNotUp says that the ApplicationMaster does not listen yet.
var errNotUp = errors.New("the ApplicationMaster is not up yet")

func (c *client) address() (string, error) {
	if c.web != "" {
		return c.web, nil
	}
	web, err := c.find()
	if err != nil {
		return "", err
	}
	c.web = strings.TrimSuffix(web, "/")
	if !strings.Contains(c.web, "://") {
		c.web = "http://" + c.web
	}
	return c.web, nil
}

// dashboard is the address for a browser; one of the same user on this host is let in by it.
func (c *client) dashboard() string {
	web, err := c.address()
	if err != nil {
		return ""
	}
	return web + "/"
}

// snapshot returns the state of the application.
func (c *client) snapshot(ctx context.Context) (*appmaster.Snapshot, error) {
	var snap appmaster.Snapshot
	if err := c.do(ctx, http.MethodGet, "/api/job", &snap); err != nil {
		return nil, err
	}
	return &snap, nil
}

// cancel asks for the end of the job.
func (c *client) cancel(ctx context.Context) error { return c.act(ctx, "/api/job/cancel") }

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

func (c *client) do(ctx context.Context, method, path string, into any) error {
	return c.send(ctx, method, path, nil, into)
}

func (c *client) send(ctx context.Context, method, path string, payload []byte, into any) error {
	body, err := c.fetch(ctx, method, path, payload)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("cannot understand the answer of the ApplicationMaster: %w", err)
	}
	return nil
}

// fetch returns the body of an answer.
func (c *client) fetch(ctx context.Context, method, path string, payload []byte) ([]byte, error) {
	if _, err := c.address(); err != nil {
		return nil, err
	}
	if _, ours := c.secret(); ours {
		if err := c.encrypt(ctx); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.web+withQuery(path, c.query), bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	if c.cookie != nil {
		req.AddCookie(c.cookie)
	}
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	check := c.prove(req, payload)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the ApplicationMaster of %s: %w", c.id, err)
	}
	defer resp.Body.Close()
	if err := check(resp); err != nil {
		return nil, fmt.Errorf("cannot ask the ApplicationMaster of %s at %s: %w", c.id, c.web, err)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("cannot read the answer of the ApplicationMaster: %w", err)
	}
	if resp.StatusCode >= 300 {
		return nil, &answerError{resp.StatusCode, fmt.Sprintf("the ApplicationMaster answers %s %s: %s: %.200s", method, path, resp.Status, said(body))}
	}
	return body, nil
}

// said is the message of an answer that says no, without the JSON around it.
func said(body []byte) string {
	var m struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(body, &m); err == nil && m.Error != "" {
		return printable(m.Error)
	}
	return printable(strings.TrimSpace(string(body)))
}

// answerError is an answer that says no.
type answerError struct {
	code int
	text string
}

func (e *answerError) Error() string { return e.text }

// refusal gives an error of a question to an ApplicationMaster its exit code: one that answers can be reached.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	if a, ok := errors.AsType[*answerError](err); ok && a.code >= 400 && a.code < 500 {
		return precondition(err)
	}
	return unreachable(err)
}

// withQuery adds a query, which begins with a question mark, to a path that may have one.
func withQuery(path, query string) string {
	if query != "" && strings.Contains(path, "?") {
		return path + "&" + query[1:]
	}
	return path + query
}

// close drops idle connections.
func (c *client) close() { c.http.CloseIdleConnections() }
