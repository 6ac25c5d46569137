package identity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
)

// Properties of Hadoop's configuration that are ours: how HDFS is spoken to over HTTP.
const (
	KeyWebURI  = "heddle.hdfs.http-uri"  // webhdfs, or addresses of HttpFS or Knox, separated by commas; unset: by RPC
	KeyWebUser = "heddle.hdfs.http-user" // who logs in there by a password
)

// NameNodesWeb is the value of KeyWebURI for the NameNodes' own service, WebHDFS.
const NameNodesWeb = "webhdfs"

// webPath is what is behind an address that has no path.
const webPath = "/webhdfs/v1"

// kindsOfWeb are the kinds of tokens that services of HDFS over HTTP give.
var kindsOfWeb = []string{"WEBHDFS delegation", "SWEBHDFS delegation"}

// OfGateway reports whether a token is one of HttpFS's.
func OfGateway(t token.Token) bool { return slices.Contains(kindsOfWeb, t.Kind) }

// gateway is how HDFS is spoken to over HTTP.
type gateway struct {
	bases          []string // empty: NameNodes'
	user, password string   // "": Hadoop's own proofs
}

// openGateway reads how HDFS is spoken to over HTTP; nil: it is not.
func openGateway(conf *hconf.Conf, password string) (*gateway, error) {
	list, err := conf.List(KeyWebURI)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	g := &gateway{password: password}
	if g.user, err = conf.String(KeyWebUser); err != nil {
		return nil, err
	}
	if len(list) == 1 && list[0] == NameNodesWeb {
		if g.user != "" {
			return nil, errors.New("cannot log in to NameNodes by a password: name HttpFS or Knox by hdfs.http-uri, or leave hdfs.http-user out")
		}
		return g, nil
	}
	for _, text := range list {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("cannot use hdfs.http-uri: it is neither webhdfs nor an address such as https://gateway:14000/webhdfs/v1, without a user and a question mark")
		}
		if strings.Trim(u.Path, "/") == "" {
			u.Path = webPath
		}
		if g.user != "" && u.Scheme != "https" {
			return nil, fmt.Errorf("cannot send a password to %s in clear: name it by https", u.Host)
		}
		g.bases = append(g.bases, strings.TrimSuffix(u.String(), "/"))
	}
	return g, nil
}

// CheckHTTP reports why HDFS can't be spoken to over HTTP as a configuration says, nil if it can or is not.
func CheckHTTP(conf *hconf.Conf) error {
	_, err := openGateway(conf, "")
	return err
}

// OverHTTP reports whether the default file system is spoken to over HTTP, and if so, whether by a password.
func (i *Identity) OverHTTP() (yes, password bool) {
	return i.gateway != nil, i.gateway != nil && i.gateway.user != ""
}

// webOf is hdfs.Config.Web: for the default file system, or any where NameNodes speak WebHDFS themselves.
func (i *Identity) webOf(nameNodes []string) (hdfs.Web, error) {
	if len(i.gateway.bases) > 0 {
		def, err := i.conf.DefaultFS()
		if err == nil && !slices.Equal(def.NameNodes, nameNodes) {
			return hdfs.Web{}, nil
		}
		return i.gatewayWeb(), nil
	}
	web := hdfs.Web{}
	for _, nn := range nameNodes {
		at, err := i.conf.NameNodeWeb(nn)
		if err != nil {
			return web, err
		}
		web.Bases = append(web.Bases, at+webPath)
	}
	if !i.kerberos || i.login != nil {
		transport, auth := i.REST(nil)
		web.Transport, web.Authorize = transport, auth.Authorize
		return web, nil
	}
	web.Transport = ssl.NewTransport(i.tls)
	web.Authorize = func(r *http.Request) error { // a NameNode looks for it in the address alone
		for _, nn := range nameNodes {
			if t, ok := i.hdfsToken(nn); ok {
				return params{"delegation": t.URLString()}.Authorize(r)
			}
		}
		return errors.New("there is neither a Kerberos ticket nor a delegation token for HDFS")
	}
	return web, nil
}

// gatewayWeb is how HttpFS or Knox is spoken to.
func (i *Identity) gatewayWeb() hdfs.Web {
	g := i.gateway
	web := hdfs.Web{Bases: g.bases}
	if g.user != "" {
		web.Transport = ssl.NewTransport(i.tls)
		web.Authorize = func(r *http.Request) error {
			r.SetBasicAuth(g.user, g.password)
			return nil
		}
		return web
	}
	web.Transport, web.Authorize = i.web(i.gatewayToken, "HttpFS ("+strings.Join(g.bases, ", ")+")")
	return web
}

// gatewayToken is the token that HttpFS gave.
func (i *Identity) gatewayToken() (token.Token, bool) {
	for _, kind := range kindsOfWeb {
		for _, t := range i.Credentials().Of(kind) {
			return t, true
		}
	}
	return token.Token{}, false
}

// givesTokens reports whether HDFS is spoken to by a service that has tokens of its own.
func (i *Identity) givesTokens() bool {
	return i.gateway != nil && len(i.gateway.bases) > 0 && i.gateway.user == ""
}

// gatewayDelegation fetches a token of HttpFS, which renewer may renew, and gives it to use, unless that is nil.
func (i *Identity) gatewayDelegation(ctx context.Context, renewer string, use func(*hrest.Client, token.Token) error) ([]token.Named, error) {
	if !i.givesTokens() {
		return nil, nil
	}
	c, err := hrest.New(i.gatewayWeb())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	where := strings.Join(i.gateway.bases, ", ")
	t, ok, err := c.Token(ctx, "/", renewer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot get a delegation token of %s: %w", where, err)
	case !ok:
		return nil, nil
	case !OfGateway(t):
		return nil, fmt.Errorf("cannot use the delegation token of %s: its kind is %q", where, t.Kind)
	}
	if t.Service, err = i.gatewayService(); err != nil {
		return nil, err
	}
	if err := i.tryGatewayToken(ctx, t); err != nil {
		_ = c.Cancel(ctx, "/", t) // else it ends by itself
		return nil, err
	}
	if use != nil {
		err = use(c, t)
	}
	return []token.Named{{Alias: t.Service, Token: t}}, err
}

// gatewayService is how Java's clients find the token of HttpFS.
func (i *Identity) gatewayService() (string, error) {
	u, err := url.Parse(i.gateway.bases[0])
	if err != nil {
		return "", err
	}
	server := u.Host
	if u.Port() == "" {
		server = net.JoinHostPort(u.Hostname(), map[bool]string{true: "443", false: "80"}[u.Scheme == "https"])
	}
	return i.service(server)
}

// tryGatewayToken asks by a token alone, as containers do. A Knox that authenticates by Kerberos passes on a NameNode's token, and does not take it.
func (i *Identity) tryGatewayToken(ctx context.Context, t token.Token) error {
	c, err := hrest.New(hrest.Config{Bases: i.gateway.bases, Transport: ssl.NewTransport(i.tls), Authorize: byGatewayToken(t)})
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.JSON(ctx, hrest.Request{Method: http.MethodGet, Path: "/", Query: url.Values{"op": {"GETHOMEDIRECTORY"}}}, nil)
	if s, ok := errors.AsType[*hrest.StatusError](err); ok && s.Status == http.StatusUnauthorized {
		return fmt.Errorf("cannot use %s: it gives a delegation token that it does not take itself, as Knox does where it authenticates by Kerberos, and containers have no ticket. "+
			"Log in there by hdfs.http-user, or have hdfs.http-uri name HttpFS or webhdfs", strings.Join(i.gateway.bases, ", "))
	}
	return err
}

// byGatewayToken puts a token onto a request to HttpFS, or to a key server.
func byGatewayToken(t token.Token) func(*http.Request) error {
	return func(r *http.Request) error {
		r.Header.Set("X-Hadoop-Delegation-Token", t.URLString())
		return nil
	}
}

// refreshGateway fetches a token of HttpFS that we renew ourselves, and tells until when it is good.
func (i *Identity) refreshGateway(ctx context.Context, renewer string) (named []token.Named, end time.Time, err error) {
	named, err = i.gatewayDelegation(ctx, renewer, func(c *hrest.Client, t token.Token) (err error) {
		end, err = c.Renew(ctx, "/", t)
		return err
	})
	return named, end, err
}

// CancelGateway ends a token of HttpFS.
func (i *Identity) CancelGateway(ctx context.Context, t token.Token) error {
	if !i.givesTokens() {
		return fmt.Errorf("cannot cancel the token for %s: HDFS is not spoken to by a service that gives such tokens", t.Service)
	}
	c, err := hrest.New(i.gatewayWeb())
	if err != nil {
		return err
	}
	defer c.Close()
	if len(t.Password) == 0 { // it knows then whose token it is by nothing but the caller, whom it asks for no proof at a cancellation: let it know us by a cookie
		who := hrest.Request{Method: http.MethodGet, Path: "/", Query: url.Values{"op": {"GETHOMEDIRECTORY"}}}
		if err := c.JSON(ctx, who, nil); err != nil {
			return fmt.Errorf("cannot cancel the token for %s: %w", t.Service, err)
		}
	}
	return c.Cancel(ctx, "/", t)
}

// NeedsTLS reports whether HDFS over HTTP, or the key server that the configuration names, is spoken to by TLS.
func (i *Identity) NeedsTLS() bool {
	if i.gateway != nil && slices.ContainsFunc(i.gateway.bases, func(b string) bool { return strings.HasPrefix(b, "https:") }) {
		return true
	}
	provider, err := i.provider("")
	return err == nil && strings.HasPrefix(provider, "kms://https@")
}
