package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
)

// lookup is the environment as Hadoop's packages ask for it.
func (s *session) lookup(name string) (string, bool) {
	text := s.env.Getenv(name)
	return text, text != ""
}

// loginHints say what helps who could not be logged in.
func loginHints(err error) []string {
	if k, ok := errors.AsType[*hconf.KeyError](err); ok {
		if k.Key == "hadoop.security.auth_to_local" {
			return []string{"klist shows whose ticket it is: log in as one of the cluster's realm, or have a rule made for that principal"}
		}
		return nil // it is no matter of logging in
	}
	return []string{"run kinit, or name a keytab by --kerberos.keytab and its principal by --kerberos.principal"}
}

// whoami opens our identity on a cluster.
func (s *session) whoami(c *hconf.Conf, user string, opts *conf.Config) (*identity.Identity, error) {
	cfg := identity.Config{Conf: c, Env: s.lookup, User: user}
	if opts != nil {
		cfg.Keytab, cfg.Principal = opts.Text("kerberos.keytab"), opts.Text("kerberos.principal")
		var err error
		if cfg.WebPassword, err = webPassword(opts); err != nil {
			return nil, precondition(err)
		}
	}
	id, err := identity.Open(cfg)
	if err != nil {
		return nil, precondition(err, loginHints(err)...)
	}
	return id, nil
}

// kerberosSecret is the name of what the ApplicationMaster logs in to Kerberos by, in its container's credentials. Agents do not get it.
const kerberosSecret = "heddle.kerberos"

// kerberosLogin is the content of kerberosSecret.
type kerberosLogin struct {
	Principal string `json:"principal"`
	Keytab    []byte `json:"keytab"`
	Conf      string `json:"krb5_conf"`
}

// credentials are the tokens and secrets that the application gets along: delegation tokens for file systems and the ResourceManager, and the keytab, if
// one was named. keyless judges whether it can do without tokens of key servers that gave none.
func (h *hadoop) credentials(ctx context.Context, c *conf.Config, keyless func(*identity.KeyTokenError) error) (token.Credentials, error) {
	systems, err := h.fileSystems(c)
	if err != nil {
		return token.Credentials{}, precondition(err)
	}
	creds, err := h.id.Fetch(ctx, systems, h.rm)
	if lack, ok := errors.AsType[*identity.KeyTokenError](err); ok {
		if err := keyless(lack); err != nil {
			return creds, err
		}
	} else if err != nil {
		return creds, hdfsError(err)
	}
	if creds.Secrets, err = h.trust(); err != nil {
		return creds, precondition(err)
	}
	switch password, err := webPassword(c); {
	case err != nil:
		return creds, precondition(err)
	case password != "":
		creds.Secrets = append(creds.Secrets, token.Secret{Name: webSecret, Value: []byte(password)})
	}
	keytab := strings.TrimPrefix(c.Text("kerberos.keytab"), "FILE:")
	if keytab == "" || h.id.Login() == nil || h.id.Real() != "" { // who acts for others keeps the key to that: it would be the others' own in their containers
		return creds, nil
	}
	data, err := os.ReadFile(keytab)
	if err != nil {
		return creds, precondition(fmt.Errorf("cannot read the keytab: %w", err))
	}
	secret, err := json.Marshal(kerberosLogin{Principal: h.id.Login().Principal().String(), Keytab: data, Conf: h.id.Login().Conf().Text()})
	creds.Secrets = append(creds.Secrets, token.Secret{Name: kerberosSecret, Value: secret})
	return creds, err
}

// tlsSecret is the name of what the application trusts, in its containers' credentials: the hosts of a cluster need not have the stores of this one.
const tlsSecret = "heddle.tls"

// trust is whom to trust, on a cluster whose web services speak TLS.
func (h *hadoop) trust() ([]token.Secret, error) {
	yarn, err := h.conf.YARNOverHTTPS()
	if err != nil {
		return nil, err
	}
	files, err := h.conf.HDFSOverHTTPS()
	if err != nil || !yarn && !files && !h.id.NeedsTLS() {
		return nil, err
	}
	settings, err := h.id.TLS()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(settings)
	return []token.Secret{{Name: tlsSecret, Value: data}}, err
}

// fileSystems are those that the application needs tokens for: the default one, that of the staging folder, and those that an option names.
func (h *hadoop) fileSystems(c *conf.Config) ([]hconf.FileSystem, error) {
	def, err := h.conf.DefaultFS()
	if err != nil {
		return nil, err
	}
	out := []hconf.FileSystem{def}
	for _, uri := range append(c.List("yarn.file-systems"), h.staging) {
		if !strings.Contains(uri, "://") || strings.HasPrefix(uri, "hdfs:///") {
			continue
		}
		f, err := h.conf.HDFS(uri)
		if err != nil {
			return nil, fmt.Errorf("cannot use %s: %w", uri, err)
		}
		if !slices.ContainsFunc(out, func(o hconf.FileSystem) bool { return o.URI == f.URI }) {
			out = append(out, f)
		}
	}
	return out, nil
}

// containerIdentity is who a role in a container is: by the keytab that came along, if it did, else by the container's tokens.
func containerIdentity(c *hconf.Conf, user string, creds token.Credentials) (*identity.Identity, error) {
	mine := token.Credentials{Tokens: creds.Without(token.KindAMRM).Tokens} // what others get of it shall hold no secret
	cfg := identity.Config{Conf: c, User: user, WebPassword: string(creds.Secret(webSecret)), Credentials: &mine, Env: func(string) (string, bool) { return "", false }}
	if data := creds.Secret(tlsSecret); data != nil {
		cfg.TLS = &ssl.Settings{}
		if err := json.Unmarshal(data, cfg.TLS); err != nil {
			return nil, fmt.Errorf("cannot read the certificates that came along: %w", err)
		}
	}
	if data := creds.Secret(kerberosSecret); data != nil {
		var k kerberosLogin
		if err := json.Unmarshal(data, &k); err != nil {
			return nil, fmt.Errorf("cannot read the keytab that came along: %w", err)
		}
		var err error
		if cfg.Kerberos, err = krb.ParseConf(k.Conf); err != nil {
			return nil, err
		}
		cfg.Keytab, cfg.KeytabData, cfg.Principal = "the application's", k.Keytab, k.Principal
	}
	return identity.Open(cfg)
}

// useHDFS lets jobs of a role in a container use paths of HDFS.
func useHDFS(c *hconf.Conf, id *identity.Identity) {
	registerHDFS(func() (*hconf.Conf, hdfs.Config, error) {
		how, err := id.HDFS()
		return c, how, err
	})
}
