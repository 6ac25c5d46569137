package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Config says how to reach a cluster. It must not change after use.
type Config struct {
	Brokers  []string // host:port of some brokers; the others are found through them
	ClientID string   // "": heddle
	Rack     string   // where we are: partitions are read from replicas there if brokers know better than their leaders; "": from leaders
	TLS      TLS
	SASL     SASL

	DialTimeout    time.Duration // 0: 5 s
	RequestTimeout time.Duration // how long a broker may take to answer beyond what it was asked to wait; 0: 10 s
	// UnavailableTimeout is how long a partition may stay without an answering leader before reading fails. 0: 2 min
	UnavailableTimeout time.Duration

	FetchWait      time.Duration // how long a broker holds a fetch that has nothing yet; 0: 500 ms
	FetchMemory    int           // bytes of responses that one Puller may hold, at most 6 MiB a broker; 0: 32 MiB
	CommitInterval time.Duration // how often a source commits offsets that has a group; 0: never
	RateLimit      float64       // records a second that a source reads of each partition; 0: no bound
	PartitionBytes int           // asked of one partition in one fetch; 0: 1 MiB

	// Dial opens a connection without TLS. nil: by net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// TLS says how to encrypt connections. Files hold PEM, save stores, which may be PKCS12 or JKS as well.
type TLS struct {
	Enabled    bool
	CAFile     string // whom to trust; "": what the system trusts
	CertFile   string // the client's certificate, for mutual TLS
	KeyFile    string // its key
	ServerName string // expected in the broker's certificate; "": the host it is dialled by

	Truststore         string // in place of CAFile
	TruststorePassword Secret
	Keystore           string // in place of CertFile and KeyFile
	KeystorePassword   Secret
	KeyPassword        Secret // "": that of the store

	// What only a properties file of Kafka's can say.
	trustType, keyType string // of stores; "": as they look
	caPEM              string // in place of CAFile
	certPEM, keyPEM    string // in place of CertFile and KeyFile
	anyName            bool   // the broker's certificate may name any host
}

// SASL says how to authenticate.
type SASL struct {
	Mechanism string // "": none, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI
	User      string
	Password  Secret
	OAuth     OAuth    // of OAUTHBEARER
	Kerberos  Kerberos // of GSSAPI
}

// Secret is a value that no log, error or dump shows.
type Secret string

func (Secret) String() string   { return "(hidden)" }
func (Secret) GoString() string { return "(hidden)" }

// Names of the options that FromOptions reads.
const (
	OptBrokers            = "kafka.brokers"
	OptClientID           = "kafka.client-id"
	OptRack               = "kafka.rack"
	OptUnavailableTimeout = "kafka.unavailable-timeout"
	OptDiscoveryInterval  = "kafka.discovery-interval"
	OptFetchMemory        = "kafka.fetch-memory"
	OptCommitInterval     = "kafka.commit-interval"
	OptRateLimit          = "kafka.rate-limit"
	OptTLSEnabled         = "kafka.tls.enabled"
	OptTLSCA              = "kafka.tls.ca-file"
	OptTLSCert            = "kafka.tls.cert-file"
	OptTLSKey             = "kafka.tls.key-file"
	OptTLSServerName      = "kafka.tls.server-name"
	OptSASLMechanism      = "kafka.sasl.mechanism"
	OptSASLUser           = "kafka.sasl.user"
	OptSASLPassword       = "kafka.sasl.password"
	OptProperties         = "kafka.properties"

	OptTLSTruststore         = "kafka.tls.truststore"
	OptTLSTruststorePassword = "kafka.tls.truststore-password"
	OptTLSKeystore           = "kafka.tls.keystore"
	OptTLSKeystorePassword   = "kafka.tls.keystore-password"
	OptTLSKeyPassword        = "kafka.tls.key-password"
	OptOAuthTokenFile        = "kafka.sasl.oauth.token-file"
	OptOAuthURL              = "kafka.sasl.oauth.token-url"
	OptOAuthClientID         = "kafka.sasl.oauth.client-id"
	OptOAuthClientSecret     = "kafka.sasl.oauth.client-secret"
	OptOAuthScope            = "kafka.sasl.oauth.scope"
	OptOAuthCA               = "kafka.sasl.oauth.ca-file"
	OptKerberosService       = "kafka.sasl.kerberos.service"
	OptKerberosPrincipal     = "kafka.sasl.kerberos.principal"
	OptKerberosKeytab        = "kafka.sasl.kerberos.keytab"
	OptKerberosCache         = "kafka.sasl.kerberos.cache"
	OptKerberosConf          = "kafka.sasl.kerberos.conf"
	OptDelegationToken       = "kafka.delegation-token"
)

// FromOptions makes a Config of the kafka.* options. brokers, where given, stand for kafka.brokers.
func FromOptions(option func(name string) (string, bool), brokers []string) (Config, error) {
	option, err := withProperties(option)
	if err != nil {
		return Config{}, err
	}
	str := func(name string) string {
		if v, ok := option(name); ok {
			return strings.TrimSpace(v)
		}
		return ""
	}
	c := Config{
		Brokers:  brokers,
		ClientID: str(OptClientID),
		Rack:     str(OptRack),
		TLS: TLS{CAFile: str(OptTLSCA), CertFile: str(OptTLSCert), KeyFile: str(OptTLSKey), ServerName: str(OptTLSServerName),
			Truststore: str(OptTLSTruststore), Keystore: str(OptTLSKeystore), trustType: str(propTrustType), keyType: str(propKeyType),
			caPEM: str(propCertificates), certPEM: str(propChain), keyPEM: str(propKey)},
		SASL: SASL{Mechanism: strings.ToUpper(str(OptSASLMechanism)), User: str(OptSASLUser),
			OAuth:    OAuth{TokenFile: str(OptOAuthTokenFile), URL: str(OptOAuthURL), ClientID: str(OptOAuthClientID), Scope: str(OptOAuthScope), CAFile: str(OptOAuthCA)},
			Kerberos: Kerberos{Service: str(OptKerberosService), Principal: str(OptKerberosPrincipal), Keytab: str(OptKerberosKeytab), Cache: str(OptKerberosCache), Conf: str(OptKerberosConf)}},
	}
	if v, ok := option(propIdentification); ok {
		c.TLS.anyName = v == ""
	}
	if len(c.Brokers) == 0 {
		c.Brokers = SplitList(str(OptBrokers))
	}
	if v := str(OptTLSEnabled); v != "" {
		if c.TLS.Enabled, err = strconv.ParseBool(v); err != nil {
			return Config{}, fmt.Errorf("%s is %q: want true or false", OptTLSEnabled, v)
		}
	}
	if v := str(OptUnavailableTimeout); v != "" {
		if c.UnavailableTimeout, err = time.ParseDuration(v); err != nil || c.UnavailableTimeout <= 0 {
			return Config{}, fmt.Errorf("%s is %q: want a duration above 0, such as 2m", OptUnavailableTimeout, v)
		}
	}
	if v := str(OptFetchMemory); v != "" {
		if c.FetchMemory, err = parseBytes(v); err != nil {
			return Config{}, fmt.Errorf("%s is %q: want a number of bytes above 1 MiB, such as 32MiB", OptFetchMemory, v)
		}
	}
	c.CommitInterval = defaultCommitInterval
	if v := str(OptCommitInterval); v != "" {
		if c.CommitInterval, err = time.ParseDuration(v); err != nil || c.CommitInterval < 0 {
			return Config{}, fmt.Errorf("%s is %q: want a duration such as 5s, or 0 for never", OptCommitInterval, v)
		}
	}
	if v := str(OptRateLimit); v != "" {
		if c.RateLimit, err = strconv.ParseFloat(v, 64); err != nil || !(c.RateLimit >= 0) || math.IsInf(c.RateLimit, 0) {
			return Config{}, fmt.Errorf("%s is %q: want a number of records a second, or 0 for no bound", OptRateLimit, v)
		}
	}
	for _, secret := range []struct {
		to   *Secret
		name string
	}{{&c.SASL.Password, OptSASLPassword}, {&c.SASL.OAuth.ClientSecret, OptOAuthClientSecret}, {&c.TLS.TruststorePassword, OptTLSTruststorePassword},
		{&c.TLS.KeystorePassword, OptTLSKeystorePassword}, {&c.TLS.KeyPassword, OptTLSKeyPassword}} {
		if *secret.to, err = secretOf(option, secret.name); err != nil {
			return Config{}, err
		}
	}
	if err := c.validate(); err != nil {
		return Config{}, err
	}
	return c.withDefaults(), nil
}

const defaultCommitInterval = 5 * time.Second

// defaults are options whose value may be a default: then a properties file goes before it.
var defaults = map[string]string{OptClientID: "heddle", OptTLSEnabled: "false", OptKerberosService: "kafka"}

// withProperties adds what the file kafka.properties says, where no option says it.
func withProperties(option func(string) (string, bool)) (func(string) (string, bool), error) {
	file, ok := option(OptProperties)
	if file = strings.TrimSpace(file); !ok || file == "" {
		return option, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", OptProperties, err)
	}
	props, err := parseProperties(string(b))
	var more map[string]string
	if err == nil {
		more, err = fromProperties(props)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use %s %s: %w", OptProperties, file, err)
	}
	return func(name string) (string, bool) {
		v, ok := option(name)
		if p, has := more[name]; has && (!ok || v == "" || v == defaults[name]) {
			return p, true
		}
		return v, ok
	}, nil
}

// secretOf returns a secret by its option, or by the file that the option -file names.
func secretOf(option func(string) (string, bool), name string) (Secret, error) {
	if v, ok := option(name); ok && v != "" {
		return Secret(v), nil
	}
	file, ok := option(name + "-file")
	if file = strings.TrimSpace(file); !ok || file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read %s-file: %w", name, err)
	}
	return Secret(strings.TrimRight(string(b), "\r\n")), nil
}

// SplitList splits a list at commas and drops blanks.
func SplitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func (c *Config) validate() error {
	if len(c.Brokers) == 0 {
		return errors.New("no Kafka brokers given: set kafka.brokers to host:port, or several separated by commas")
	}
	for _, b := range c.Brokers {
		if _, port, err := net.SplitHostPort(b); err != nil || port == "" {
			return fmt.Errorf("kafka.brokers names %q: want host:port, such as %s:9092", b, b)
		}
	}
	t := c.TLS
	if !t.Enabled && (t.CAFile != "" || t.CertFile != "" || t.KeyFile != "" || t.ServerName != "" || t.Truststore != "" || t.Keystore != "") {
		return errors.New("kafka.tls.* options are set but TLS is off: set kafka.tls.enabled to true")
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return fmt.Errorf("of %s and %s only one is set: a client certificate needs both", OptTLSCert, OptTLSKey)
	}
	if t.CAFile != "" && t.Truststore != "" {
		return fmt.Errorf("both %s and %s are set: want one of them", OptTLSCA, OptTLSTruststore)
	}
	if t.CertFile != "" && t.Keystore != "" {
		return fmt.Errorf("both %s and %s are set: want one of them", OptTLSCert, OptTLSKeystore)
	}
	return c.SASL.validate()
}

func (s *SASL) validate() error {
	switch s.Mechanism {
	case "":
		if s.User != "" {
			return fmt.Errorf("%s is set but no mechanism: set %s to %s", OptSASLUser, OptSASLMechanism, mechanisms)
		}
		return nil
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
	case "OAUTHBEARER":
		return s.OAuth.validate()
	case "GSSAPI":
		return s.Kerberos.validate()
	default:
		return fmt.Errorf("%s is %q: want %s", OptSASLMechanism, s.Mechanism, mechanisms)
	}
	if s.User == "" || s.Password == "" {
		return fmt.Errorf("%s is %s but user or password is missing: set %s, and %s or %s-file", OptSASLMechanism, s.Mechanism, OptSASLUser, OptSASLPassword, OptSASLPassword)
	}
	return nil
}

const mechanisms = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI"

func (c Config) withDefaults() Config {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&c.DialTimeout, 5*time.Second)
	or(&c.RequestTimeout, 10*time.Second)
	or(&c.UnavailableTimeout, 2*time.Minute)
	or(&c.FetchWait, 500*time.Millisecond)
	if c.FetchMemory <= 0 {
		c.FetchMemory = 32 << 20
	}
	if c.PartitionBytes <= 0 {
		c.PartitionBytes = 1 << 20
	}
	if c.ClientID == "" {
		c.ClientID = "heddle"
	}
	return c
}

// parseBytes reads an amount of memory of at least 1 MiB, with a binary unit or none.
func parseBytes(s string) (int, error) {
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if t, ok := strings.CutSuffix(s, unit); ok {
			s, shift = t, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err == nil && (n<<shift < 1<<20 || n<<shift > 1<<40) {
		err = strconv.ErrRange
	}
	return int(n << shift), err
}
