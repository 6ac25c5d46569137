package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/heddle-stream/heddle/appmaster/web"
	"github.com/heddle-stream/heddle/yarnclient"
)

// keyHTTPSPolicy is whether ApplicationMasters speak HTTPS: NONE, LENIENT (they may) or STRICT.
const keyHTTPSPolicy = "yarn.resourcemanager.application-https.policy"

// directWeb is where an ApplicationMaster is asked directly, as far as that is known: it may speak HTTPS, and has no certificate that anybody but YARN's proxy can verify. unsure: or it
// speaks HTTP at that address.
func (h *hadoop) directWeb(app yarnclient.App) (addr string, unsure bool) {
	if u, err := url.Parse(app.AMWeb); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return u.Scheme + "://" + app.AMAddress, false
	}
	switch h.httpsPolicy() {
	case policyStrict:
		return "https://" + app.AMAddress, false
	case policyLenient:
		return "https://" + app.AMAddress, true
	}
	return "http://" + app.AMAddress, false
}

// Values of keyHTTPSPolicy.
const (
	policyStrict  = "STRICT"
	policyLenient = "LENIENT"
)

// httpsPolicy is the value of keyHTTPSPolicy, as the configuration that we have says.
func (h *hadoop) httpsPolicy() string {
	v, err := h.conf.String(keyHTTPSPolicy)
	if err != nil {
		return ""
	}
	return v
}

// encrypt learns by which certificate the ApplicationMaster speaks TLS, if it does, before anything is proven to it.
func (c *client) encrypt(ctx context.Context) error {
	addr, ok := strings.CutPrefix(c.web, "https://")
	if !ok || c.channel != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.http.Timeout)
	defer cancel()
	ch, err := web.Meet(ctx, addr)
	if errors.Is(err, web.ErrPlain) && c.unsure {
		c.web = "http://" + addr
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot speak TLS with the ApplicationMaster of %s: %w", c.id, err)
	}
	c.channel = ch
	c.http.Transport = &http.Transport{Proxy: nil, TLSClientConfig: ch.TLS()}
	return nil
}

// secret is what we have to prove to the ApplicationMaster; ok is false if others say who we are.
func (c *client) secret() (x web.Secret, ok bool) {
	switch {
	case c.token != "":
		return web.ByToken(c.token), true
	case c.ticket != nil:
		return web.ByTicket(c.ticket.Identifier, c.ticket.Password), true
	}
	return x, false
}

// prove adds to a request what proves who we are, if there is anything. The returned function looks at who answers. Neither token itself goes over a network.
func (c *client) prove(req *http.Request, payload []byte) func(*http.Response) error {
	x, ok := c.secret()
	if !ok {
		return func(*http.Response) error { return nil }
	}
	check := x.Prove(req, payload, c.channel)
	return func(resp *http.Response) error {
		if resp.StatusCode == http.StatusUnauthorized { // it can't prove anything to whom it does not know
			return nil
		}
		return check(resp)
	}
}
