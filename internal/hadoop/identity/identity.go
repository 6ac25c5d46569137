// Package identity is who a process is towards Hadoop, and how it proves that: by a Kerberos ticket from a cache or keytab, by delegation tokens that
// others fetched for it, or, where a cluster has no security, by its word.
package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/kms"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
)

// Config says who a process is to be.
type Config struct {
	Conf *hconf.Conf
	// Env is the environment; nil: the process's own.
	Env func(string) (string, bool)
	// Keytab and Principal log in to Kerberos; without a keytab the ticket cache does. KeytabData is the keytab's content, if it is no file here.
	Keytab, Principal string
	KeytabData        []byte
	// Kerberos is krb5.conf; nil: that of this host.
	Kerberos *krb.Conf
	// User is who we say we are where that is believed; "": HADOOP_USER_NAME, else USER.
	User string
	// Credentials are the tokens we have; nil: those of the file that HADOOP_TOKEN_FILE_LOCATION names.
	Credentials *token.Credentials
	// WebPassword is that of who KeyWebUser says.
	WebPassword string
	// TLS says whom to trust; nil: what ssl-client.xml beside Conf says.
	TLS    *ssl.Settings
	Logger *slog.Logger // nil: none
}

// Identity is a user and its proofs. It is for concurrent use.
type Identity struct {
	// Immutable.
	conf     *hconf.Conf
	kerberos bool
	user     string
	real     string     // who acts for user, and proves to be it; "": user itself
	login    *krb.Login // nil: none
	log      *slog.Logger
	tls      func() (*ssl.Settings, error)
	gateway  *gateway // nil: HDFS is spoken to by RPC

	mu    sync.Mutex // guards the following
	creds token.Credentials
	kms   map[string]*kms.Client // by provider
}

// Open finds out who we are. It asks nobody outside the process.
func Open(cfg Config) (*Identity, error) {
	if cfg.Env == nil {
		cfg.Env = os.LookupEnv
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	i := &Identity{conf: cfg.Conf, log: cfg.Logger}
	i.tls = sync.OnceValues(func() (*ssl.Settings, error) {
		if cfg.TLS != nil {
			return cfg.TLS, nil
		}
		return ssl.Load(cfg.Conf)
	})
	var err error
	if i.kerberos, err = cfg.Conf.Kerberos(); err != nil {
		return nil, err
	}
	if i.creds, err = credentials(cfg); err != nil {
		return nil, err
	}
	if i.gateway, err = openGateway(cfg.Conf, cfg.WebPassword); err != nil {
		return nil, err
	}
	if !i.kerberos {
		i.user = simpleUser(cfg)
		if i.user == "" {
			return nil, errors.New("cannot tell who we are: neither HADOOP_USER_NAME nor USER is set")
		}
	} else if err := i.logIn(cfg); err != nil {
		return nil, err
	}
	return i, i.actFor(cfg)
}

// actFor lets us be another user, if the environment says so.
func (i *Identity) actFor(cfg Config) error {
	p, ok := cfg.Env("HADOOP_PROXY_USER")
	switch {
	case !ok || p == "" || p == i.user:
		return nil
	case !i.kerberos:
		i.user, i.real = p, i.user
	case i.login == nil:
		return fmt.Errorf("cannot act for %s, as HADOOP_PROXY_USER says: there are only delegation tokens, which are %s's; log in to Kerberos as one who may act for others", p, i.user)
	default:
		i.user, i.real = p, i.login.Principal().String()
	}
	return nil
}

func credentials(cfg Config) (token.Credentials, error) {
	if cfg.Credentials != nil {
		return *cfg.Credentials, nil
	}
	file, ok := cfg.Env("HADOOP_TOKEN_FILE_LOCATION")
	if !ok || file == "" {
		return token.Credentials{}, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return token.Credentials{}, fmt.Errorf("cannot read the tokens that HADOOP_TOKEN_FILE_LOCATION names: %w", err)
	}
	c, err := token.Parse(b)
	if err != nil {
		return token.Credentials{}, fmt.Errorf("cannot use HADOOP_TOKEN_FILE_LOCATION (%s): %w", file, err)
	}
	return c, nil
}

func simpleUser(cfg Config) string {
	if cfg.User != "" {
		return cfg.User
	}
	for _, name := range []string{"HADOOP_USER_NAME", "USER", "LOGNAME"} {
		if v, ok := cfg.Env(name); ok && v != "" {
			return v
		}
	}
	return ""
}

// logIn opens the keytab or the ticket cache, and tells the user. Tokens alone will do.
func (i *Identity) logIn(cfg Config) error {
	kc := cfg.Kerberos
	var err error
	if kc == nil {
		kc, err = krb.LoadConf(cfg.Env)
	}
	if err == nil {
		i.login, err = krb.Open(krb.Config{Env: cfg.Env, Conf: kc, Keytab: cfg.Keytab, KeytabData: cfg.KeytabData, Principal: cfg.Principal, Logger: cfg.Logger})
	}
	if err != nil {
		i.login = nil
		if cfg.Keytab != "" || len(i.creds.Of(token.KindHDFS)) == 0 {
			return fmt.Errorf("cannot log in to the cluster, which demands Kerberos: %w", err)
		}
		i.log.Debug("no Kerberos login; delegation tokens will do", "err", err)
		i.user = i.owner(cfg)
		return nil
	}
	p := i.login.Principal()
	i.user, err = i.conf.ShortName(p.Parts, p.Realm, kc.DefaultRealm)
	return err
}

// owner is whom our tokens were made for.
func (i *Identity) owner(cfg Config) string {
	for _, t := range i.creds.Of(token.KindHDFS) {
		d, err := t.Delegation()
		if err != nil || d.Owner == "" {
			continue
		}
		p, err := krb.ParsePrincipal(d.Owner)
		if err != nil {
			continue
		}
		if p.Realm == "" {
			return p.Short()
		}
		if u, err := i.conf.ShortName(p.Parts, p.Realm, p.Realm); err == nil {
			return u
		}
	}
	return simpleUser(cfg)
}

// User is our name towards Hadoop.
func (i *Identity) User() string { return i.user }

// Real is who acts for our user, because HADOOP_PROXY_USER says so; "": our user itself.
func (i *Identity) Real() string { return i.real }

// Secure reports whether the cluster demands proof.
func (i *Identity) Secure() bool { return i.kerberos }

// Login is our login to Kerberos, nil if there is none.
func (i *Identity) Login() *krb.Login { return i.login }

// String describes how we prove who we are.
func (i *Identity) String() string {
	switch {
	case i.real != "" && i.login != nil:
		return fmt.Sprintf("%s (for whom %s acts, by %s)", i.user, i.real, i.login.Source())
	case i.real != "":
		return fmt.Sprintf("%s (for whom %s acts; the cluster has no security)", i.user, i.real)
	case !i.kerberos:
		return i.user + " (the cluster has no security)"
	case i.login != nil:
		return fmt.Sprintf("%s (%s, by %s)", i.user, i.login.Principal(), i.login.Source())
	}
	return i.user + " (by delegation tokens)"
}

// Credentials are the tokens and secrets that we have.
func (i *Identity) Credentials() token.Credentials {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.creds
}

// Replace puts fresh tokens in the place of those with the same aliases. Later connections use them.
func (i *Identity) Replace(fresh token.Credentials) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.creds = Merge(i.creds, fresh)
}

// Merge returns old with what fresh has put in the place of what has the same name, or added.
func Merge(old, fresh token.Credentials) token.Credentials {
	out := token.Credentials{Tokens: slices.Clone(fresh.Tokens), Secrets: slices.Clone(fresh.Secrets)}
	for _, t := range old.Tokens {
		if !slices.ContainsFunc(fresh.Tokens, func(f token.Named) bool { return f.Alias == t.Alias && f.Token.Kind == t.Token.Kind }) {
			out.Tokens = append(out.Tokens, t)
		}
	}
	for _, s := range old.Secrets {
		if !slices.ContainsFunc(fresh.Secrets, func(f token.Secret) bool { return f.Name == s.Name }) {
			out.Secrets = append(out.Secrets, s)
		}
	}
	return out
}

// prefersTicket reports whether tokens are left alone: a keytab outlives them.
func (i *Identity) prefersTicket() bool { return i.login != nil && i.login.CanRelogin() }

// proofs are what there is for servers whose principal a key of the configuration names.
func (i *Identity) proofs(principalKey string, find func(server string) (token.Token, bool)) ([]hrpc.Authenticator, error) {
	if !i.kerberos {
		return []hrpc.Authenticator{i.acting(hrpc.Simple(i.user))}, nil
	}
	principal, err := i.conf.String(principalKey)
	if err != nil {
		return nil, err
	}
	var out []hrpc.Authenticator
	if !i.prefersTicket() {
		out = append(out, hrpc.ByTokenFor(find))
	}
	if i.login != nil {
		if principal == "" {
			return nil, fmt.Errorf("cannot tell a server of the cluster from another: %s is not set in Hadoop's configuration", principalKey)
		}
		out = append(out, i.acting(hrpc.ByKerberos(i.login, principal)))
	}
	return out, nil
}

// acting makes a proof one of who acts for our user, if somebody does.
func (i *Identity) acting(a hrpc.Authenticator) hrpc.Authenticator {
	if i.real == "" {
		return a
	}
	return hrpc.For(i.user, i.real, a)
}

// HDFS is how to connect to the cluster's file systems. The NameNodes are left to be filled in.
func (i *Identity) HDFS() (hdfs.Config, error) {
	cfg := hdfs.Config{User: i.user, Keys: i.keys}
	if i.gateway != nil {
		cfg.Web = i.webOf
	}
	var err error
	if cfg.DatanodeHostname, err = i.conf.Bool("dfs.client.use.datanode.hostname", false); err != nil || !i.kerberos && i.real == "" {
		return cfg, err
	}
	if cfg.Security.Auth, err = i.proofs("dfs.namenode.kerberos.principal", i.hdfsToken); err != nil {
		return cfg, err
	}
	if cfg.Security.Protection, err = i.conf.Protection(); err != nil {
		return cfg, err
	}
	cfg.Security.DataTransfer, err = i.conf.Qualities("dfs.data.transfer.protection")
	return cfg, err
}

// hdfsToken is the token for a NameNode.
func (i *Identity) hdfsToken(server string) (token.Token, bool) {
	tokens := i.Credentials().Of(token.KindHDFS)
	for _, t := range tokens {
		if ns, ha := strings.CutPrefix(t.Service, haPrefix); ha {
			if f, err := i.conf.HDFS("hdfs://" + ns); err == nil && slices.Contains(f.NameNodes, server) {
				return t, true
			}
		} else if t.Service == server {
			return t, true
		}
	}
	if len(tokens) == 0 {
		return token.Token{}, false
	}
	for _, s := range services(server) {
		for _, t := range tokens {
			if t.Service == s {
				return t, true
			}
		}
	}
	return token.Token{}, false
}

// RPC are our proofs for the ResourceManagers' service for clients, and the protections that will do.
func (i *Identity) RPC() (auth []hrpc.Authenticator, protection []string, err error) {
	rm := func(string) (token.Token, bool) {
		ts := i.Credentials().Of(token.KindRM)
		if len(ts) == 0 {
			return token.Token{}, false
		}
		return ts[0], true
	}
	if auth, err = i.proofs("yarn.resourcemanager.principal", rm); err != nil {
		return nil, nil, err
	}
	protection, err = i.conf.Protection()
	return auth, protection, err
}

// TLS is whom we trust, and the key that we show.
func (i *Identity) TLS() (*ssl.Settings, error) { return i.tls() }

// REST wraps a transport so that Hadoop's web services know us, and returns what is to be put onto requests beside. A nil base is one that trusts whom the
// cluster's configuration says, and follows no proxy of the environment's.
func (i *Identity) REST(base http.RoundTripper) (http.RoundTripper, interface{ Authorize(*http.Request) error }) {
	if base == nil {
		base = ssl.NewTransport(i.tls)
	}
	switch {
	case !i.kerberos && i.real != "":
		return base, params{"user.name": i.real, "doAs": i.user}
	case !i.kerberos:
		return base, params{"user.name": i.user}
	case i.login != nil && i.real != "":
		return &krb.Transport{Base: base, Login: i.login}, params{"doAs": i.user}
	case i.login != nil:
		return &krb.Transport{Base: base, Login: i.login}, params{}
	}
	return base, rmToken{i}
}

// params name users in a request's query.
type params map[string]string

func (p params) Authorize(r *http.Request) error {
	if len(p) == 0 {
		return nil
	}
	q := r.URL.Query()
	for k, v := range p {
		q.Set(k, v)
	}
	r.URL.RawQuery = q.Encode()
	return nil
}

// rmToken proves by a delegation token of the ResourceManager's.
type rmToken struct{ i *Identity }

func (a rmToken) Authorize(r *http.Request) error {
	ts := a.i.Credentials().Of(token.KindRM)
	if len(ts) == 0 {
		return errors.New("there is neither a Kerberos ticket nor a delegation token for the ResourceManager")
	}
	r.Header.Set("X-Hadoop-Delegation-Token", ts[0].URLString())
	return nil
}

const haPrefix = "ha-hdfs:"

// resolveTimeout bounds a look into DNS.
const resolveTimeout = 10 * time.Second

// services are the names that a token for a server may have: its addresses, or its name.
func services(server string) []string {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return []string{server}
	}
	out := []string{strings.ToLower(server)}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return out
	}
	for _, a := range addrs {
		out = append(out, net.JoinHostPort(a, port))
	}
	return out
}
