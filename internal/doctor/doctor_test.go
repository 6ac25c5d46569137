package doctor

import (
	"errors"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

// fault is a setup that is broken in one way, and what must be said of it.
type fault struct {
	name   string
	break_ func(*world)

	check, diagnosis string
	status           verdict.Status // "": fail
	says             string         // in what it means
}

// TestDiagnoses breaks a setup in many ways: each gives its own diagnosis, by its own check.
func TestDiagnoses(t *testing.T) {
	for _, f := range slices.Concat(hadoopFaults(), httpFaults(), kerberosFaults(), kafkaFaults(), registryFaults()) {
		t.Run(f.name, func(t *testing.T) {
			w := newWorld(t)
			f.break_(w)
			r := w.run()[f.check]
			want := f.status
			if want == "" {
				want = verdict.Fail
			}
			if r.Diagnosis != f.diagnosis || r.Status != want || !strings.Contains(r.Means, f.says) {
				t.Errorf("%s: %s %q: %s; want %s %q with %q", f.check, r.Status, r.Diagnosis, r.Means, want, f.diagnosis, f.says)
			}
			if want == verdict.Fail && (r.Fix == "" || r.Tried == "") {
				t.Errorf("it is not told what was tried (%q) or what helps (%q)", r.Tried, r.Fix)
			}
		})
	}
}

// refuse makes the NameNode refuse a method by an exception.
func refuse(method, class, message string) func(*world) {
	return func(w *world) {
		w.nn = func(m string) error {
			if m == method {
				return &hrpc.RemoteError{Class: class, Message: message}
			}
			return nil
		}
	}
}

func option(key, value string) func(*world) { return func(w *world) { w.site[key] = value } }

func hadoopFaults() []fault {
	const quota = "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException"
	return []fault{
		{"no configuration", func(w *world) { w.site = nil }, "conf", "conf-missing", "", "core-site.xml"},
		{"broken configuration", func(w *world) {
			w.site = nil
			w.write("core-site.xml", []byte("<configuration><prop"))
			w.write("yarn-site.xml", nil)
		}, "conf", "conf-broken", "", "core-site.xml"},
		{"wrong value", option("hadoop.security.authentication", "kerberoz"), "conf", "conf-value", "", "kerberoz"},
		{"no file system", option("fs.defaultFS", "file:///"), "conf", "conf-value", "", "fs.defaultFS"},
		{"wrong NameNode", func(w *world) { w.site["fs.defaultFS"] = "hdfs://" + closed(w.t) }, "namenode", "nn-unreachable", "", "refused"},
		{"NameNodes on standby", refuse("getFileInfo", hrpc.ClassStandby, "Operation category READ is not supported in state standby"), "namenode", "nn-standby", "", "no active NameNode"},
		{"NameNode denies", refuse("getFileInfo", hrpc.ClassAuthorization, "User alice is not authorized for protocol"), "namenode", "nn-denied", "", "not authorized"},
		{"other protection", otherProtection, "namenode", "nn-protection", "", "protection"},
		{"ResourceManager down", func(w *world) {
			w.site["yarn.resourcemanager.webapp.address"], w.site["yarn.resourcemanager.address"] = closed(w.t), closed(w.t)
		}, "resourcemanager", "rm-unreachable", "", "refused"},
		{"web service down", func(w *world) { w.site["yarn.resourcemanager.webapp.address"] = closed(w.t) }, "resourcemanager", "rm-unreachable", verdict.Warn, "RPC stands in"},
		{"RPC closed", func(w *world) { w.site["yarn.resourcemanager.address"] = closed(w.t) }, "resourcemanager-rpc", "rm-rpc-unreachable", verdict.Warn, "refused"},
		{"ResourceManagers on standby", standbyOnly, "resourcemanager", "rm-standby", "", "no ResourceManager is active"},
		{"web service takes no proof", func(w *world) { w.yarn.Web(yarntest.WebUnproven) }, "queue", "", verdict.Pass, "none is named"},
		{"unknown authority", unknownAuthority, "resourcemanager", "tls-untrusted", verdict.Warn, "certificate"},
		{"no such queue", func(w *world) { w.cfg.Queue = "root.none" }, "queue", "queue-unknown", "", "no queue root.none"},
		{"parent queue", func(w *world) { w.cfg.Queue = "root" }, "queue", "queue-parent", "", "below it"},
		{"stopped queue", func(w *world) { w.cfg.Queue = "stopped" }, "queue", "queue-stopped", "", "STOPPED"},
		{"queue without right", func(w *world) { w.cfg.Queue = "root.closed" }, "queue", "queue-denied", "", "alice may not submit to queue root.closed, but to root.default"},
		{"no such label", func(w *world) { w.cfg.Label = "fpga" }, "label", "label-unknown", "", "gpu, ssd"},
		{"label not for the queue", func(w *world) { w.cfg.Label, w.cfg.Queue = "gpu", "root.closed" }, "label", "label-denied", "", "may not use nodes"},
		{"label without nodes", func(w *world) { w.cfg.Label, w.cfg.Queue = "ssd", "" }, "label", "label-empty", "", "no node"},
		{"large container", func(w *world) {
			w.cfg.Fit = func(a yarnclient.NewApp) (string, error) {
				return "lower --agent.memory", errors.New("an agent wants 99999 MB")
			}
		}, "container", "container-large", "", "99999 MB"},
		{"staging denied", refuse("mkdirs", hrpc.ClassAccessControl, "Permission denied: user=alice, access=WRITE"), "staging", "staging-denied", "", "/staging"},
		{"quota", refuse("mkdirs", quota, "The NameSpace quota of directory /staging is exceeded: quota=1 file count=2"), "staging", "quota-full", "", "quota=1"},
		{"safe mode", refuse("mkdirs", "org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Name node is in safe mode."), "staging", "nn-safe-mode", "", "safe mode"},
		{"no DataNode", refuse("mkdirs", "java.io.IOException", "could only be written to 0 of the 1 minReplication nodes"), "staging", "datanodes", "", "0 of the 1"},
		{"path denied", func(w *world) {
			w.cfg.Needs = []flow.Need{{Kind: flow.NeedPath, Name: "hdfs:///data/in", Read: true}}
			refuse("checkAccess", hrpc.ClassAccessControl, "Permission denied")(w)
		}, "paths", "path-denied", "", "alice may not have r-- access to hdfs:///data/in"},
		{"path missing", func(w *world) {
			w.cfg.Needs = []flow.Need{{Kind: flow.NeedPath, Name: "hdfs:///data/in", Read: true}}
			refuse("checkAccess", "java.io.FileNotFoundException", "Path not found: /data/in")(w)
		}, "paths", "path-missing", "", "there is no hdfs:///data/in"},
		{"name not in DNS", func(w *world) { w.cfg.Resolver = names{}; w.site["yarn.resourcemanager.address"] = "rm.test:8032" }, "dns", "dns-forward", "", "rm.test can't be resolved"},
		{"other name in DNS", func(w *world) {
			w.cfg.Resolver = names{map[string][]string{"rm.test": {"10.0.0.1"}}, map[string][]string{"10.0.0.1": {"other.test."}}}
			w.site["yarn.resourcemanager.address"] = "rm.test:8032"
		}, "dns", "dns-reverse", verdict.Warn, "other.test."},
		{"collector closed", func(w *world) { w.cfg.Collector = "http://" + closed(w.t) }, "collector", "otlp-closed", verdict.Warn, "refused"},
		{"collector untrusted", func(w *world) {
			s := httptest.NewTLSServer(nil)
			w.t.Cleanup(s.Close)
			w.cfg.Collector = s.URL
		}, "collector", "otlp-tls", verdict.Warn, "x509"},
		{"collector without TLS", func(w *world) {
			s := httptest.NewServer(nil)
			w.t.Cleanup(s.Close)
			w.cfg.Collector = strings.Replace(s.URL, "http:", "https:", 1)
		}, "collector", "otlp-plain", verdict.Warn, "does not speak TLS"},
	}
}

// otherProtection has a NameNode that offers authentication alone, and a client that wants privacy. Who we are is proven by a delegation token.
func otherProtection(w *world) {
	w.kerberos()
	w.cfg.Keytab = ""
	password := []byte("secret")
	addr := w.nameNode(hrpctest.Config{Password: func([]byte) ([]byte, bool) { return password, true }})
	w.site["fs.defaultFS"], w.site["hadoop.rpc.protection"] = "hdfs://"+addr, "privacy"
	t := token.Token{Identifier: []byte{0, 5, 'a', 'l', 'i', 'c', 'e', 0, 0, 0, 0, 0, 0}, Password: password, Kind: token.KindHDFS, Service: addr}
	w.env["HADOOP_TOKEN_FILE_LOCATION"] = w.write("tokens", token.Credentials{Tokens: []token.Named{{Alias: addr, Token: t}}}.Append(nil))
	w.env["KRB5CCNAME"] = w.dir + "/none"
}

// standbyOnly knows a ResourceManager alone that is on standby, where nobody listens for RPC.
func standbyOnly(w *world) {
	s := httptest.NewServer(w.yarn.WebHandler(1))
	w.t.Cleanup(s.Close)
	w.site["yarn.resourcemanager.webapp.address"], w.site["yarn.resourcemanager.address"] = strings.TrimPrefix(s.URL, "http://"), closed(w.t)
}

// unknownAuthority has a web service whose certificate nobody vouches for.
func unknownAuthority(w *world) {
	s := httptest.NewTLSServer(w.yarn.WebHandler(0))
	w.t.Cleanup(s.Close)
	w.site["yarn.http.policy"], w.site["yarn.resourcemanager.webapp.https.address"] = "HTTPS_ONLY", strings.TrimPrefix(s.URL, "https://")
}

func kerberosFaults() []fault {
	with := func(f func(*world, *realm)) func(*world) {
		return func(w *world) { f(w, w.kerberos()) }
	}
	return []fault{
		{"login works", with(func(*world, *realm) {}), "login", "", verdict.Pass, "alice@TEST.LOCAL is logged in"},
		{"no krb5.conf", with(func(w *world, _ *realm) { w.env["KRB5_CONFIG"] = w.dir + "/none" }), "krb5", "krb5-conf", "", "none"},
		{"no realm", with(func(w *world, _ *realm) { w.env["KRB5_CONFIG"] = w.write("k", []byte("[libdefaults]\n")) }), "krb5", "krb5-no-realm", "", "no default realm"},
		{"no KDC", with(func(w *world, r *realm) { w.krb5(r, "") }), "krb5", "krb5-no-kdc", "", "no KDC"},
		{"KDC down", with(func(w *world, r *realm) { w.krb5(r, "", closed(w.t)) }), "kdc", "kdc-unreachable", "", "refused"},
		{"one KDC down", with(func(w *world, r *realm) { w.krb5(r, "", closed(w.t), r.addr) }), "kdc", "kdc-dead", verdict.Warn, "1 KDC"},
		{"KDC without UDP", with(func(w *world, r *realm) { w.krb5(r, "", onlyTCP(w.t, r)) }), "kdc", "kdc-udp-closed", verdict.Warn, "not by UDP"},
		{"clock", with(func(_ *world, r *realm) { r.skew(17 * time.Minute) }), "clock", "clock-skew", "", "behind"},
		{"clock drifts", with(func(_ *world, r *realm) { r.skew(-3 * time.Minute) }), "clock", "clock-drift", verdict.Warn, "ahead of"},
		{"no keytab", with(func(w *world, _ *realm) { w.cfg.Keytab = w.dir + "/none" }), "credentials", "keytab-missing", "", "none"},
		{"broken keytab", with(func(w *world, _ *realm) { w.cfg.Keytab = w.write("bad", []byte("x")) }), "credentials", "keytab-broken", "", "not a keytab"},
		{"other principal", with(func(w *world, _ *realm) { w.cfg.Principal = "bob" }), "credentials", "keytab-principal", "", "bob@TEST.LOCAL"},
		{"several principals", with(func(w *world, r *realm) {
			r.Add("bob", 18)
			w.cfg.Keytab = w.write("two", r.Keytab(0, "alice", "bob"))
		}), "credentials", "keytab-choice", "", "alice@TEST.LOCAL, bob@TEST.LOCAL"},
		{"open keytab", with(func(w *world, _ *realm) { chmod(w, 0o644) }), "credentials", "keytab-readable", verdict.Warn, "0644"},
		{"changed key", with(func(_ *world, r *realm) { r.Add("alice", 18) }), "login", "keytab-old", "", "PREAUTH_FAILED"},
		{"changed key, no proof asked", with(func(_ *world, r *realm) { r.change(func() { r.Preauth = false }); r.Add("alice", 18) }), "login", "keytab-old", "", "another key"},
		{"other type of key", with(func(_ *world, r *realm) { r.Add("alice", 17) }), "login", "keytab-enctype", "", "aes256"},
		{"type not allowed", with(func(w *world, r *realm) { w.krb5(r, " permitted_enctypes = aes128-cts", r.addr) }), "login", "keytab-enctype", "", "krb5.conf allows"},
		{"unknown principal", with(func(w *world, r *realm) {
			other := w.kerberosKeytab("carol")
			w.cfg.Keytab = other
		}), "login", "principal-unknown", "", "carol@TEST.LOCAL"},
		{"locked", with(func(_ *world, r *realm) { r.change(func() { r.Refuse = 18 }) }), "login", "principal-locked", "", "locked"},
		{"password expired", with(func(_ *world, r *realm) { r.change(func() { r.Refuse = 23 }) }), "login", "password-expired", "", "expired"},
		{"no ticket", with(func(w *world, _ *realm) { w.cfg.Keytab, w.env["KRB5CCNAME"] = "", w.dir+"/none" }), "credentials", "ticket-missing", "", "no ticket cache"},
		{"kind of cache", with(func(w *world, _ *realm) { w.cfg.Keytab, w.env["KRB5CCNAME"] = "", "KCM:0" }), "credentials", "cache-kind", "", "KCM"},
		{"NameNode without security", with(func(*world, *realm) {}), "namenode", "nn-auth", "", "asks for no proof"},
		{"nothing after a failure", with(func(w *world, r *realm) { w.krb5(r, "", closed(w.t)) }), "namenode", "", verdict.Skipped, "needs KDC"},
	}
}

func chmod(w *world, mode os.FileMode) {
	if err := os.Chmod(w.cfg.Keytab, mode); err != nil {
		w.t.Fatal(err)
	}
}

func kafkaFaults() []fault {
	right := func(kind kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	cluster := func(needs []flow.Need, change func(*kafka.Config), opts ...kfake.Opt) func(*world) {
		return func(w *world) {
			opts = append(opts, kfake.NumBrokers(1), kfake.SeedTopics(2, "in", "out"))
			c, err := kfake.NewCluster(opts...)
			if err != nil {
				w.t.Fatal(err)
			}
			w.t.Cleanup(c.Close)
			cfg := kafka.Config{Brokers: c.ListenAddrs(), SASL: kafka.SASL{Mechanism: "SCRAM-SHA-256", User: "alice", Password: "secret"}}
			if change != nil {
				change(&cfg)
			}
			w.cfg.Hadoop, w.cfg.Needs, w.cfg.Kafka = false, needs, []KafkaCluster{{Config: cfg}}
		}
	}
	sasl := []kfake.Opt{kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("SCRAM-SHA-256", "alice", "secret", right(kmsg.ACLResourceTypeTopic, "in", kmsg.ACLOperationRead),
		right(kmsg.ACLResourceTypeTopic, "out", kmsg.ACLOperationDescribe), right(kmsg.ACLResourceTypeGroup, "mine", kmsg.ACLOperationRead))}
	topic := func(name string, write bool) []flow.Need {
		return []flow.Need{{Kind: flow.NeedTopic, Name: name, Read: !write, Write: write}}
	}
	group := func(name string) []flow.Need { return []flow.Need{{Kind: flow.NeedGroup, Name: name, Write: true}} }
	return []fault{
		{"Kafka works", cluster(topic("in", false), nil, sasl...), "kafka-topics", "", verdict.Pass, "in (2 partitions)"},
		{"topics of a pattern", cluster([]flow.Need{{Kind: flow.NeedTopic, Name: "i.*", Pattern: true, Read: true}}, nil, sasl...), "kafka-topics", "", verdict.Pass, "in (2 partitions)"},
		{"Kafka down", func(w *world) { w.cfg.Kafka = []KafkaCluster{{Config: kafka.Config{Brokers: []string{closed(w.t)}}}} }, "kafka", "kafka-unreachable", "", "refused"},
		{"no brokers", func(w *world) { w.cfg.Kafka = []KafkaCluster{{Err: errors.New("no brokers are configured")}} }, "kafka", "kafka-options", "", "no brokers"},
		{"wrong password", cluster(nil, func(c *kafka.Config) { c.SASL.Password = "wrong" }, sasl...), "kafka", "kafka-hangs-up", "", "kafka.sasl.password"},
		{"mechanism not offered", cluster(nil, func(c *kafka.Config) {
			c.SASL = kafka.SASL{Mechanism: "OAUTHBEARER", OAuth: kafka.OAuth{TokenFile: os.DevNull}}
		}, sasl...), "kafka", "kafka-mechanism", "", ""},
		{"no login", cluster(nil, func(c *kafka.Config) { c.SASL = kafka.SASL{} }, sasl...), "kafka", "kafka-hangs-up", "", "hung up"},
		{"no TLS there", cluster(nil, func(c *kafka.Config) { c.TLS.Enabled = true }, sasl...), "kafka", "kafka-tls", "", "TLS"},
		{"topic without right", cluster(topic("out", true), nil, sasl...), "kafka-topics", "topic-denied", "", "User:alice may not write topic out"},
		{"topic missing", cluster(topic("none", false), func(c *kafka.Config) { c.SASL = kafka.SASL{} }), "kafka-topics", "topic-missing", "", "no topic none"},
		{"group", cluster(group("mine"), nil, sasl...), "kafka-groups", "", verdict.Pass, "mine"},
		{"group without right", cluster(group("theirs"), nil, sasl...), "kafka-groups", "group-denied", "", "User:alice may not use group theirs"},
	}
}
