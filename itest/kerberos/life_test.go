package kerberos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestLife has two jobs that outlive what they began with three times over, on a cluster where all is sealed and data is encrypted. One writes into HDFS, whose tokens are
// good for half a minute and can be renewed once. The other copies records in Kafka, by delegation tokens that are good for a minute, with certificates
// that are, too; when three of their lives are over, its ApplicationMaster is killed, and agents come to the next one by their latest certificates. In the end NodeManagers
// collect the logs of both, by tokens that the ResourceManager, which may act for users, got for that.
func TestLife(t *testing.T) {
	testbed.Group(t, "kerberos-long")
	x := startCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{
		NodeManagers: 2,
		Core:         map[string]string{"hadoop.rpc.protection": "privacy"},
		HDFS: map[string]string{
			"dfs.encrypt.data.transfer": "true", "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
			"dfs.namenode.delegation.token.renew-interval": "30000", "dfs.namenode.delegation.token.max-lifetime": "60000",
		},
		DataTransfer: "privacy",
		YARN: map[string]string{"yarn.log-aggregation-enable": "true", "yarn.resourcemanager.proxy-user-privileges.enabled": "true",
			"yarn.resourcemanager.system-credentials.valid-time-remaining": "20000"},
	})
	x.folders(t)
	g := x.startTokenKafka(t)
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	alice := x.ticketOf("alice")
	g.judged(t, exe)

	const seconds = 200
	started := time.Now()
	life := x.start(t, exe, alice, "life", fmt.Sprintf(`name: life
source: { generator: { count: %d, rate: 10, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/life", format: json } }
`, 10*seconds), "--target", "yarn", "--kerberos.keytab", x.kdc.KeytabOf("alice"))
	copies := x.start(t, exe, alice, "copying", copying, append(g.by(g.krb), "--agent.certificate-life", "1m")...)
	fed := g.feed(t)
	x.running(t, exe, alice, copies, 0)
	x.bed.Eventually("three lives of certificates and of Kafka's tokens are over", 6*time.Minute, func() error {
		if left := time.Until(started.Add(190 * time.Second)); left > 0 {
			return fmt.Errorf("in %v", left)
		}
		return nil
	})
	for _, a := range x.running(t, exe, alice, copies, 0).Agents {
		if left := time.Until(certificateOf(t, a.Exchange)); left <= 0 || left > time.Minute {
			t.Errorf("the certificate that %s shows is good for %v", a.ID, left)
		}
	}
	x.killMaster(t, copies)
	x.running(t, exe, alice, copies, 1)
	n := fed()
	g.copied(t, n, x.logs)
	if out, err := x.heddle(t, exe, alice, "cancel", copies); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := x.heddle(t, exe, alice, "wait", life); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	x.checkLines(t, "/user/alice/life", 10*seconds)

	logs := x.collected(t, exe, alice, life, "appmaster ", "agent-1 ", "agent-2 ")
	if n := strings.Count(logs, "took fresh tokens"); n < 6 {
		t.Errorf("the agents took fresh tokens %d times\n%s", n, logs)
	}
	logs = x.collected(t, exe, alice, copies, "appmaster ", "agent-1 ", "agent-2 ")
	t.Logf("the logs of the copying job:\n%s", logs)
	for text, least := range map[string]int{"took a new certificate": 8, "kind=KAFKA_DELEGATION_TOKEN": 3, "cancelled tokens": 1, "replaced delegation tokens that had ended": 1, "registered with the ApplicationMaster": 4} {
		if n := strings.Count(logs, text); n < least {
			t.Errorf("the log says %q %d times, not %d", text, n, least)
		}
	}
}

// start submits a job with two agents, each on a host of its own, and returns the application's id.
func (x *cluster) start(t *testing.T, exe string, who []string, name, job string, options ...string) string {
	t.Helper()
	args := append([]string{"run", x.bed.File(name+".yaml", job), "--agents", "2", "--parallelism", "4", "--yarn.agents-per-node", "1", "--detach", "--quiet"}, options...)
	out, err := x.heddle(t, exe, who, args...)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	return strings.TrimSpace(out[strings.LastIndex(out, "application_"):])
}
