package krb

import (
	"bytes"
	"context"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	spnegoOID = []byte{0x06, 0x06, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x02}
	// Java offers Kerberos by this number too, and some servers look for it.
	krbMicrosoftOID = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x82, 0xf7, 0x12, 0x01, 0x02, 0x02}
)

func der(tag byte, parts ...[]byte) []byte {
	body := slices.Concat(parts...)
	return append(derHeader(tag, len(body)), body...)
}

// negotiateInit puts Kerberos's token into the first token of SPNEGO (RFC 4178).
func negotiateInit(token []byte) []byte {
	return der(0x60, spnegoOID, der(0xa0, der(0x30,
		der(0xa0, der(0x30, krbOID, krbMicrosoftOID)),
		der(0xa2, der(0x04, token)))))
}

// negotiateAnswer reads SPNEGO's answer and returns Kerberos's token in it, nil if it has none. A bare token of Kerberos's will do.
func negotiateAnswer(b []byte) ([]byte, error) {
	if len(b) > 0 && b[0] == 0x60 {
		return b, nil
	}
	var resp struct {
		State     asn1.Enumerated       `asn1:"explicit,optional,default:-1,tag:0"`
		Mechanism asn1.ObjectIdentifier `asn1:"explicit,optional,tag:1"`
		Token     []byte                `asn1:"explicit,optional,tag:2"`
		MIC       []byte                `asn1:"explicit,optional,tag:3"`
	}
	if rest, err := asn1.UnmarshalWithParams(b, &resp, "explicit,tag:1"); err != nil || len(rest) > 0 {
		return nil, errors.New("the server's answer is no SPNEGO token")
	}
	switch resp.State {
	case 0, 1, -1:
	default:
		return nil, errors.New("the server rejects our ticket")
	}
	return resp.Token, nil
}

// Transport answers servers that demand SPNEGO: a request that is refused is sent once more with a ticket for HTTP/<host>. What cookie a server then
// gives is sent with later requests to it, so that most need no ticket. The server's own proof is checked.
//
// It keeps cookies by host and port, since each of Hadoop's daemons signs by its own secret. It is for concurrent use.
type Transport struct {
	Base  http.RoundTripper // nil: Go's own, without the environment's proxies
	Login interface {
		Ticket(ctx context.Context, service Principal) (*Ticket, error)
	}
	Now func() time.Time // nil: time.Now

	mu      sync.Mutex                // guards cookies
	cookies map[string][]*http.Cookie // by scheme, host and port
}

// authCookie is Hadoop's.
const authCookie = "hadoop.auth"

// maxReplay bounds a body that is kept for being sent again.
const maxReplay = 64 << 20

// direct is a transport that follows no proxy of the environment's, which does not mean the cluster.
var direct = sync.OnceValue(func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	return t
})

// CloseIdleConnections closes connections that are not in use.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = direct()
	}
	again, err := replayable(req)
	if err != nil {
		return nil, err
	}
	origin := req.URL.Scheme + "://" + req.URL.Host
	first, err := again()
	if err != nil {
		return nil, err
	}
	had := t.addCookies(first, origin)
	resp, err := base.RoundTrip(first)
	if err != nil {
		return nil, err
	}
	if !t.refused(resp, had) {
		t.keep(resp, origin)
		return resp, nil
	}
	if had {
		t.forget(origin)
	}
	// A server that refused a cookie without saying how to do better is asked once more from the start.
	drain(resp)
	second, err := again()
	if err != nil {
		return nil, err
	}
	c, err := t.prove(second)
	if err != nil {
		return nil, fmt.Errorf("cannot authenticate to %s: %w", origin, err)
	}
	if resp, err = base.RoundTrip(second); err != nil {
		return nil, err
	}
	if err := checkProof(resp, c, req.URL.Scheme == "https"); err != nil {
		drain(resp)
		return nil, fmt.Errorf("cannot authenticate to %s: %w", origin, err)
	}
	t.keep(resp, origin)
	return resp, nil
}

// replayable returns what makes copies of a request, each with the body from its start.
func replayable(req *http.Request) (func() (*http.Request, error), error) {
	open := req.GetBody
	if req.Body == nil || req.Body == http.NoBody {
		open = func() (io.ReadCloser, error) { return http.NoBody, nil }
	} else if open == nil {
		b, err := io.ReadAll(io.LimitReader(req.Body, maxReplay+1))
		req.Body.Close()
		if err != nil {
			return nil, err
		}
		if len(b) > maxReplay {
			return nil, fmt.Errorf("cannot send a request to %s: its body is longer than %d bytes and cannot be sent twice", req.URL.Host, maxReplay)
		}
		open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	} else {
		req.Body.Close()
	}
	return func() (*http.Request, error) {
		body, err := open()
		if err != nil {
			return nil, err
		}
		r := req.Clone(req.Context())
		r.Body = body
		if body == http.NoBody {
			r.Body = nil
		}
		return r, nil
	}, nil
}

// refused reports whether the server wants a proof: it says so, or no longer takes its cookie.
func (t *Transport) refused(resp *http.Response, had bool) bool {
	if resp.StatusCode == http.StatusUnauthorized {
		_, ok := challenge(resp)
		return ok || had
	}
	if resp.StatusCode == http.StatusForbidden && had {
		for _, c := range resp.Cookies() {
			if c.Name == authCookie && c.Value == "" {
				return true
			}
		}
	}
	return false
}

// challenge returns the token of a WWW-Authenticate: Negotiate, which may be empty.
func challenge(resp *http.Response) (token string, ok bool) {
	for _, h := range resp.Header.Values("WWW-Authenticate") {
		for part := range strings.SplitSeq(h, ",") {
			scheme, rest, _ := strings.Cut(strings.TrimSpace(part), " ")
			if strings.EqualFold(scheme, "Negotiate") {
				return strings.TrimSpace(rest), true
			}
		}
	}
	return "", false
}

// prove puts a ticket for the request's host on it.
func (t *Transport) prove(req *http.Request) (*Context, error) {
	now := time.Now
	if t.Now != nil {
		now = t.Now
	}
	service := Principal{Parts: []string{"HTTP", strings.ToLower(strings.TrimSuffix(req.URL.Hostname(), "."))}}
	tkt, err := t.Login.Ticket(req.Context(), service)
	if err != nil {
		return nil, err
	}
	c, token, err := tkt.Initiate(now())
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Negotiate "+base64.StdEncoding.EncodeToString(negotiateInit(token)))
	return c, nil
}

// checkProof checks that a server that took our ticket could read it. Over TLS its certificate says who it is already, and a proxy may have dropped the proof.
func checkProof(resp *http.Response, c *Context, tls bool) error {
	token, ok := challenge(resp)
	if !ok || token == "" {
		if resp.StatusCode < 200 || resp.StatusCode > 399 || tls {
			return nil // refused all the same, which the caller will see
		}
		return errors.New("the server takes our ticket but does not prove that it is the one it is for")
	}
	b, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		return errors.New("the server's answer is not base64")
	}
	inner, err := negotiateAnswer(b)
	if err != nil {
		return err
	}
	if inner == nil {
		return errors.New("the server's answer has no proof in it")
	}
	return c.Accept(inner)
}

func drain(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
	resp.Body.Close()
}

func (t *Transport) addCookies(req *http.Request, origin string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.cookies[origin] {
		// Hadoop wants the quotes that it put around the value.
		req.Header.Add("Cookie", c.Name+`="`+strings.Trim(c.Value, `"`)+`"`)
	}
	return len(t.cookies[origin]) > 0
}

func (t *Transport) keep(resp *http.Response, origin string) {
	var got []*http.Cookie
	for _, c := range resp.Cookies() {
		if c.Name == authCookie && c.Value != "" {
			got = append(got, c)
		}
	}
	if len(got) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cookies == nil {
		t.cookies = map[string][]*http.Cookie{}
	}
	t.cookies[origin] = got
}

func (t *Transport) forget(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.cookies, origin)
}
