package kafka

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseProperties(t *testing.T) {
	got, err := parseProperties("# comment\n! too\n\n a = b \nc:d\r\ne f\ng\nlong=one,\\\n   two\nuni=\\u00e9\\t\\=\nk\\ ey=v\nwin=C:\\\\x\nlast=\\")
	want := map[string]string{"a": "b ", "c": "d", "e": "f", "g": "", "long": "one,two", "uni": "é\t=", "k ey": "v", "win": `C:\x`, "last": `\`}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := parseProperties("a=\\u12"); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a cut escape: %v", err)
	}
}

func FuzzParseProperties(f *testing.F) {
	f.Add("a=b\nc:\\u0041\\\n d")
	f.Add(`org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password='b;"';`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parseProperties(text)
		_ = fromJAAS(text, map[string]string{})
	})
}

// fromFile makes a Config of a properties file and options.
func fromFile(t *testing.T, text string, options map[string]string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "client.properties")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return FromOptions(func(name string) (string, bool) {
		if name == OptProperties {
			return file, true
		}
		if v, ok := options[name]; ok {
			return v, true
		}
		v, ok := defaults[name] // as the registry of options gives them
		return v, ok
	}, nil)
}

func TestProperties(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		options map[string]string
		check   func(c Config) bool
	}{
		"plain over TLS": {`bootstrap.servers=a:1, b:2
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  username="us\\"er" \
  password="pa;ss w'ord";
ssl.truststore.location=testdata/trust.jks
ssl.truststore.password=changeit
client.id=me
client.rack=r1
group.id=not-ours
ssl.endpoint.identification.algorithm=
`, nil, func(c Config) bool {
			return len(c.Brokers) == 2 && c.TLS.Enabled && c.TLS.Truststore == "testdata/trust.jks" && c.TLS.TruststorePassword == "changeit" && c.TLS.anyName &&
				c.SASL.Mechanism == "PLAIN" && c.SASL.User == `us"er` && c.SASL.Password == "pa;ss w'ord" && c.ClientID == "me" && c.Rack == "r1"
		}},
		"options go before": {"bootstrap.servers=a:1\nclient.id=me\nsecurity.protocol=PLAINTEXT", map[string]string{OptBrokers: "z:9", OptClientID: "you"}, func(c Config) bool {
			return c.Brokers[0] == "z:9" && c.ClientID == "you" && !c.TLS.Enabled
		}},
		"scram": {"bootstrap.servers=a:1\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=u password=p;", nil, func(c Config) bool {
			return c.SASL.Mechanism == "SCRAM-SHA-512" && c.SASL.User == "u" && c.SASL.Password == "p" && !c.TLS.Enabled
		}},
		"kerberos by default": {"bootstrap.servers=a:1\nsecurity.protocol=SASL_PLAINTEXT\nsasl.kerberos.service.name=k\nsasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab=\"/k\" principal=\"a@B\";", nil, func(c Config) bool {
			return c.SASL.Mechanism == "GSSAPI" && c.SASL.Kerberos == Kerberos{Service: "k", Principal: "a@B", Keytab: "/k"}
		}},
		"oauth": {"bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=https://id/t\nsasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler\nsasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId=c clientSecret=s scope=x;", nil, func(c Config) bool {
			return c.SASL.OAuth == OAuth{URL: "https://id/t", ClientID: "c", ClientSecret: "s", Scope: "x"}
		}},
		"what the protocol makes void": {"bootstrap.servers=a:1\nsecurity.protocol=PLAINTEXT\nsasl.mechanism=PLAIN\nssl.truststore.location=/none", nil, func(c Config) bool {
			return c.SASL.Mechanism == "" && c.TLS.Truststore == ""
		}},
		"inline PEM": {"bootstrap.servers=a:1\nsecurity.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates=-----BEGIN CERTIFICATE----- x", nil, func(c Config) bool {
			return strings.HasPrefix(c.TLS.caPEM, "-----BEGIN")
		}},
	} {
		c, err := fromFile(t, test.text, test.options)
		if err != nil || !test.check(c) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestPropertiesErrors(t *testing.T) {
	const sasl = "bootstrap.servers=a:1\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
	for text, want := range map[string]string{
		"ssl.cipher.suites=X":                                         "the property ssl.cipher.suites can't be honoured",
		"sasl.client.callback.handler.class=com.X":                    "the property sasl.client.callback.handler.class can't",
		"security.providers=X":                                        "the property security.providers can't",
		"ssl.enabled.protocols=TLSv1":                                 "the property ssl.enabled.protocols can't",
		"security.protocol=TLS":                                       "want PLAINTEXT, SSL",
		sasl + "com.X required a=hush;":                               "login module com.X is not known",
		sasl + "a.PlainLoginModule required x=hush;":                  "the option x of PlainLoginModule can't",
		sasl + "a.PlainLoginModule required username=u password=hush": "does not end in a semicolon",
		sasl + "a.PlainLoginModule required username=hush; more":      "only one login module",
		sasl + "a.PlainLoginModule required password=hush;":           "user or password is missing",
	} {
		_, err := fromFile(t, text, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want %q and no secret", text, err, want)
		}
	}
	if _, err := FromOptions(func(name string) (string, bool) { return "/does/not/exist", name == OptProperties }, nil); err == nil {
		t.Error("a file that is not there is no error")
	}
}
