package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/kms"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
)

// keyProviders of Hadoop's configuration list where keys are kept.
const keyProviders = "hadoop.security.key.provider.path"

// KeyServer finds the key server of a file system that says that its provider is so; "": the one that the configuration names. It is nil where there is none.
func (i *Identity) KeyServer(advertised string) (*kms.Client, error) {
	provider, err := i.provider(advertised)
	if provider == "" || err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if c := i.kms[provider]; c != nil {
		return c, nil
	}
	transport, authorize := i.web(func() (token.Token, bool) { return i.keyToken(provider) }, "the key server "+provider)
	c, err := kms.New(provider, hrest.Config{Transport: transport, Authorize: authorize})
	if err != nil {
		return nil, err
	}
	if i.kms == nil {
		i.kms = map[string]*kms.Client{}
	}
	i.kms[provider] = c
	return c, nil
}

// provider chooses among providers: of several, a key server.
func (i *Identity) provider(advertised string) (string, error) {
	list := strings.Split(advertised, ",")
	if advertised == "" {
		var err error
		if list, err = i.conf.List(keyProviders); err != nil {
			return "", err
		}
	}
	for _, p := range list {
		if p = strings.TrimSpace(p); strings.HasPrefix(p, "kms://") {
			return p, nil
		}
	}
	if len(list) > 0 && list[0] != "" {
		return "", fmt.Errorf("its keys are in %s, which is no key server (KMS)", list[0])
	}
	return "", nil
}

// keys is KeyServer for package hdfs.
func (i *Identity) keys(advertised string) (hdfs.KeyServer, error) {
	c, err := i.KeyServer(advertised)
	if c == nil || err != nil {
		return nil, err
	}
	return c, nil
}

// keyToken is the token for a key server: Java's clients name it after the provider, older ones after a server.
func (i *Identity) keyToken(provider string) (token.Token, bool) {
	tokens := i.Credentials().Of(kms.TokenKind)
	for _, t := range tokens {
		if t.Service == provider {
			return t, true
		}
	}
	if len(tokens) == 1 {
		return tokens[0], true
	}
	return token.Token{}, false
}

// keyPatience bounds what is asked of one key server for its token: an application may do without.
const keyPatience = 30 * time.Second

// KeyTokenError is that key servers gave no delegation tokens. What is in no encryption zone of their file systems can be used without.
type KeyTokenError struct {
	Systems []string // their URIs
	Err     error
}

// Error implements error.
func (e *KeyTokenError) Error() string {
	return fmt.Sprintf("%v; without it the application can't read or write in encryption zones of %s", e.Err, strings.Join(e.Systems, ", "))
}

// Unwrap returns what the key servers said.
func (e *KeyTokenError) Unwrap() error { return e.Err }

// otherThanKeys is an error unless it is a KeyTokenError.
func otherThanKeys(err error) error {
	if _, ok := errors.AsType[*KeyTokenError](err); ok {
		return nil
	}
	return err
}

// keyTokens fetches delegation tokens of the key servers of file systems, which renewer may renew, and calls each with its client. Where the cluster has no
// security, or no key server, there are none. Every key server is asked; a KeyTokenError tells which failed.
func (i *Identity) keyTokens(ctx context.Context, systems []hconf.FileSystem, renewer string, each func(context.Context, *kms.Client, token.Token) error) error {
	seen := map[*kms.Client]bool{}
	var failed KeyTokenError
	for _, s := range systems {
		c, err := i.keyServerOf(ctx, s)
		if err != nil {
			return err
		}
		if c == nil || seen[c] {
			continue
		}
		seen[c] = true
		if err := i.keyTokenOf(ctx, c, renewer, each); err != nil {
			failed.Systems, failed.Err = append(failed.Systems, s.URI), errors.Join(failed.Err, err)
		}
	}
	if failed.Err != nil {
		return &failed
	}
	return nil
}

// keyTokenOf fetches the token of one key server.
func (i *Identity) keyTokenOf(ctx context.Context, c *kms.Client, renewer string, each func(context.Context, *kms.Client, token.Token) error) error {
	ctx, cancel := context.WithTimeout(ctx, keyPatience)
	defer cancel()
	t, ok, err := c.Token(ctx, renewer)
	if err == nil && ok {
		err = each(ctx, c, t)
	}
	return err
}

// keyServerOf finds the key server of a file system, nil if there is none, or keys are kept elsewhere.
func (i *Identity) keyServerOf(ctx context.Context, s hconf.FileSystem) (*kms.Client, error) {
	cfg, err := i.HDFS()
	if err != nil {
		return nil, err
	}
	cfg.NameNodes = s.NameNodes
	f, err := hdfs.Open(cfg)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	advertised, err := f.KeyProvider(ctx)
	if err != nil {
		return nil, err
	}
	if c, err := i.KeyServer(advertised); err == nil {
		return c, nil
	}
	return nil, nil // who reads or writes in a zone will hear why
}

// fetchKeyTokens fetches tokens that the ResourceManager may renew.
func (i *Identity) fetchKeyTokens(ctx context.Context, systems []hconf.FileSystem, renewer string) (out []token.Named, err error) {
	err = i.keyTokens(ctx, systems, renewer, func(_ context.Context, _ *kms.Client, t token.Token) error {
		out = append(out, token.Named{Alias: t.Service, Token: t})
		return nil
	})
	return out, err
}

// refreshKeyTokens fetches tokens that we renew ourselves, and tells until when each is good.
func (i *Identity) refreshKeyTokens(ctx context.Context, systems []hconf.FileSystem, renewer string) (out []token.Named, until map[string]time.Time, err error) {
	until = map[string]time.Time{}
	err = i.keyTokens(ctx, systems, renewer, func(ctx context.Context, c *kms.Client, t token.Token) error {
		end, err := c.Renew(ctx, t)
		if err == nil {
			out = append(out, token.Named{Alias: t.Service, Token: t})
			until[t.Service] = end
		}
		return err
	})
	return out, until, err
}

// CancelKeys ends a token of a key server.
func (i *Identity) CancelKeys(ctx context.Context, t token.Token) error {
	c, err := i.KeyServer(t.Service)
	if err != nil {
		return err
	}
	if c == nil {
		return errors.New("cannot cancel the token of a key server: it does not say of which")
	}
	return c.Cancel(ctx, t)
}

// web is how to ask a web service that takes delegation tokens of its own: by a ticket where there is one, else by the token that find finds.
func (i *Identity) web(find func() (token.Token, bool), what string) (http.RoundTripper, func(*http.Request) error) {
	if !i.kerberos || i.login != nil {
		transport, auth := i.REST(nil)
		return transport, auth.Authorize
	}
	return ssl.NewTransport(i.tls), func(r *http.Request) error {
		t, ok := find()
		if !ok {
			return fmt.Errorf("there is neither a Kerberos ticket nor a delegation token for %s", what)
		}
		return byGatewayToken(t)(r)
	}
}
