// Package kms asks a key management server of Hadoop's to open the keys of files that are in encryption zones.
package kms

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// TokenKind is what delegation tokens of key servers are called.
const TokenKind = token.KindKMS

// defaultPort is that of a key server.
const defaultPort = "9600"

// Bases are the addresses of the servers that a provider's URI names: kms://https@host1;host2:9600/kms.
func Bases(provider string) ([]string, error) {
	bad := func(why string) ([]string, error) {
		return nil, fmt.Errorf("cannot use the key provider %q: %s; it must be like kms://https@host:9600/kms", provider, why)
	}
	rest, ok := strings.CutPrefix(provider, "kms://")
	if !ok {
		return bad("it is no key server (KMS)")
	}
	scheme, rest, ok := strings.Cut(rest, "@")
	if !ok || scheme != "http" && scheme != "https" {
		return bad("it says neither http nor https")
	}
	hosts, path, _ := strings.Cut(rest, "/")
	port := defaultPort
	if i := strings.LastIndexByte(hosts, ':'); i >= 0 && !strings.HasSuffix(hosts, "]") {
		hosts, port = hosts[:i], hosts[i+1:]
	}
	var out []string
	for h := range strings.SplitSeq(hosts, ";") {
		if h = strings.Trim(h, "[]"); h == "" || strings.ContainsAny(h, " /?#") || strings.Trim(port, "0123456789") != "" || port == "" {
			return bad("a host or its port is missing")
		}
		out = append(out, scheme+"://"+net.JoinHostPort(h, port)+"/"+strings.Trim(path, "/")+"/v1")
	}
	return out, nil
}

// Client asks the servers of one provider. It is for concurrent use.
type Client struct {
	provider string
	rest     *hrest.Client
}

// New makes a client. Of cfg, Bases do not matter. It asks nobody.
func New(provider string, cfg hrest.Config) (*Client, error) {
	var err error
	if cfg.Bases, err = Bases(provider); err != nil {
		return nil, err
	}
	c := &Client{provider: provider}
	c.rest, err = hrest.New(cfg)
	return c, err
}

// Decrypt opens the key of a file, that was sealed by a version of a zone's key.
func (c *Client) Decrypt(ctx context.Context, name, version string, iv, sealed []byte) ([]byte, error) {
	url64 := base64.RawURLEncoding
	body, err := json.Marshal(map[string]string{"name": name, "iv": url64.EncodeToString(iv), "material": url64.EncodeToString(sealed)})
	if err != nil {
		return nil, err
	}
	var j struct{ Material string }
	r := hrest.Request{Method: http.MethodPost, Path: "/keyversion/" + url.PathEscape(version) + "/_eek", Query: url.Values{"eek_op": {"decrypt"}}, Body: body, Safe: true}
	err = c.rest.JSON(ctx, r, &j)
	if err != nil {
		return nil, fmt.Errorf("cannot have the key server (%s) open a key of %s: %w", c.provider, name, err)
	}
	key, err := url64.DecodeString(strings.TrimRight(strings.NewReplacer("+", "-", "/", "_", "\n", "", "\r", "").Replace(j.Material), "="))
	if err != nil || len(key) == 0 {
		return nil, fmt.Errorf("cannot use the key of %s that the key server (%s) gave: it is not base64", name, c.provider)
	}
	if bytes.Equal(key, sealed) {
		return nil, errors.New("cannot use a key that the key server did not open")
	}
	return key, nil
}

// tokens are at the root of the servers' paths.
const tokens = "/"

// Token fetches a delegation token that renewer may renew, for all servers of the provider. ok is false where they have no security.
func (c *Client) Token(ctx context.Context, renewer string) (t token.Token, ok bool, err error) {
	if t, ok, err = c.rest.Token(ctx, tokens, renewer); err != nil {
		return t, false, fmt.Errorf("cannot get a delegation token of the key server (%s): %w", c.provider, err)
	}
	if ok && t.Kind == "" {
		t.Kind = TokenKind
	}
	t.Service = c.provider // by which Java's clients find it, whichever server they ask
	return t, ok, nil
}

// Renew prolongs a token, which its renewer may, and returns until when.
func (c *Client) Renew(ctx context.Context, t token.Token) (time.Time, error) {
	return c.rest.Renew(ctx, tokens, t)
}

// Cancel ends a token.
func (c *Client) Cancel(ctx context.Context, t token.Token) error {
	return c.rest.Cancel(ctx, tokens, t)
}

// Close closes connections that are not in use.
func (c *Client) Close() { c.rest.Close() }
