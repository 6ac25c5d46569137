package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	client "github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/kafkasource"
	"github.com/twmb/franz-go/pkg/kgo"
)

// realm is a broker that wants Kerberos, plain and over TLS, and makes everybody prove again who they are every three seconds.
type realm struct {
	bed          *testbed.Bed
	kdc          *testbed.KDC
	k            *testbed.Kafka
	stores       string // folder
	plain, inTLS string // host:port
}

func newRealm(t *testing.T) *realm {
	t.Helper()
	b := testbed.New(t)
	r := &realm{bed: b, stores: b.Dir("stores")}
	r.kdc = testbed.StartKDC(t, b, testbed.KDCOptions{Principals: []string{"kafka/localhost", "etl", "short", "brief"}, Extra: "  udp_preference_limit = 1\n"})
	// Its tickets end in the midst of the test, and are had anew.
	r.kdc.Admin("modprinc -maxlife \"8 seconds\" short\n")
	keytool(t, r.stores, "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=broker", "-ext", "san=dns:localhost", "-validity", "30",
		"-storetype", "PKCS12", "-keystore", "broker.p12", "-storepass", "changeit")
	keytool(t, r.stores, "-exportcert", "-rfc", "-alias", "broker", "-keystore", "broker.p12", "-storepass", "changeit", "-file", "broker.pem")
	keytab := r.kdc.Keytab("kafka.keytab", false, "kafka/localhost")
	r.plain, r.inTLS = fmt.Sprintf("localhost:%d", testbed.FreePort(t)), fmt.Sprintf("localhost:%d", testbed.FreePort(t))
	login := fmt.Sprintf(`com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="%s" principal="kafka/localhost@%s";`, keytab, r.kdc.Realm)
	r.k = testbed.StartKafkasAs(t, b, 1, testbed.KafkaSetup{
		JVM:       []string{"-Djava.security.krb5.conf=" + r.kdc.Conf},
		Listeners: []string{"KRB:SASL_PLAINTEXT@" + r.plain, "KRBS:SASL_SSL@" + r.inTLS},
		Extra: func(int) string {
			return fmt.Sprintf(`sasl.enabled.mechanisms=GSSAPI,SCRAM-SHA-256
delegation.token.secret.key=of-the-test
sasl.kerberos.service.name=kafka
connections.max.reauth.ms=3000
ssl.keystore.location=%[1]s
ssl.keystore.password=changeit
ssl.keystore.type=PKCS12
listener.name.krb.gssapi.sasl.jaas.config=%[2]s
listener.name.krbs.gssapi.sasl.jaas.config=%[2]s
listener.name.krb.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.krbs.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
`, filepath.Join(r.stores, "broker.p12"), login)
		},
	})[0]
	return r
}

// by are the options of a client that uses Kerberos; changes come as names and values, and "" takes an option away.
func (r *realm) by(changes ...string) map[string]string {
	o := map[string]string{"kafka.sasl.mechanism": "GSSAPI", "kafka.sasl.kerberos.principal": "etl@" + r.kdc.Realm, "kafka.sasl.kerberos.conf": r.kdc.Conf}
	for i := 0; i < len(changes); i += 2 {
		if o["kafka."+changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(o, "kafka."+changes[i])
		}
	}
	return o
}

// heard is a log that is kept.
type heard struct {
	mu sync.Mutex // guards s
	s  strings.Builder
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.s.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.s.String()
}

// TestKerberos reads and writes by GSSAPI: by keytab and by ticket cache, plain and over TLS, while the broker wants a new proof every three seconds, tickets
// end and the KDC goes away; and tells clearly what is wrong when it can't.
func TestKerberos(t *testing.T) {
	testbed.Group(t, "kerberos")
	r := newRealm(t)
	cl := newClient(t, kgo.SeedBrokers(r.k.Bootstrap))
	(&long{t, r.k, cl}).create("secret", 2)
	keytab, short := r.kdc.KeytabOf("etl"), r.kdc.KeytabOf("short")
	cache := filepath.Join(r.bed.Dir("caches"), "cc")
	brief := filepath.Join(r.bed.Dir("caches"), "brief")
	r.kdc.Kinit(cache, keytab, "etl")
	r.kdc.Kinit(brief, r.kdc.KeytabOf("brief"), "brief", "-l", "5s")
	began := time.Now()
	tls := []string{"tls.enabled", "true", "tls.ca-file", filepath.Join(r.stores, "broker.pem")}
	properties := r.bed.File("client.properties", fmt.Sprintf(`bootstrap.servers=%s
security.protocol=SASL_PLAINTEXT
sasl.kerberos.service.name=kafka
sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="%s" principal="etl@%s";
`, r.plain, keytab, r.kdc.Realm))
	byShort := []string{"sasl.kerberos.keytab", short, "sasl.kerberos.principal", ""}

	var all sync.WaitGroup
	for name, test := range map[string]struct {
		brokers string
		options map[string]string
	}{
		"keytab":     {r.plain, r.by(byShort...)},
		"keytab,TLS": {r.inTLS, r.by(append(tls, byShort...)...)},
		"cache":      {r.plain, r.by("sasl.kerberos.cache", cache)},
		"properties": {r.plain, map[string]string{"kafka.properties": properties, "kafka.sasl.kerberos.conf": r.kdc.Conf}},
	} {
		all.Go(func() {
			t.Run(name, func(t *testing.T) { r.run(t, name, test.brokers, test.options, nil) })
		})
	}
	all.Go(func() { t.Run("token", func(t *testing.T) { r.byToken(t, keytab) }) })
	all.Wait()
	t.Run("KDC away", func(t *testing.T) {
		r.run(t, "away", r.plain, r.by("sasl.kerberos.keytab", keytab), r.kdc.Stop)
		r.kdc.Start()
	})

	for name, test := range map[string]struct {
		options map[string]string
		says    []string
	}{
		"not in the keytab": {r.by("sasl.kerberos.keytab", keytab, "sasl.kerberos.principal", "bob@"+r.kdc.Realm), []string{"bob@" + r.kdc.Realm, "etl@" + r.kdc.Realm}},
		"service":           {r.by("sasl.kerberos.keytab", keytab, "sasl.kerberos.service", "kafak"), []string{"kafak/localhost", "kafka.sasl.kerberos.service"}},
		"no cache":          {r.by("sasl.kerberos.cache", "/does/not/exist"), []string{"/does/not/exist", "kinit"}},
		"another's cache":   {r.by("sasl.kerberos.cache", brief), []string{"brief@", "kinit"}},
		"expired":           {r.by("sasl.kerberos.cache", brief, "sasl.kerberos.principal", "brief@"+r.kdc.Realm), []string{"expired", "kinit"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "expired" {
				time.Sleep(time.Until(began.Add(6 * time.Second))) // the ticket's end, which has long come on a busy machine
			}
			err := r.refused(t, test.options)
			for _, s := range test.says {
				if err == nil || !strings.Contains(err.Error(), s) {
					t.Errorf("want an error with %q: %v", s, err)
				}
			}
		})
	}
}

// refused returns why a client can't start.
func (r *realm) refused(t *testing.T, options map[string]string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	rt := newTask(t, r.k)
	rt.brokers, rt.options = r.plain, options
	e, err := kafkasource.Topics("secret").Enumerator(ctx, flow.EnumeratorEnv{Node: rt.Node(), Readers: 1, Option: rt.Option, Warn: func(string) {}})
	if err == nil {
		e.Close()
	}
	return err
}

// run writes and reads for as long as three logins last, after meanwhile was called, unless it is nil. Nothing may be lost or doubled, or held up by Kerberos.
func (r *realm) run(t *testing.T, prefix, brokers string, options map[string]string, meanwhile func()) {
	rt := newTask(t, r.k)
	log := new(heard)
	rt.brokers, rt.options, rt.log = brokers, options, slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), nil))
	topic := "secret-" + strings.ReplaceAll(prefix, ",", "-")
	(&long{t, r.k, newClient(t, kgo.SeedBrokers(r.k.Bootstrap))}).create(topic, 2)
	w, err := flow.Encode(kafkasink.Topic(topic), ofText).NewWriter(t.Context(), rt)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	x := read(t, rt, kafkasource.Topics(topic))
	n := 0
	for end := time.Now().Add(9 * time.Second); time.Now().Before(end); n += 50 {
		write(t, w, prefix, n, n+50)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.until(n + 50)
		if n == 0 && meanwhile != nil {
			meanwhile()
		}
	}
	x.want(prefix, n)
	// On a machine that is so busy that a connection is renewed too late, the broker hangs up: that is no trouble with Kerberos.
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "WARN") && !strings.Contains(line, "the broker closed the connection") {
			t.Errorf("reading and writing were held up: %s", line)
		}
	}
}

// byToken gets a delegation token by a keytab, and reads and writes by that token alone, until it is ended.
func (r *realm) byToken(t *testing.T, keytab string) {
	options := func(o map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := o[name]; return v, ok }
	}
	login, err := client.FromOptions(options(r.by("sasl.kerberos.keytab", keytab)), []string{r.plain})
	if err != nil {
		t.Fatal(err)
	}
	token, life, err := client.CreateToken(t.Context(), login)
	if err != nil {
		t.Fatal(err)
	}
	if life.Owner != "etl" || !life.Until.After(time.Now()) || life.Max.Before(life.Until) {
		t.Errorf("the token's life is %+v", life)
	}
	// By another name of the brokers, so that nobody else here uses it.
	_, port, _ := strings.Cut(r.plain, ":")
	brokers := "127.0.0.1:" + port
	shown := token
	shown.Service = client.TokenService([]string{brokers})
	client.UseTokens([]client.Token{shown})
	without := r.by("sasl.kerberos.keytab", "/does/not/exist")
	r.run(t, "token", brokers, without, nil)

	if err := client.ExpireToken(t.Context(), login, token); err != nil {
		t.Error(err)
	}
	cfg, err := client.FromOptions(options(without), []string{brokers})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; {
		c, err := client.NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Greet(t.Context(), brokers)
		c.Close()
		if _, refused := errors.AsType[*client.TokenError](err); refused {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after its end the token is good for: %v", err)
		}
	}
}
