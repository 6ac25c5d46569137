package kerberos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/doctor"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// testWebHDFSOverTLS speaks WebHDFS with NameNode and DataNode, which want our certificate, by the key that ssl-client.xml names, and hears why it fails without.
func (x *cluster) testWebHDFSOverTLS(t *testing.T) {
	x.filesOverHTTP(t, identity.NameNodesWeb, "/user/alice/over-tls")
	dir := x.otherConf(t, "keyless")
	x.bed.File("keyless/ssl-client.xml", "<configuration><property><name>ssl.client.truststore.location</name><value>"+filepath.Join(x.bed.Dir("hadoop/tls"), "truststore.jks")+"</value></property></configuration>")
	f := x.openOverHTTP(t, dir, identity.NameNodesWeb)
	if _, err := f.List("/"); err == nil || !strings.Contains(err.Error(), "it may want a certificate of ours, and there is none") {
		t.Errorf("without a certificate: %v", err)
	}
}

// byGateway is alice at HttpFS, with a keytab, or with nothing but tokens.
func (x *cluster) byGateway(t *testing.T, tokens ...token.Named) *identity.Identity {
	t.Helper()
	c, err := hconf.Load(hconf.Options{Dir: x.h.ConfDir, Also: map[string]string{identity.KeyWebURI: x.h.HttpFS}})
	if err != nil {
		t.Fatal(err)
	}
	how := identity.Config{Conf: c, Env: env(x.kdc.Env()...), Keytab: x.kdc.KeytabOf("alice")}
	if len(tokens) > 0 {
		how.Keytab, how.Credentials = "", &token.Credentials{Tokens: tokens}
	}
	id, err := identity.Open(how)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// takes reports whether HttpFS takes a token: nil, if it does. held are others that there have to be.
func (x *cluster) takes(t *testing.T, tok token.Named, held []token.Named) error {
	t.Helper()
	_, err := x.openAs(t, x.byGateway(t, append(slices.Clone(held), tok)...)).List("/user/alice")
	return err
}

// gatewayTokens are those of HttpFS among tokens.
func gatewayTokens(all []token.Named) (out []token.Named) {
	for _, n := range all {
		if identity.OfGateway(n.Token) {
			out = append(out, n)
		}
	}
	return out
}

// testGatewayTokens cancels tokens of HttpFS: by who has them, by their owner who has nothing but what identifies them, and those that an application was submitted
// with and has got since, at its end.
func (x *cluster) testGatewayTokens(t *testing.T) {
	alice := x.byGateway(t)
	def, err := x.conf.DefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	var held []token.Named
	fresh := func() token.Named {
		t.Helper()
		all, until, err := alice.Refresh(t.Context(), []hconf.FileSystem{def})
		if err != nil {
			t.Fatal(err)
		}
		got := gatewayTokens(all.Tokens)
		held = slices.DeleteFunc(all.Tokens, func(n token.Named) bool { return identity.OfGateway(n.Token) })
		if len(got) != 1 || !until[got[0].Alias].After(time.Now()) {
			t.Fatalf("got %v until %v", all.Tokens, until)
		}
		if err := x.takes(t, got[0], held); err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	for name, cancel := range map[string]func(token.Named) error{
		"its owner": func(n token.Named) error { return alice.CancelGateway(t.Context(), n.Token) },
		"who has it": func(n token.Named) error {
			return x.byGateway(t, append(slices.Clone(held), n)...).CancelGateway(t.Context(), n.Token)
		},
		"its owner, by its identifier": func(n token.Named) error {
			n.Token.Password = nil
			return x.byGateway(t).CancelGateway(t.Context(), n.Token)
		},
	} {
		n := fresh()
		if err := cancel(n); err != nil {
			t.Errorf("%s cancels it: %v", name, err)
		}
		if err := x.takes(t, n, held); err == nil || !strings.Contains(err.Error(), "oken") {
			t.Errorf("after %s cancelled it, HttpFS says %v", name, err)
		}
	}
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	job := x.bed.File("gateway/job.yaml", `name: gateway
source: { generator: { count: 1000000, rate: 20, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/out-gateway", format: json } }
`)
	as := []string{"--kerberos.keytab", x.kdc.KeytabOf("alice"), "--kerberos.principal", "alice"}
	out, err := x.heddle(t, exe, nil, append([]string{"run", job, "--target", "yarn", "--agents", "1", "--detach", "--quiet", "--hdfs.http-uri", x.h.HttpFS}, as...)...)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	app := strings.TrimSpace(out[strings.LastIndex(out, "application_"):])
	f := x.open(t, "alice")
	var own []token.Named // without their passwords
	x.bed.Eventually("the application notes that it has got a token of HttpFS itself", 3*time.Minute, func() error {
		data, err := f.ReadFile("/user/alice/.heddle/apps/"+app+"/tokens.fetched", 1<<20)
		if err != nil {
			return err
		}
		c, err := token.Parse(data)
		if own = gatewayTokens(c.Tokens); err == nil && len(own) == 0 {
			err = fmt.Errorf("it has noted %v", c.Tokens)
		}
		return err
	})
	came := x.tokensOf(t, app)
	if len(came) == 0 {
		t.Fatal("no token of HttpFS came with the submission")
	}
	for _, n := range came {
		if err := x.takes(t, n, held); err != nil {
			t.Errorf("while the application runs: %v", err)
		}
	}
	if out, err := x.heddle(t, exe, nil, append([]string{"cancel", app}, as...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	x.bed.Eventually("YARN has cancelled the token of the submission", 3*time.Minute, func() error {
		for _, n := range came {
			if x.takes(t, n, held) == nil {
				return fmt.Errorf("the %s is still taken", n.Token)
			}
		}
		return nil
	})
	x.bed.Eventually("the application has cancelled its own", 3*time.Minute, func() error {
		log := x.logs()
		if strings.Contains(log, "a token is left to its end") {
			t.Fatalf("it could not:\n%s", log)
		}
		if !strings.Contains(log, "cancelled tokens that the application had got for itself") {
			return errors.New("its log does not say so")
		}
		return nil
	})
	for _, n := range own {
		if err := x.byGateway(t).CancelGateway(t.Context(), n.Token); err == nil {
			t.Errorf("the %s was not cancelled by the application", n.Token)
		}
	}
}

// tokensOf are the tokens of HttpFS that an application's containers were started with.
func (x *cluster) tokensOf(t *testing.T, app string) (out []token.Named) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(x.h.ConfDir), "nm*", "local", "usercache", "*", "appcache", app, "container_*_000001", "container_tokens"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := token.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, gatewayTokens(c.Tokens)...)
	}
	return out
}

// testDoctorHTTP looks at HttpFS and at the NameNode's WebHDFS, with tokens alone, too, and finds what ails them.
func (x *cluster) testDoctorHTTP(t *testing.T) {
	for name, s := range map[string]sick{
		"HttpFS":          {cfg: doctor.Config{HTTP: map[string]string{identity.KeyWebURI: x.h.HttpFS}}, says: "answers, and takes our proof"},
		"WebHDFS":         {cfg: doctor.Config{HTTP: map[string]string{identity.KeyWebURI: identity.NameNodesWeb}}, says: "answers, and takes our proof"},
		"another path":    {cfg: doctor.Config{HTTP: map[string]string{identity.KeyWebURI: strings.Replace(x.h.HttpFS, "/webhdfs/v1", "/gateway/default/webhdfs/v1", 1)}}, check: "hdfs-http", diagnosis: "http-strange"},
		"another service": {cfg: doctor.Config{HTTP: map[string]string{identity.KeyWebURI: "http://" + x.h.RMWeb[0]}}, check: "hdfs-http", diagnosis: "http-strange"},
	} {
		t.Run(name, func(t *testing.T) { x.diagnose(t, s) })
	}
}
