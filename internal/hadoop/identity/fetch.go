package identity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

// Issuer gives tokens of the ResourceManager's.
type Issuer interface {
	DelegationToken(ctx context.Context, renewer string) (token.Token, error)
}

// Fetch gets delegation tokens for file systems and, unless rm is nil, for the ResourceManager, which the latter may renew. With tokens alone we
// get no others, and hand on those we have. A cluster without security needs none. With a KeyTokenError there are all tokens but those of key servers.
func (i *Identity) Fetch(ctx context.Context, systems []hconf.FileSystem, rm Issuer) (token.Credentials, error) {
	var out token.Credentials
	if !i.kerberos {
		return out, nil
	}
	if i.login == nil {
		have := i.Credentials().Without(token.KindAMRM)
		out.Tokens = have.Tokens
		return out, nil
	}
	renewer, err := i.renewer(ctx)
	if err != nil {
		return out, err
	}
	for _, s := range systems {
		t, err := i.hdfsDelegation(ctx, s, renewer)
		if err != nil {
			return out, err
		}
		out.Tokens = append(out.Tokens, token.Named{Alias: t.Service, Token: t})
	}
	keys, keyless := i.fetchKeyTokens(ctx, systems, renewer)
	if err := otherThanKeys(keyless); err != nil {
		return out, err
	}
	out.Tokens = append(out.Tokens, keys...)
	gateway, err := i.gatewayDelegation(ctx, renewer, nil)
	if err != nil {
		return out, err
	}
	out.Tokens = append(out.Tokens, gateway...)
	if rm == nil {
		return out, keyless
	}
	t, err := rm.DelegationToken(ctx, renewer)
	if err != nil {
		return out, err
	}
	if t.Service, err = i.rmService(); err != nil {
		return out, err
	}
	out.Tokens = append(out.Tokens, token.Named{Alias: t.Service, Token: t})
	return out, keyless
}

func (i *Identity) hdfsDelegation(ctx context.Context, s hconf.FileSystem, renewer string) (token.Token, error) {
	cfg, err := i.HDFS()
	if err != nil {
		return token.Token{}, err
	}
	cfg.NameNodes = s.NameNodes
	f, err := hdfs.Open(cfg)
	if err != nil {
		return token.Token{}, err
	}
	defer f.Close()
	t, ok, err := f.DelegationToken(ctx, renewer)
	if err != nil {
		return token.Token{}, fmt.Errorf("%s: %w", s.URI, err)
	}
	if !ok {
		return token.Token{}, fmt.Errorf("%s gives no delegation tokens, though the cluster's configuration demands Kerberos", s.URI)
	}
	t.Service, err = i.serviceOf(s)
	return t, err
}

// serviceOf is how Java's clients find the token of a file system.
func (i *Identity) serviceOf(s hconf.FileSystem) (string, error) {
	if s.Logical != "" && len(s.NameNodes) > 1 {
		return haPrefix + s.Logical, nil
	}
	if len(s.NameNodes) == 0 {
		return "", errors.New(s.URI + " has no NameNode")
	}
	return i.service(s.NameNodes[0])
}

// service is the name of a server in tokens: its address, or its name where hadoop.security.token.service.use_ip is false.
func (i *Identity) service(server string) (string, error) {
	byIP, err := i.conf.Bool("hadoop.security.token.service.use_ip", true)
	if err != nil {
		return "", err
	}
	names := services(server)
	if byIP && len(names) > 1 {
		return names[1], nil
	}
	return names[0], nil
}

// rmService names all ResourceManagers, each of which may take the token.
func (i *Identity) rmService() (string, error) {
	rms, err := i.conf.RMs()
	if err != nil {
		return "", err
	}
	var all []string
	for _, rm := range rms {
		s, err := i.service(rm.Client)
		if err != nil {
			return "", err
		}
		all = append(all, s)
	}
	return strings.Join(all, ","), nil
}

// renewer is the ResourceManager's principal, which renews the tokens of what it runs.
func (i *Identity) renewer(ctx context.Context) (string, error) {
	const key = "yarn.resourcemanager.principal"
	v, err := i.conf.String(key)
	if err != nil {
		return "", err
	}
	if v == "" {
		return "", fmt.Errorf("cannot fetch delegation tokens: %s, who is to renew them, is not set in Hadoop's configuration", key)
	}
	rms, err := i.conf.RMs()
	if err != nil {
		return "", err
	}
	host, _, err := net.SplitHostPort(rms[0].Client)
	if err != nil {
		return "", err
	}
	if net.ParseIP(host) != nil { // _HOST stands for a name
		ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
		defer cancel()
		if names, err := net.DefaultResolver.LookupAddr(ctx, host); err == nil && len(names) > 0 {
			host = names[0]
		}
	}
	p, err := krb.ServicePrincipal(v, host)
	if err != nil {
		return "", err
	}
	return p.String(), nil
}

// Refresh gets new delegation tokens for file systems, for processes that have no ticket, and tells by alias until when they are good. We are their renewer
// ourselves, and nobody renews them: they are to be replaced in time. With a KeyTokenError there are all but those of key servers.
func (i *Identity) Refresh(ctx context.Context, systems []hconf.FileSystem) (token.Credentials, map[string]time.Time, error) {
	var out token.Credentials
	until := map[string]time.Time{}
	if i.login == nil {
		return out, until, errors.New("cannot get new delegation tokens without a Kerberos login")
	}
	for _, s := range systems {
		t, end, err := i.renewed(ctx, s)
		if err != nil {
			return out, until, err
		}
		out.Tokens = append(out.Tokens, token.Named{Alias: t.Service, Token: t})
		until[t.Service] = end
	}
	keys, ends, keyless := i.refreshKeyTokens(ctx, systems, i.ourselves())
	if err := otherThanKeys(keyless); err != nil {
		return out, until, err
	}
	out.Tokens = append(out.Tokens, keys...)
	maps.Copy(until, ends)
	gateway, end, err := i.refreshGateway(ctx, i.ourselves())
	if err != nil {
		return out, until, err
	}
	for _, t := range gateway {
		out.Tokens = append(out.Tokens, t)
		until[t.Alias] = end
	}
	return out, until, keyless
}

// ourselves is our name as a renewer of tokens.
func (i *Identity) ourselves() string {
	if i.real != "" {
		return i.user
	}
	return i.login.Principal().String()
}

// renewed gets a token for a file system that we may renew, and renews it, by which alone a client learns how long it is good.
func (i *Identity) renewed(ctx context.Context, s hconf.FileSystem) (token.Token, time.Time, error) {
	t, err := i.hdfsDelegation(ctx, s, i.ourselves())
	if err != nil {
		return t, time.Time{}, err
	}
	var end time.Time
	err = i.onHDFS(s, func(f *hdfs.FS) error {
		end, err = f.RenewToken(ctx, t)
		return err
	})
	return t, end, err
}

// onHDFS does something with a connection to a file system.
func (i *Identity) onHDFS(s hconf.FileSystem, do func(*hdfs.FS) error) error {
	cfg, err := i.HDFS()
	if err != nil {
		return err
	}
	cfg.NameNodes = s.NameNodes
	f, err := hdfs.Open(cfg)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// CancelHDFS ends a token of one of the file systems. Its password is not needed.
func (i *Identity) CancelHDFS(ctx context.Context, systems []hconf.FileSystem, t token.Token) error {
	for _, s := range systems {
		if service, err := i.serviceOf(s); err != nil || service != t.Service {
			continue
		}
		return i.onHDFS(s, func(f *hdfs.FS) error { return f.CancelToken(ctx, t) })
	}
	return fmt.Errorf("cannot cancel the token for %s: that is no file system of this application", t.Service)
}

// Owns reports whether a delegation token was made for our user.
func (i *Identity) Owns(t token.Token) bool {
	d, err := t.Delegation()
	if err != nil {
		return false
	}
	p, err := krb.ParsePrincipal(d.Owner)
	if err != nil {
		return false
	}
	if p.Realm == "" {
		return p.Short() == i.user
	}
	u, err := i.conf.ShortName(p.Parts, p.Realm, i.realm())
	return err == nil && u == i.user
}

// Realm is that of our login, or of who owns the tokens that we have; "": it is not known.
func (i *Identity) Realm() string { return i.realm() }

// realm is that of our login, or of who owns the tokens that we have.
func (i *Identity) realm() string {
	if i.login != nil {
		return i.login.Principal().Realm
	}
	for _, t := range i.Credentials().Of(token.KindHDFS) {
		if d, err := t.Delegation(); err == nil {
			if p, err := krb.ParsePrincipal(d.Owner); err == nil && p.Realm != "" {
				return p.Realm
			}
		}
	}
	return ""
}
