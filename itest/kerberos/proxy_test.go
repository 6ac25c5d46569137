package kerberos

import (
	"fmt"
	"os/exec"
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

// acting is the account of a gateway that acts for a user.
func (x *cluster) acting(t *testing.T, user string) *identity.Identity {
	t.Helper()
	i, err := identity.Open(identity.Config{Conf: x.conf, Env: env(append(x.kdc.Env(), "HADOOP_PROXY_USER="+user)...), Keytab: x.kdc.KeytabOf("gateway")})
	if err != nil {
		t.Fatal(err)
	}
	if i.User() != user || i.Real() != "gateway@"+x.kdc.Realm {
		t.Errorf("we are %v", i)
	}
	return i
}

// testProxyUser acts for alice by the account of a gateway, which may, and for bob, which it may not.
func (x *cluster) testProxyUser(t *testing.T) {
	x.words(t)
	def, err := x.conf.DefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	list := func(user string) error {
		how, err := x.acting(t, user).HDFS()
		if err != nil {
			t.Fatal(err)
		}
		how.NameNodes = def.NameNodes
		f, err := hdfs.Open(how)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.List("/user/" + user) // its own user alone may
		return err
	}
	if err := list("alice"); err != nil {
		t.Error(err)
	}
	const refused = "not allowed to impersonate bob"
	if err := list("bob"); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("for bob in HDFS: %v", err)
	}
	for _, mode := range []yarnclient.Mode{yarnclient.REST, yarnclient.ByRPC} {
		alice := x.acting(t, "alice")
		rm, _ := x.yarn(t, alice, mode)
		creds, err := alice.Fetch(t.Context(), []hconf.FileSystem{def}, rm)
		if err != nil {
			t.Errorf("%s: %v", mode, err)
			continue
		}
		d, err := creds.Of(token.KindHDFS)[0].Delegation()
		if err != nil || d.Owner != "alice" || !strings.HasPrefix(d.RealUser, "gateway") {
			t.Errorf("%s: the token for HDFS is %+v, %v", mode, d, err)
		}
		if id := string(creds.Of(token.KindRM)[0].Identifier); !strings.Contains(id, "alice") { // the web service forgets who acted for her
			t.Errorf("%s: the token for the ResourceManager is %q", mode, id)
		}
		bob, _ := x.yarn(t, x.acting(t, "bob"), mode)
		if _, err := bob.NewApplication(t.Context()); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("for bob by %s: %v", mode, err)
		}
	}
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	cache := "FILE:" + filepath.Join(x.bed.Dir("proxy"), "cc")
	x.kdc.Kinit(cache, x.kdc.KeytabOf("gateway"), "gateway")
	job := x.bed.File("proxy/words.yaml", strings.ReplaceAll(wordCount, "%s", "out-proxy"))
	out, err := x.heddle(t, exe, []string{"KRB5CCNAME=" + cache, "HADOOP_PROXY_USER=alice"}, "run", job, "--target", "yarn", "--agents", "1")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	x.checkCounts(t, "/user/alice/out-proxy", out)
	out, err = x.heddle(t, exe, []string{"KRB5CCNAME=" + cache, "HADOOP_PROXY_USER=bob"}, "run", job, "--target", "yarn", "--agents", "1")
	if ee, ok := err.(*exec.ExitError); !ok || ee.ExitCode() != 3 || !strings.Contains(out, refused) {
		t.Errorf("a job for bob: %v\n%s", err, out)
	}
}

// testNoREST has a ResourceManager whose web service has no authentication, as many clusters with Kerberos do, and then one whose web service is out of
// reach. It is the last of its cluster's tests.
func (x *cluster) testNoREST(t *testing.T) {
	x.words(t)
	x.h.Reconfigure(testbed.ResourceManager, "-Dhadoop.http.authentication.type=simple", "-Dhadoop.http.filter.initializers=org.apache.hadoop.http.lib.StaticUserWebFilter")
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	cache := "KRB5CCNAME=FILE:" + filepath.Join(x.bed.Dir("norest"), "cc")
	x.kdc.Kinit(strings.TrimPrefix(cache, "KRB5CCNAME="), x.kdc.KeytabOf("alice"), "alice")
	job := x.bed.File("norest/words.yaml", strings.ReplaceAll(wordCount, "%s", "out-norest"))
	out, err := x.heddle(t, exe, []string{cache}, "run", job, "--target", "yarn", "--agents", "1")
	if err != nil || strings.Count(out, "asking the ResourceManager by RPC, since its web service has no authentication, so that it lets nobody change anything") != 1 {
		t.Errorf("%v\n%s\n%s", err, out, x.logs())
	}
	x.checkCounts(t, "/user/alice/out-norest", out)
	out, err = x.heddle(t, exe, []string{cache}, "run", job, "--target", "yarn", "--yarn.client", "rest")
	if ee, ok := err.(*exec.ExitError); !ok || ee.ExitCode() != 3 || !strings.Contains(out, "static user") {
		t.Errorf("by REST alone: %v\n%s", err, out)
	}
	conf := x.otherConf(t, "closed")
	yarn, err := x.conf.String("yarn.resourcemanager.webapp.address")
	if err != nil {
		t.Fatal(err)
	}
	x.bed.File("closed/yarn-site.xml", strings.ReplaceAll(x.bed.Read("closed/yarn-site.xml"), yarn, deadAddr(t)))
	endless := x.bed.File("norest/endless.yaml", `name: endless
source: { generator: { count: 100000, rate: 10, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/out-closed", format: json } }
`)
	out, err = x.heddle(t, exe, []string{cache, "HADOOP_CONF_DIR=" + conf}, "run", endless, "--target", "yarn", "--detach")
	if err != nil || !strings.Contains(out, "asking the ResourceManager by RPC, since its web service can't be reached") {
		t.Fatalf("with the port closed: %v\n%s", err, out)
	}
	app, _, _ := strings.Cut(out[strings.LastIndex(out, "application_"):], "\n")
	// The ApplicationMaster is asked directly, by YARN's token for its callers: this ResourceManager's proxy could name nobody, were it open.
	x.bed.Eventually("the job's own figures come with the port closed", 2*time.Minute, func() error {
		out, err := x.heddle(t, exe, []string{cache, "HADOOP_CONF_DIR=" + conf}, "status", app, "--target", "yarn", "--json")
		if err != nil || !strings.Contains(out, `"snapshot"`) {
			return fmt.Errorf("%v\n%s", err, out)
		}
		return nil
	})
	for _, args := range [][]string{{"status"}, {"kill"}} {
		if out, err = x.heddle(t, exe, []string{cache, "HADOOP_CONF_DIR=" + conf}, append(args, app, "--target", "yarn")...); err != nil {
			t.Errorf("%s with the port closed: %v\n%s", args, err, out)
		}
	}
}
