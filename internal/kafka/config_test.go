package kafka

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// sarama opens a circuit breaker after failures, whose goroutine sleeps 10 s and ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"),
		// The fake broker's, which ends with the connection, but may take its time on a busy machine.
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read.func1"))
}

func options(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func TestFromOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := FromOptions(options(OptBrokers, " a:1, b:2 ,", OptClientID, "me", OptUnavailableTimeout, "5s", OptTLSEnabled, "true", OptTLSServerName, "kafka",
		OptSASLMechanism, "scram-sha-512", OptSASLUser, "u", OptSASLPassword+"-file", file), nil)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(c.Brokers) != "[a:1 b:2]" || c.ClientID != "me" || c.UnavailableTimeout != 5*time.Second || !c.TLS.Enabled || c.TLS.ServerName != "kafka" ||
		c.SASL.Mechanism != "SCRAM-SHA-512" || c.SASL.User != "u" || c.SASL.Password != "hunter2" || c.RequestTimeout != 10*time.Second {
		t.Errorf("options are read as %+v", c)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb, c); strings.Contains(s, "hunter2") {
			t.Errorf("%s shows the password: %s", verb, s)
		}
	}
	if c, err = FromOptions(options(OptBrokers, "a:1"), []string{"own:9"}); err != nil || fmt.Sprint(c.Brokers) != "[own:9]" {
		t.Errorf("brokers of the source's own: %v, %v", c.Brokers, err)
	}
}

func TestFromOptionsErrors(t *testing.T) {
	for want, opts := range map[string][]string{
		"set kafka.brokers to host:port":       {},
		"want host:port, such as b:9092":       {OptBrokers, "a:1,b"},
		"kafka.tls.enabled is \"maybe\"":       {OptBrokers, "a:1", OptTLSEnabled, "maybe"},
		"set kafka.tls.enabled to true":        {OptBrokers, "a:1", OptTLSCA, "ca.pem"},
		"a client certificate needs both":      {OptBrokers, "a:1", OptTLSEnabled, "true", OptTLSCert, "c.pem"},
		"such as 2m":                           {OptBrokers, "a:1", OptUnavailableTimeout, "0"},
		"want PLAIN, SCRAM-SHA-256":            {OptBrokers, "a:1", OptSASLMechanism, "KERBEROS"},
		"user or password is missing":          {OptBrokers, "a:1", OptSASLMechanism, "PLAIN", OptSASLUser, "u"},
		"is set but no mechanism":              {OptBrokers, "a:1", OptSASLUser, "u"},
		"cannot read kafka.sasl.password-file": {OptBrokers, "a:1", OptSASLMechanism, "PLAIN", OptSASLUser, "u", OptSASLPassword + "-file", "/does/not/exist"},
	} {
		if _, err := FromOptions(options(opts...), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
	for want, c := range map[string]Config{
		"cannot read kafka.tls.ca-file":  {Brokers: []string{"a:1"}, TLS: TLS{Enabled: true, CAFile: "/does/not/exist"}},
		"it holds no PEM certificate":    {Brokers: []string{"a:1"}, TLS: TLS{Enabled: true, CAFile: "config_test.go"}},
		"cannot use kafka.tls.cert-file": {Brokers: []string{"a:1"}, TLS: TLS{Enabled: true, CertFile: "config_test.go", KeyFile: "config_test.go"}},
	} {
		if _, err := NewClient(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
}

// What Kafka's own tests say of its hash (UtilsTest.testMurmur2).
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2 of %q is %d, Java says %d", key, got, want)
		}
	}
}
