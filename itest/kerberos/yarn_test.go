package kerberos

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/yarnclient"
)

// identity is a user with a keytab, or with tokens alone.
func (x *cluster) identity(t *testing.T, user string, entries ...string) *identity.Identity {
	t.Helper()
	cfg := identity.Config{Conf: x.conf, Env: env(append(x.kdc.Env(), entries...)...)}
	if len(entries) == 0 {
		cfg.Keytab = x.kdc.KeytabOf(user)
	}
	i, err := identity.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if i.User() != user || !i.Secure() {
		t.Errorf("we are %v, want %s", i, user)
	}
	return i
}

// requests counts what a client sends.
type requests struct {
	base            http.RoundTripper
	all, negotiated int
}

func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	r.all++
	if strings.HasPrefix(req.Header.Get("Authorization"), "Negotiate ") {
		r.negotiated++
	}
	return r.base.RoundTrip(req)
}

// yarn is a client of the ResourceManagers for an identity.
func (x *cluster) yarn(t *testing.T, i *identity.Identity, mode yarnclient.Mode) (*yarnclient.Access, *requests) {
	t.Helper()
	rms, err := x.conf.RMs()
	if err != nil {
		t.Fatal(err)
	}
	count := &requests{base: http.DefaultTransport}
	o := yarnclient.Options{Mode: mode}
	for _, rm := range rms {
		o.REST.Bases = append(o.REST.Bases, "http://"+rm.Web)
		o.RPC.Addrs = append(o.RPC.Addrs, rm.Client)
	}
	o.REST.Transport, o.REST.Auth = i.REST(count)
	if o.RPC.Auth, o.RPC.Protection, err = i.RPC(); err != nil {
		t.Fatal(err)
	}
	c, err := yarnclient.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, count
}

// testYARN submits an application whose master and containers run on the secure cluster, by REST and by RPC, with delegation tokens that the ResourceManager
// renews; and lets others try to end it.
func (x *cluster) testYARN(t *testing.T) {
	alice := x.identity(t, "alice")
	def, err := x.conf.DefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	how, err := alice.HDFS()
	if err != nil {
		t.Fatal(err)
	}
	how.NameNodes = def.NameNodes
	f, err := hdfs.Open(how)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	exe := testbed.BuildProgram(t, x.bed, "./itest/yarn/testam", "testam")
	info, err := f.Upload(t.Context(), "/user/alice/testam", 0o700, func() (io.ReadCloser, error) { return os.Open(exe) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	local := yarnclient.LocalResource{Name: "testam", URI: def.URI + info.Path, Visibility: yarnclient.Private, Size: info.Size, Modified: info.Modified}
	for _, mode := range []yarnclient.Mode{yarnclient.REST, yarnclient.ByRPC} {
		t.Run(string(mode), func(t *testing.T) {
			rm, count := x.yarn(t, alice, mode)
			creds, err := alice.Fetch(t.Context(), []hconf.FileSystem{def}, rm)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range creds.Tokens {
				t.Logf("token %v", n.Token)
			}
			if len(creds.Of(token.KindHDFS)) != 1 || len(creds.Of(token.KindRM)) != 1 {
				t.Fatalf("the tokens are %v", creds.Tokens)
			}
			app := x.run(t, rm, local, creds, "sleep 600")
			bob, _ := x.yarn(t, x.identity(t, "bob"), mode)
			if err := bob.Kill(t.Context(), app.ID, "by bob"); !yarnclient.IsDenied(err) {
				t.Errorf("bob kills alice's application: %v", err)
			}
			if err := rm.Kill(t.Context(), app.ID, "enough"); err != nil {
				t.Error(err)
			}
			if mode == yarnclient.REST && (count.negotiated == 0 || count.negotiated > 3 || count.all < 8) {
				t.Errorf("%d of %d requests carried a ticket; the others should carry a cookie", count.negotiated, count.all)
			}
		})
	}
	t.Run("tokens", func(t *testing.T) { x.testTokens(t, alice, def) })
}

// run submits the test master and waits until its container runs.
func (x *cluster) run(t *testing.T, rm yarnclient.API, exe yarnclient.LocalResource, creds token.Credentials, command string) yarnclient.NewApp {
	t.Helper()
	app, err := rm.NewApplication(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = rm.Submit(t.Context(), &yarnclient.Submission{
		ID: app.ID, Name: "itest", Type: "HEDDLE-TEST", Resource: yarnclient.Resource{MemoryMB: 128, VCores: 1}, MaxAttempts: 1, Credentials: creds,
		Command: "./testam 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr", Resources: []yarnclient.LocalResource{exe},
		Env: map[string]string{"RM_ADDR": strings.Join(x.h.RMSched, ","), "COUNT": "1", "COMMAND": command, "PATH": "/usr/bin:/bin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	x.bed.Eventually(app.ID.String()+" runs with two containers", 2*time.Minute, func() error {
		a, err := rm.App(t.Context(), app.ID)
		if err != nil {
			return err
		}
		if a.Ended() {
			t.Fatalf("the application is %s: %s\n%s", a.State, a.Diagnostics, x.logs())
		}
		if a.User != "alice" {
			t.Errorf("the application is %s's", a.User)
		}
		if a.State != yarnclient.StateRunning || a.Containers != 2 {
			return fmt.Errorf("it is %s with %d containers", a.State, a.Containers)
		}
		return nil
	})
	return app
}

// logs collects what containers wrote.
func (x *cluster) logs() string {
	var b strings.Builder
	paths, _ := filepath.Glob(filepath.Join(filepath.Dir(x.h.ConfDir), "nm*", "logs", "application*", "container*", "std*"))
	for _, p := range paths {
		if data, err := os.ReadFile(p); err == nil && len(data) > 0 {
			fmt.Fprintf(&b, "== %s\n%s\n", p, data)
		}
	}
	return b.String()
}

// testTokens lives by a file of delegation tokens, as a container and a job of Oozie's do, and lets its owner cancel them.
func (x *cluster) testTokens(t *testing.T, alice *identity.Identity, def hconf.FileSystem) {
	rm, _ := x.yarn(t, alice, yarnclient.REST)
	creds, err := alice.Fetch(t.Context(), []hconf.FileSystem{def}, rm)
	if err != nil {
		t.Fatal(err)
	}
	file := x.bed.File("tokens", string(creds.Append(nil)))
	bearer := x.identity(t, "alice", "HADOOP_TOKEN_FILE_LOCATION="+file)
	if bearer.Login() != nil {
		t.Fatal("there is a login without keytab and cache")
	}
	how, err := bearer.HDFS()
	if err != nil {
		t.Fatal(err)
	}
	how.NameNodes = def.NameNodes
	f, err := hdfs.Open(how)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.List("/user/alice"); err != nil {
		t.Error(err)
	}
	for _, mode := range []yarnclient.Mode{yarnclient.REST, yarnclient.ByRPC} {
		c, _ := x.yarn(t, bearer, mode)
		if _, err := c.NewApplication(t.Context()); err != nil {
			t.Errorf("by token, %s: %v", mode, err)
		}
	}
	own, err := alice.HDFS()
	if err != nil {
		t.Fatal(err)
	}
	own.NameNodes = def.NameNodes
	owner, err := hdfs.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if _, err := owner.RenewToken(t.Context(), creds.Of(token.KindHDFS)[0]); err == nil {
		t.Error("alice renews a token that the ResourceManager is to renew")
	}
	if err := owner.CancelToken(t.Context(), creds.Of(token.KindHDFS)[0]); err != nil {
		t.Error(err)
	}
	if g, err := hdfs.Open(how); err == nil {
		_, err = g.List("/user/alice")
		_ = g.Close()
		if err == nil {
			t.Error("a cancelled token still opens HDFS")
		}
	}
}
