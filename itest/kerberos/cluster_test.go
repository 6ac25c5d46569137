package kerberos

import (
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// cluster is a secure cluster and its realm.
type cluster struct {
	bed  *testbed.Bed
	kdc  *testbed.KDC
	h    *testbed.Hadoop
	conf *hconf.Conf
}

// users of the realm beside those of Hadoop.
var users = []string{"alice", "bob", "carol"}

func newCluster(t *testing.T, kopt testbed.KDCOptions, opt testbed.HadoopOptions) *cluster {
	t.Helper()
	testbed.Group(t, "kerberos")
	return startCluster(t, kopt, opt)
}

func startCluster(t *testing.T, kopt testbed.KDCOptions, opt testbed.HadoopOptions) *cluster {
	t.Helper()
	if opt.NodeManagers == 0 {
		opt.NodeManagers = 1
	}
	x := &cluster{bed: testbed.New(t)}
	kopt.Principals = append(testbed.HadoopPrincipals(opt.NodeManagers), users...)
	kopt.Extra += "  udp_preference_limit = 1\n"
	x.kdc = testbed.StartKDC(t, x.bed, kopt)
	opt.KDC = x.kdc
	start := time.Now()
	x.h = testbed.StartHadoop(t, x.bed, opt)
	t.Logf("cluster ready after %v", time.Since(start).Round(10*time.Millisecond))
	var err error
	if x.conf, err = hconf.Load(hconf.Options{Dir: x.h.ConfDir, Need: []string{"core-site.xml", "yarn-site.xml"}}); err != nil {
		t.Fatal(err)
	}
	return x
}

// login logs a user in by keytab.
func (x *cluster) login(t *testing.T, user string) *krb.Login {
	t.Helper()
	l, err := krb.Open(krb.Config{Env: env(x.kdc.Env()...), Keytab: x.kdc.KeytabOf(user)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (x *cluster) principal(t *testing.T, key string) string {
	t.Helper()
	p, err := x.conf.String(key)
	if err != nil || !strings.Contains(p, "@") {
		t.Fatalf("%s is %q (%v)", key, p, err)
	}
	return p
}

// evil is a user of a realm that has principals of the same names, and is not ours.
func (x *cluster) evil(t *testing.T) *krb.Login {
	t.Helper()
	k := testbed.StartKDC(t, x.bed, testbed.KDCOptions{Realm: "EVIL.LOCAL", Principals: []string{"alice", "nn/localhost"}})
	l, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: k.KeytabOf("alice")})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCluster is a cluster that offers every protection, so that each can be asked for.
func TestCluster(t *testing.T) {
	x := newCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{
		Core:         map[string]string{"hadoop.rpc.protection": "privacy,integrity,authentication"},
		DataTransfer: "privacy,integrity,authentication",
		YARN:         map[string]string{"yarn.node-labels.enabled": "true"},
		Scheduler:    closedQueue,
	})
	t.Run("rpc", x.testRPC)
	t.Run("wire", x.testRPCWire)
	t.Run("refusals", x.testRPCRefusals)
	t.Run("hdfs", x.testHDFS)
	t.Run("yarn", x.testYARN)
	t.Run("job", x.testJob)
	t.Run("attacks", x.testAttacks)
	t.Run("observe", x.testObserve)
	t.Run("doctor", x.testDoctor)
	t.Run("doctor, Kafka", x.testDoctorKafka)
	t.Run("proxy user", x.testProxyUser)
	t.Run("no REST", x.testNoREST)
}
