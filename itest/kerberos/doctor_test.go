package kerberos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/doctor"
	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/yarnclient"
)

// sick is a setup that is broken in one way.
type sick struct {
	cfg   doctor.Config
	conf  string // of Hadoop; "": the cluster's
	krb5  string // "": the realm's
	cache string // ticket cache; "": none, and alice's keytab is used

	check, diagnosis string   // what must be found; diagnosis "": all is well
	warns            bool     // it is a warning
	says             string   // what somebody says in any case
	also             []string // diagnoses that follow, by other checks
}

// otherNames answers every question for a name with another host's.
type otherNames struct{}

func (otherNames) LookupHost(context.Context, string) ([]string, error) {
	return []string{"127.0.0.1"}, nil
}
func (otherNames) LookupAddr(context.Context, string) ([]string, error) {
	return []string{"elsewhere.test."}, nil
}

// site is a folder with the cluster's configuration, and some properties changed in every file.
func (x *cluster) site(t *testing.T, change map[string]string, without ...string) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join(x.h.ConfDir, "*.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var more strings.Builder
	for _, k := range slices.Sorted(maps.Keys(change)) {
		fmt.Fprintf(&more, "<property><name>%s</name><value>%s</value></property>\n", k, change[k])
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && !slices.Contains(without, filepath.Base(f)) {
			text := strings.Replace(string(b), "</configuration>", more.String()+"</configuration>", 1)
			err = os.WriteFile(filepath.Join(dir, filepath.Base(f)), []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// closedQueue are two queues, of which one is bob's alone and may use nodes with the label gpu, of which there are none.
var closedQueue = map[string]string{
	"maximum-am-resource-percent": "1.0", "root.queues": "default,closed", "root.acl_submit_applications": "yarn",
	"root.default.capacity": "90", "root.default.maximum-capacity": "100", "root.default.user-limit-factor": "10", "root.default.acl_submit_applications": "*",
	"root.closed.capacity": "10", "root.closed.maximum-capacity": "100", "root.closed.acl_submit_applications": "bob",
	"root.accessible-node-labels": "gpu", "root.accessible-node-labels.gpu.capacity": "100", "root.default.accessible-node-labels": " ",
	"root.closed.accessible-node-labels": "gpu", "root.closed.accessible-node-labels.gpu.capacity": "100",
}

// testDoctor breaks the setup of a client in many ways, each of which the doctor names.
func (x *cluster) testDoctor(t *testing.T) {
	x.folders(t)
	dead := deadAddr(t)
	text, err := os.ReadFile(x.kdc.Conf)
	if err != nil {
		t.Fatal(err)
	}
	krb5 := func(from, to string) string {
		return x.bed.File("doctor/"+fmt.Sprint(time.Now().UnixNano())+".conf", strings.Replace(string(text), from, to, 1))
	}
	kdcLine := "    kdc = " + x.kdc.Addr
	x.kdc.Admin("addprinc -randkey dave\naddprinc -randkey erin\n")
	aes128 := filepath.Join(t.TempDir(), "aes128.keytab")
	x.kdc.Admin("ktadd -k " + aes128 + " -e aes128-cts-hmac-sha1-96:normal erin\n")
	old := x.kdc.Keytab("dave-old.keytab", false, "dave")
	x.kdc.Keytab("dave-new.keytab", false, "dave")
	alice := x.kdc.KeytabOf("alice")
	open := filepath.Join(t.TempDir(), "open.keytab")
	b, err := os.ReadFile(alice)
	if err == nil {
		err = errors.Join(os.WriteFile(open, b, 0o600), os.Chmod(open, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	good, short := filepath.Join(dir, "good"), filepath.Join(dir, "short")
	x.kdc.Kinit(good, alice, "alice")
	x.kdc.Kinit(short, alice, "alice", "-l", "1s")
	fixed := filepath.Join(dir, "fixed")
	x.kdc.Admin("modprinc -maxrenewlife \"0 seconds\" alice\n")
	x.kdc.Kinit(fixed, alice, "alice")
	x.kdc.Admin("modprinc -maxrenewlife \"7 days\" alice\n")
	if out, err := x.h.Tool("yarn", "org.apache.hadoop.yarn.client.cli.RMAdminCLI", "-addToClusterNodeLabels", "gpu"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	x.tool(t, "-setSpaceQuota", "1k", "/user/carol")
	defer x.tool(t, "-clrSpaceQuota", "/user/carol") // after the safe mode
	need := func(name string, write bool) []flow.Need {
		return []flow.Need{{Kind: flow.NeedPath, Name: "hdfs://" + name, Read: true, Write: write}}
	}
	fit := func(yarnclient.NewApp) (string, error) {
		return "lower --agent.memory", errors.New("an agent wants a container of 999999 MB")
	}
	clock := func() time.Time { return time.Now().Add(17 * time.Minute) }
	for name, s := range map[string]sick{
		"well, by keytab":        {},
		"well, by ticket":        {cache: good},
		"well, paths":            {cfg: doctor.Config{Needs: append(need("/user/alice", true), need("/user/alice/new/out", true)...)}},
		"wrong KDC":              {krb5: krb5(kdcLine, "    kdc = "+dead), check: "kdc", diagnosis: "kdc-unreachable"},
		"first KDC dead":         {krb5: krb5(kdcLine, "    kdc = "+dead+"\n"+kdcLine), check: "kdc", diagnosis: "kdc-dead", warns: true},
		"no krb5.conf":           {krb5: dir + "/none.conf", check: "krb5", diagnosis: "krb5-conf"},
		"no KDC":                 {krb5: krb5(kdcLine, ""), check: "krb5", diagnosis: "krb5-no-kdc"},
		"expired ticket":         {cache: short, check: "credentials", diagnosis: "ticket-expired"},
		"no ticket":              {cache: dir + "/none", check: "credentials", diagnosis: "ticket-missing"},
		"kind of cache":          {cache: "KCM:0", check: "credentials", diagnosis: "cache-kind"},
		"no keytab":              {cfg: doctor.Config{Keytab: dir + "/none.keytab"}, check: "credentials", diagnosis: "keytab-missing"},
		"open keytab":            {cfg: doctor.Config{Keytab: open}, check: "credentials", diagnosis: "keytab-readable", warns: true},
		"other principal":        {cfg: doctor.Config{Keytab: alice, Principal: "bob"}, check: "credentials", diagnosis: "keytab-principal"},
		"other key":              {cfg: doctor.Config{Keytab: old}, check: "login", diagnosis: "keytab-old"},
		"other type of key":      {cfg: doctor.Config{Keytab: aes128}, krb5: krb5("permitted_enctypes = aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96", "permitted_enctypes = aes256-cts-hmac-sha1-96"), check: "login", diagnosis: "keytab-enctype"},
		"clock":                  {cfg: doctor.Config{Now: clock}, check: "clock", diagnosis: "clock-skew"},
		"no configuration":       {conf: dir, check: "conf", diagnosis: "conf-missing"},
		"no core-site.xml":       {conf: x.site(t, nil, "core-site.xml"), check: "conf", diagnosis: "conf-missing"},
		"broken core-site.xml":   {conf: x.brokenSite(t), check: "conf", diagnosis: "conf-broken"},
		"wrong value":            {conf: x.site(t, map[string]string{"hadoop.security.authentication": "kerberoz"}), check: "conf", diagnosis: "conf-value"},
		"wrong NameNode":         {conf: x.site(t, map[string]string{"fs.defaultFS": "hdfs://" + dead}), check: "namenode", diagnosis: "nn-unreachable"},
		"wrong NameNode's name":  {conf: x.site(t, map[string]string{"dfs.namenode.kerberos.principal": "namenode/_HOST@TEST.LOCAL"}), check: "namenode", diagnosis: "nn-principal"},
		"ResourceManager down":   {conf: x.site(t, map[string]string{"yarn.resourcemanager.webapp.address": dead, "yarn.resourcemanager.address": dead}), check: "resourcemanager", diagnosis: "rm-unreachable"},
		"web service down":       {conf: x.site(t, map[string]string{"yarn.resourcemanager.webapp.address": dead}), check: "resourcemanager", diagnosis: "rm-unreachable", warns: true},
		"no such queue":          {cfg: doctor.Config{Queue: "root.none"}, check: "queue", diagnosis: "queue-unknown"},
		"parent queue":           {cfg: doctor.Config{Queue: "root"}, check: "queue", diagnosis: "queue-parent"},
		"no such label":          {cfg: doctor.Config{Label: "fpga"}, check: "label", diagnosis: "label-unknown"},
		"queue of another":       {cfg: doctor.Config{Queue: "root.closed"}, check: "queue", diagnosis: "queue-denied"},
		"label of another queue": {cfg: doctor.Config{Label: "gpu", Queue: "root.default"}, check: "label", diagnosis: "label-denied"},
		"label without nodes":    {cfg: doctor.Config{Label: "gpu", Queue: "root.closed", Keytab: x.kdc.KeytabOf("bob")}, check: "label", diagnosis: "label-empty"},
		"well, a fixed ticket":   {cache: fixed, says: "it can't be renewed"},
		"another host's name":    {conf: x.site(t, map[string]string{"fs.defaultFS": "hdfs://" + otherName(t, x.h.NameNode)}), check: "namenode", diagnosis: "nn-principal"},
		"large container":        {cfg: doctor.Config{Fit: fit}, check: "container", diagnosis: "container-large"},
		"staging of another":     {cfg: doctor.Config{StagingDir: "/user/bob"}, check: "staging", diagnosis: "staging-denied"},
		"quota":                  {cfg: doctor.Config{Keytab: x.kdc.KeytabOf("carol")}, check: "staging", diagnosis: "quota-full"},
		"path of another":        {cfg: doctor.Config{Needs: need("/user/bob/data", false)}, check: "paths", diagnosis: "path-denied"},
		"path of another, write": {cfg: doctor.Config{Needs: need("/user/bob/out", true)}, check: "paths", diagnosis: "path-denied"},
		"no such path":           {cfg: doctor.Config{Needs: need("/user/alice/none", false)}, check: "paths", diagnosis: "path-missing"},
		"reverse DNS":            {cfg: doctor.Config{Resolver: otherNames{}}, conf: x.site(t, map[string]string{"fs.defaultFS": "hdfs://" + strings.Replace(x.h.NameNode, "127.0.0.1", "localhost", 1)}), check: "dns", diagnosis: "dns-reverse", warns: true},
		"collector":              {cfg: doctor.Config{Collector: "http://" + dead}, check: "collector", diagnosis: "otlp-closed", warns: true},
		"Kafka down":             {cfg: doctor.Config{Kafka: []doctor.KafkaCluster{{Config: kafka.Config{Brokers: []string{dead}}}}}, check: "kafka", diagnosis: "kafka-unreachable"},
	} {
		t.Run(name, func(t *testing.T) { x.diagnose(t, s) })
	}
	x.tool(t, "-safemode", "enter")
	defer x.tool(t, "-safemode", "leave")
	t.Run("safe mode", func(t *testing.T) { x.diagnose(t, sick{check: "staging", diagnosis: "nn-safe-mode"}) })
}

// tool runs an administrator's command of HDFS.
func (x *cluster) tool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := x.h.Tool("hdfs", "org.apache.hadoop.hdfs.tools.DFSAdmin", args...); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// brokenSite is a configuration whose core-site.xml was cut.
func (x *cluster) brokenSite(t *testing.T) string {
	dir := x.site(t, nil)
	file := filepath.Join(dir, "core-site.xml")
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, b[:len(b)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// diagnose runs the doctor. Nothing but what is broken may fail.
func (x *cluster) diagnose(t *testing.T, s sick) {
	entries := []string{"KRB5_CONFIG=" + x.kdc.Conf, "HADOOP_CONF_DIR=" + x.h.ConfDir}
	if s.krb5 != "" {
		entries[0] = "KRB5_CONFIG=" + s.krb5
	}
	if s.conf != "" {
		entries[1] = "HADOOP_CONF_DIR=" + s.conf
	}
	cfg := s.cfg
	cfg.Hadoop = cfg.NoHadoop == ""
	switch {
	case s.cache != "":
		entries = append(entries, "KRB5CCNAME="+s.cache)
	case cfg.Keytab == "":
		cfg.Keytab = x.kdc.KeytabOf("alice")
	}
	cfg.Env, cfg.Limit = env(entries...), time.Minute
	found, said := false, s.says == ""
	for _, r := range doctor.Run(t.Context(), cfg, nil) {
		said = said || strings.Contains(r.Means, s.says)
		line := fmt.Sprintf("%-8s %s: %s %s; %s", r.Status, r.Check, r.Diagnosis, r.Means, r.Fix)
		switch {
		case r.Check == s.check && r.Diagnosis == s.diagnosis:
			found = true
			if want := map[bool]verdict.Status{true: verdict.Warn, false: verdict.Fail}[s.warns]; r.Status != want || r.Fix == "" || r.Means == "" {
				t.Errorf("want %s, and a way to mend it: %s", want, line)
			}
			t.Log(line)
		case (r.Status == verdict.Fail || r.Status == verdict.Warn) && !slices.Contains(s.also, r.Diagnosis):
			t.Errorf("unexpected: %s", line)
		case s.diagnosis == "":
			t.Log(line)
		}
	}
	if !found && s.diagnosis != "" {
		t.Errorf("%s was not found by %s", s.diagnosis, s.check)
	}
	if !said {
		t.Errorf("nobody says %q", s.says)
	}
}

// otherName forwards connections from another address of this host, for which there is no principal.
func otherName(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { join(from, to) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().String()
}

// join copies both ways until one side ends.
func join(from net.Conn, addr string) {
	defer from.Close()
	to, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer to.Close()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(to, from); _ = to.Close() })
	both.Go(func() { _, _ = io.Copy(from, to); _ = from.Close() })
	both.Wait()
}

// testDoctorProtection has a client that wants other protection than a cluster which seals all, or does not know who vouches for its web services.
func (x *cluster) testDoctorProtection(t *testing.T) {
	other := filepath.Join(x.bed.Dir("tls"), "stranger.jks")
	testbed.NewAuthority(t, "a stranger").TrustJKS(other)
	for name, s := range map[string]sick{
		"well, all sealed":      {},
		"RPC's protection":      {conf: x.site(t, map[string]string{"hadoop.rpc.protection": "authentication"}), check: "namenode", diagnosis: "nn-protection", also: []string{"rm-rpc-protection"}},
		"protection of data":    {conf: x.site(t, map[string]string{"dfs.data.transfer.protection": "authentication", "dfs.encrypt.data.transfer": "false"}), check: "staging", diagnosis: "data-protection"},
		"unknown authority":     {conf: x.site(t, map[string]string{"ssl.client.truststore.location": other}), check: "resourcemanager", diagnosis: "tls-untrusted", warns: true},
		"HTTP in place of TLS":  {conf: x.site(t, map[string]string{"yarn.http.policy": "HTTP_ONLY"}), check: "resourcemanager", diagnosis: "rm-web-other", warns: true},
		"an old ssl-client.xml": {conf: x.site(t, nil, "ssl-client.xml"), check: "resourcemanager", diagnosis: "tls-untrusted", warns: true},
	} {
		t.Run(name, func(t *testing.T) { x.diagnose(t, s) })
	}
}

// serverTLS is how a server proves itself by a certificate.
func serverTLS(pair tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

// quiet is a log that nobody reads.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// exitCode is that of a command which ended with err.
func exitCode(err error) int {
	ee, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0
	case ok:
		return ee.ExitCode()
	}
	return -1
}
