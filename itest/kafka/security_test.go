package kafka

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/kafkasource"
	"github.com/twmb/franz-go/pkg/kgo"
)

// keytool runs Java's keytool in a folder.
func keytool(t *testing.T, dir string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "keytool", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("keytool %s: %v\n%s", args[0], err, out)
	}
}

// TestSecurity logs in by each mechanism that a plain broker has, over TLS with stores that Java made, by options and by a properties file of Kafka's;
// logins end every few seconds, and reading and writing go on.
func TestSecurity(t *testing.T) {
	testbed.Group(t, "kafka-long")
	b := testbed.New(t)
	dir := b.Dir("stores")
	keytool(t, dir, "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=broker", "-ext", "san=ip:127.0.0.1", "-validity", "30",
		"-storetype", "PKCS12", "-keystore", "broker.p12", "-storepass", "changeit")
	keytool(t, dir, "-exportcert", "-rfc", "-alias", "broker", "-keystore", "broker.p12", "-storepass", "changeit", "-file", "broker.pem")
	keytool(t, dir, "-importcert", "-noprompt", "-alias", "broker", "-file", "broker.pem", "-storetype", "JKS", "-keystore", "trust.jks", "-storepass", "changeit")
	ssl, plain := testbed.FreePort(t), testbed.FreePort(t)
	k := testbed.StartKafkasAs(t, b, 1, testbed.KafkaSetup{Extra: func(int) string {
		return fmt.Sprintf(`sasl.enabled.mechanisms=PLAIN,OAUTHBEARER
connections.max.reauth.ms=6000
ssl.keystore.location=%s
ssl.keystore.password=changeit
ssl.keystore.type=PKCS12
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="a" user_etl="hush";
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="a" user_etl="hush";
listener.name.secure.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="admin";
listener.name.login.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="admin";
`, filepath.Join(dir, "broker.p12"))
	}, Listeners: []string{fmt.Sprintf("SECURE:SASL_SSL@127.0.0.1:%d", ssl), fmt.Sprintf("LOGIN:SASL_PLAINTEXT@127.0.0.1:%d", plain)}})[0]
	cl := newClient(t, kgo.SeedBrokers(k.Bootstrap))
	l := &long{t, k, cl}
	l.create("secure", 2)

	now := time.Now().Unix()
	token := b.File("token", unsecured(fmt.Sprintf(`{"sub":"etl","iat":%d,"exp":%d}`, now, now+3600)))
	properties := b.File("client.properties", fmt.Sprintf(`security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="etl" password="hush";
ssl.truststore.location=%s
ssl.truststore.password=changeit
`, filepath.Join(dir, "trust.jks")))
	secure, login := net.JoinHostPort("127.0.0.1", fmt.Sprint(ssl)), net.JoinHostPort("127.0.0.1", fmt.Sprint(plain))
	for name, test := range map[string]struct {
		brokers string
		options map[string]string
	}{
		"PLAIN":                   {login, map[string]string{"kafka.sasl.mechanism": "PLAIN", "kafka.sasl.user": "etl", "kafka.sasl.password": "hush"}},
		"OAUTHBEARER":             {login, map[string]string{"kafka.sasl.mechanism": "OAUTHBEARER", "kafka.sasl.oauth.token-file": token}},
		"PLAIN, TLS by JKS":       {secure, map[string]string{"kafka.sasl.mechanism": "PLAIN", "kafka.sasl.user": "etl", "kafka.sasl.password": "hush", "kafka.tls.enabled": "true", "kafka.tls.truststore": filepath.Join(dir, "trust.jks"), "kafka.tls.truststore-password": "changeit"}},
		"a properties file":       {secure, map[string]string{"kafka.properties": properties}},
		"OAUTHBEARER, TLS by PEM": {secure, map[string]string{"kafka.sasl.mechanism": "OAUTHBEARER", "kafka.sasl.oauth.token-file": token, "kafka.tls.enabled": "true", "kafka.tls.ca-file": filepath.Join(dir, "broker.pem")}},
	} {
		t.Run(name, func(t *testing.T) { secureRun(t, k, strings.ReplaceAll(name, " ", ""), test.brokers, test.options) })
	}
	rt := newTask(t, k)
	rt.brokers, rt.options = login, map[string]string{"kafka.sasl.mechanism": "PLAIN", "kafka.sasl.user": "etl", "kafka.sasl.password": "wrong-hush"}
	_, err := kafkasource.Topics("secure").Enumerator(t.Context(), flow.EnumeratorEnv{Node: rt.Node(), Readers: 1, Option: rt.Option, Warn: func(string) {}})
	if err == nil || !strings.Contains(err.Error(), "kafka.sasl.user") || strings.Contains(err.Error(), "wrong-hush") {
		t.Errorf("a wrong password: %v", err)
	}
}

// secureRun writes and reads for longer than a login lasts.
func secureRun(t *testing.T, k *testbed.Kafka, prefix, brokers string, options map[string]string) {
	rt := newTask(t, k)
	rt.brokers, rt.options = brokers, options
	w, err := flow.Encode(kafkasink.Topic("secure"), ofText).NewWriter(t.Context(), rt)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	x := read(t, rt, kafkasource.Topics("secure").Start(kafkasource.Latest()))
	n := 0
	for end := time.Now().Add(14 * time.Second); time.Now().Before(end); n += 50 {
		write(t, w, prefix, n, n+50)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.until(n + 50)
	}
	x.want(prefix, n)
	if re := rt.Counter("resent batches").Load(); re > 0 {
		t.Errorf("%d batches were sent again: connections were not renewed in time", re)
	}
}

// unsecured is a token that nobody has signed, as brokers without settings for that take it.
func unsecured(claims string) string {
	e := base64.RawURLEncoding
	return e.EncodeToString([]byte(`{"alg":"none"}`)) + "." + e.EncodeToString([]byte(claims)) + "."
}

// TestRack: with a rack, partitions are read from the replica there, and from the leader while that replica is away (M-02).
func TestRack(t *testing.T) {
	testbed.Group(t, "kafka-long")
	b := testbed.New(t)
	nodes := testbed.StartKafkasAs(t, b, 3, testbed.KafkaSetup{Extra: func(i int) string {
		return fmt.Sprintf("broker.rack=r%d\nreplica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector\n", i)
	}})
	var all []string
	for _, k := range nodes {
		all = append(all, k.Bootstrap)
	}
	cl := newClient(t, kgo.SeedBrokers(all...))
	l := &long{t, nodes[0], cl}
	l.create("rack", 6)
	leaders := inSync(t, b, cl, "rack", 3)
	near := nodes[2]
	rt := newTask(t, nodes[0])
	rt.brokers = strings.Join(all, ",")
	rt.options["kafka.rack"] = "r3"
	l.produce(numberedRecords("rack", "r", 0, 600, 6)...)
	x := read(t, rt, kafkasource.Topics("rack"))
	x.until(600)
	if conns := connectionsTo(t, near.Bootstrap); conns == 0 {
		t.Errorf("there is no connection to the near broker; leaders are %v", leaders)
	}
	near.Kill()
	l.produce(numberedRecords("rack", "r", 600, 1200, 6)...)
	x.until(1200)
	near.Start()
	inSync(t, b, cl, "rack", 3)
	l.produce(numberedRecords("rack", "r", 1200, 1800, 6)...)
	x.until(1800)
	x.want("r", 1800)
}

// connectionsTo counts this process's connections to an address.
func connectionsTo(t *testing.T, addr string) (n int) {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	var p int
	if _, err := fmt.Sscan(port, &p); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 3 && strings.HasSuffix(f[2], fmt.Sprintf(":%04X", p)) && f[3] == "01" {
				n++
			}
		}
	}
	return n
}
