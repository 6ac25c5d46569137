package yarn

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestKafka runs jobs on YARN that read a broker which demands logins over TLS, and sources that wait for each other.
func TestKafka(t *testing.T) {
	testbed.Group(t, "yarn-long")
	t.Setenv("ITEST", "yarn")
	x := newBench(t, testbed.HadoopOptions{Unprivileged: true})
	c := &command{bench: x, exe: testbed.BuildHeddle(t, x.bed)}
	stores := c.stores(t)
	secure := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	k := testbed.StartKafkasAs(t, c.bed, 1, testbed.KafkaSetup{Extra: func(int) string {
		return fmt.Sprintf(`sasl.enabled.mechanisms=PLAIN
ssl.keystore.location=%s
ssl.keystore.password=changeit
ssl.keystore.type=PKCS12
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="a" user_etl="hush";
`, filepath.Join(stores, "broker.p12"))
	}, Listeners: []string{"SECURE:SASL_SSL@" + secure}})[0]
	t.Run("files", func(t *testing.T) { c.testKafkaFiles(t, k, stores, secure) })
	t.Run("aligned", func(t *testing.T) { c.testAligned(t, k) })
}

// stores are a broker's key store and a client's trust store.
func (c *command) stores(t *testing.T) string {
	t.Helper()
	dir := c.bed.Dir("stores")
	for _, args := range [][]string{
		{"-genkeypair", "-alias", "broker", "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=broker", "-ext", "san=ip:127.0.0.1", "-validity", "30",
			"-storetype", "PKCS12", "-keystore", "broker.p12", "-storepass", "changeit"},
		{"-exportcert", "-rfc", "-alias", "broker", "-keystore", "broker.p12", "-storepass", "changeit", "-file", "broker.pem"},
		{"-importcert", "-noprompt", "-alias", "broker", "-file", "broker.pem", "-storetype", "JKS", "-keystore", "trust.jks", "-storepass", "changeit"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "keytool", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("keytool %s: %v\n%s", args[0], err, out)
		}
	}
	return dir
}

// testKafkaFiles names a file of properties, and in it a trust store, by paths that mean something in the command's directory alone: they travel.
func (c *command) testKafkaFiles(t *testing.T, k *testbed.Kafka, stores, secure string) {
	k.CreateTopic("lines", 4)
	k.CreateTopic("counted", 1)
	k.Produce("lines", strings.Repeat("one and two\n", 100))
	if err := os.WriteFile(filepath.Join(stores, "client.properties"), []byte(`security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="etl" password="hush";
ssl.truststore.location=trust.jks
ssl.truststore.password=changeit
`), 0o600); err != nil {
		t.Fatal(err)
	}
	job := c.bed.File("secure.yaml", `name: secure
source: { kafka: { topics: [lines], format: text, stop: latest } }
steps:
  - flat_map: { word: words(line) }
  - key_by: word
  - window: { global: true, aggregate: { count: count() } }
sink: { kafka: { topic: counted, format: { text: "{word} {count}" } } }
`)
	c.n++
	p := c.bed.Start(testbed.Spec{Name: fmt.Sprintf("heddle-%d", c.n), Path: c.exe, Dir: stores,
		Args: []string{"run", job, "--parallelism", "4", "--agent.slots", "2", "--kafka.brokers", secure, "--kafka.properties", "client.properties"},
		Env:  []string{"HADOOP_CONF_DIR=" + c.h.ConfDir, "HADOOP_USER_NAME=" + user, "HEDDLE_TARGET=yarn", "HOME=" + c.bed.Dir("home")}})
	out := c.ends(t, p, 0, "finished: secure", "100 records in, 3 out")
	if strings.Contains(out, "hush") || strings.Contains(out, "warning") {
		t.Errorf("the command says\n%s", out)
	}
	got := strings.Join(k.Consume("counted", 3), "\n")
	for _, want := range []string{"one 100", "two 100", "and 100"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// testAligned reads one topic that could be read at once and one that is read slowly, by subtasks on several agents: of the first, nothing is
// written that is far ahead of the second.
func (c *command) testAligned(t *testing.T, k *testbed.Kafka) {
	const fast, slow, end, drift, slack = 8000, 1600, 8000, 400, 2400 // times in seconds
	for _, topic := range []struct {
		name string
		n    int
	}{{"fast", fast}, {"slow", slow}} {
		k.CreateTopic(topic.name, 4)
		var text strings.Builder
		for i := range topic.n {
			fmt.Fprintf(&text, "{\"of\":%q,\"at\":%d}\n", topic.name, 1000*(i*end/topic.n))
		}
		k.Produce(topic.name, text.String())
	}
	k.CreateTopic("both", 1)
	job := c.bed.File("aligned.yaml", fmt.Sprintf(`name: aligned
sources:
  fast: { kafka: { topics: [fast], format: json, stop: latest }, fields: { of: string, at: int }, event_time: at, max_drift: %[1]ds, align: g }
  slow: { kafka: { topics: [slow], format: json, stop: latest, rate_limit: 50 }, fields: { of: string, at: int }, event_time: at, max_drift: %[1]ds, align: g }
steps: [ { union: [fast, slow] } ]
sink: { kafka: { topic: both, format: json } }
`, drift))
	c.run(t, 0, []string{"finished: aligned"}, "run", job, "--parallelism", "4", "--agent.slots", "2", "--kafka.brokers", k.Bootstrap)
	seen, worst := map[string]int{}, 0
	at := 0 // how far the slow topic is
	for _, line := range k.Consume("both", fast+slow) {
		var r struct {
			Of string
			At int
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen[r.Of]++
		if r.Of == "slow" {
			at = max(at, r.At/1000)
		} else {
			worst = max(worst, r.At/1000-at)
		}
	}
	t.Logf("the fast topic was %d s ahead at most, of %d s", worst, end)
	if seen["fast"] != fast || seen["slow"] != slow || worst > drift+slack {
		t.Errorf("read %v, and the fast topic was %d s ahead of the slow one", seen, worst)
	}
}
