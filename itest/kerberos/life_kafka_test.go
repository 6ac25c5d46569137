package kerberos

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/doctor"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// tokenKafka is a broker that wants GSSAPI or a delegation token of its own, which is good for a minute, and a new proof every fifteen seconds.
type tokenKafka struct {
	*cluster
	k           *testbed.Kafka
	client      *kgo.Client // at the listener that wants no proof
	krb, strict string      // listeners; the second takes no tokens
}

func (x *cluster) startTokenKafka(t *testing.T) *tokenKafka {
	t.Helper()
	x.kdc.Admin("addprinc -randkey kafka/localhost\n")
	keytab := x.kdc.Keytab("kafka.keytab", false, "kafka/localhost")
	at := func() string { return fmt.Sprintf("localhost:%d", testbed.FreePort(t)) }
	g := &tokenKafka{cluster: x, krb: at(), strict: at()}
	g.k = testbed.StartKafkasAs(t, x.bed, 1, testbed.KafkaSetup{
		JVM:       []string{"-Djava.security.krb5.conf=" + x.kdc.Conf},
		Listeners: []string{"KRB:SASL_PLAINTEXT@" + g.krb, "STRICT:SASL_PLAINTEXT@" + g.strict},
		Extra: func(int) string {
			login := fmt.Sprintf(`com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="%s" principal="kafka/localhost@%s";`, keytab, x.kdc.Realm)
			return fmt.Sprintf(`sasl.enabled.mechanisms=GSSAPI,SCRAM-SHA-256
listener.name.strict.sasl.enabled.mechanisms=GSSAPI
delegation.token.secret.key=of-the-test
delegation.token.expiry.time.ms=60000
delegation.token.max.lifetime.ms=120000
connections.max.reauth.ms=15000
sasl.kerberos.service.name=kafka
listener.name.krb.gssapi.sasl.jaas.config=%[1]s
listener.name.strict.gssapi.sasl.jaas.config=%[1]s
listener.name.krb.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
`, login)
		},
	})[0]
	var err error
	if g.client, err = kgo.NewClient(kgo.SeedBrokers(g.k.Bootstrap), kgo.ConsumeTopics("out"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.client.Close)
	for _, topic := range []string{"in", "out"} {
		r := kmsg.NewPtrCreateTopicsRequest()
		one := kmsg.NewCreateTopicsRequestTopic()
		one.Topic, one.NumPartitions, one.ReplicationFactor = topic, 2, 1
		r.Topics = append(r.Topics, one)
		if _, err := r.RequestWith(t.Context(), g.client); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// by are the options of who logs in by tokens that alice's keytab gets.
func (g *tokenKafka) by(brokers string) []string {
	return []string{"--target", "yarn", "--kafka.brokers", brokers, "--kafka.sasl.mechanism", "GSSAPI", "--kafka.delegation-token", "on", "--kerberos.keytab", g.kdc.KeytabOf("alice")}
}

// judged has the doctor look at the broker's tokens.
func (g *tokenKafka) judged(t *testing.T, exe string) {
	t.Helper()
	for brokers, diagnosis := range map[string]string{g.krb: "", g.strict: "kafka-tokens-scram"} {
		out, _ := g.heddle(t, exe, nil, append([]string{"doctor", "--json"}, g.by(brokers)...)...) // what else it finds is not looked at here
		var rs []doctor.Result
		if err := json.Unmarshal([]byte(out[strings.Index(out, "["):]), &rs); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		found := false
		for _, r := range rs {
			if r.Check == "kafka-tokens" {
				found = true
				if r.Diagnosis != diagnosis || (diagnosis == "") != (r.Status == "pass") {
					t.Errorf("at %s the doctor finds %+v", brokers, r)
				}
			}
		}
		if !found {
			t.Errorf("the doctor says nothing of tokens:\n%s", out)
		}
	}
}

// copying is a job that copies records from one topic to another, by way of another agent.
const copying = `name: copying
source: { kafka: { topics: [in], format: text }, parallelism: 2 }
sink: { kafka: { topic: out, format: { text: "{line}" } }, parallelism: 4 }
`

// feed writes records into the topic until it is told to stop, and returns how many there are.
func (g *tokenKafka) feed(t *testing.T) (stop func() int) {
	var over atomic.Bool
	n := make(chan int)
	go func() {
		i := 0
		defer func() { n <- i }()
		for ; !over.Load(); i++ {
			if err := g.client.ProduceSync(t.Context(), &kgo.Record{Topic: "in", Value: fmt.Appendf(nil, "record %d", i)}).FirstErr(); err != nil {
				t.Errorf("cannot write record %d: %v", i, err)
				return
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-t.Context().Done():
			}
		}
	}()
	return func() int { over.Store(true); return <-n }
}

// copied waits until every record is in the other topic.
func (g *tokenKafka) copied(t *testing.T, n int, why func() string) {
	t.Helper()
	seen := map[string]bool{}
	g.bed.Eventually("all records are copied", 3*time.Minute, func() error {
		for range 100 {
			f := g.client.PollRecords(t.Context(), 100)
			f.EachRecord(func(r *kgo.Record) { seen[string(r.Value)] = true })
			if len(seen) == n || f.NumRecords() == 0 {
				break
			}
		}
		if len(seen) != n {
			return fmt.Errorf("%d of %d are\n%s", len(seen), n, why())
		}
		return nil
	})
}

// snapshot is what the application says of itself.
func (x *cluster) snapshot(t *testing.T, exe string, who []string, app string) (*appmaster.Snapshot, error) {
	t.Helper()
	out, err := x.heddle(t, exe, who, "status", app, "--json")
	var s struct{ Snapshot *appmaster.Snapshot }
	if err == nil {
		err = json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &s)
	}
	if err == nil && (s.Snapshot == nil || s.Snapshot.State != "running") {
		err = errors.New("it does not run")
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return s.Snapshot, nil
}

// running waits until an application runs in an attempt.
func (x *cluster) running(t *testing.T, exe string, who []string, app string, attempt uint32) (s *appmaster.Snapshot) {
	t.Helper()
	x.bed.Eventually(fmt.Sprintf("%s runs in attempt %d", app, attempt), 4*time.Minute, func() (err error) {
		if s, err = x.snapshot(t, exe, who, app); err == nil && s.MasterAttempt != attempt {
			err = fmt.Errorf("it is attempt %d", s.MasterAttempt)
		}
		return err
	})
	return s
}

// certificateOf is until when the certificate is good that a process shows.
func certificateOf(t *testing.T, addr string) time.Time {
	t.Helper()
	nc, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Minute}, Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatalf("cannot connect to %s: %v", addr, err)
	}
	defer nc.Close()
	return nc.(*tls.Conn).ConnectionState().PeerCertificates[0].NotAfter
}

// masters are the processes of an application's ApplicationMaster: it, and what started it, if that is there still.
func (x *cluster) masters(t *testing.T, app string) (pids []int) {
	t.Helper()
	for _, pid := range x.h.Containers() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && strings.Contains(string(environ), "HEDDLE_ROLE=appmaster") && strings.Contains(placeOf(pid), app) {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		t.Fatalf("there is no ApplicationMaster of %s\n%s", app, x.logs())
	}
	return pids
}

// killMaster kills an application's ApplicationMaster.
func (x *cluster) killMaster(t *testing.T, app string) {
	t.Helper()
	for _, pid := range x.masters(t, app) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one may end with another
	}
}

// placeOf is the folder that a process runs in.
func placeOf(pid int) string {
	dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return dir
}
