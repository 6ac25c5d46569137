package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/creds"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// kafkaTokenLimit is how long it may take to get or end a delegation token of Kafka's.
const kafkaTokenLimit = 30 * time.Second

// kafkaToken is a delegation token of Kafka's that this process got.
type kafkaToken struct {
	cfg   kafka.Config // by which
	token kafka.Token
	life  kafka.TokenLife
}

// getKafkaToken gets one by the login of cfg.
func getKafkaToken(ctx context.Context, cfg kafka.Config) (kafkaToken, error) {
	ctx, cancel := context.WithTimeout(ctx, kafkaTokenLimit)
	defer cancel()
	t, life, err := kafka.CreateToken(ctx, cfg)
	return kafkaToken{cfg, t, life}, err
}

// named is the token as credentials carry it, in the manner of Spark and Flink.
func (t kafkaToken) named() token.Named {
	return token.Named{Alias: "kafka:" + t.token.Service,
		Token: token.Token{Kind: token.KindKafka, Service: t.token.Service, Identifier: []byte(t.token.ID), Password: []byte(t.token.HMAC)}}
}

// note is what its broker said of it.
func (t kafkaToken) note(source string) creds.Note {
	return creds.Note{Alias: t.named().Alias, Source: source, Owner: t.life.Owner, Issued: t.life.Issued, Max: t.life.Max, Until: t.life.Until}
}

// useKafkaTokens has this process show brokers the tokens of theirs that are among credentials.
func useKafkaTokens(c token.Credentials) {
	var ts []kafka.Token
	for _, t := range c.Of(token.KindKafka) {
		ts = append(ts, kafka.Token{Service: t.Service, ID: string(t.Identifier), HMAC: kafka.Secret(t.Password)})
	}
	kafka.UseTokens(ts)
}

// kafkaLogin is how to log in to a cluster by Kerberos to get tokens: as configured for Kafka, or by the keytab for Hadoop where nothing is.
func kafkaLogin(c *conf.Config, brokers string, id *identity.Identity) (kafka.Config, error) {
	cfg, err := kafka.FromOptions(c.Option, kafka.SplitList(brokers))
	if err != nil {
		return cfg, err
	}
	if err := wantsGSSAPI(cfg); err != nil {
		return cfg, err
	}
	k := &cfg.SASL.Kerberos
	if l := id.Login(); k.Keytab == "" && k.Cache == "" && k.Principal == "" && l != nil && l.CanRelogin() {
		k.Login = l
	}
	return cfg, nil
}

// wantsGSSAPI refuses to get a token by another login.
func wantsGSSAPI(cfg kafka.Config) error {
	if cfg.SASL.Mechanism == "GSSAPI" {
		return nil
	}
	return fmt.Errorf("cannot get a delegation token of the Kafka brokers %s: that takes GSSAPI (%s)", kafka.TokenService(cfg.Brokers), kafka.OptSASLMechanism)
}

// fetchKafka adds fresh tokens of the Kafka clusters that the application has tokens of.
func (p *tokenPush) fetchKafka(ctx context.Context, c *conf.Config, snap *appmaster.Snapshot, to *token.Credentials) error {
	for _, t := range snap.Tokens.Held {
		if t.Kind != token.KindKafka {
			continue
		}
		cfg, err := kafkaLogin(c, t.Service, p.h.id)
		if err != nil {
			return precondition(err, "give the options for Kafka that the application was submitted with")
		}
		got, err := getKafkaToken(ctx, cfg)
		if err != nil {
			return precondition(err)
		}
		to.Tokens, p.letter.Notes = append(to.Tokens, got.named()), append(p.letter.Notes, got.note(creds.Pushed))
	}
	return nil
}

// addKafkaTokens adds to an application's credentials delegation tokens of the Kafka clusters that it uses, where that is wanted.
func (sub *submission) addKafkaTokens(ctx context.Context, to *token.Credentials) error {
	mode := sub.conf.Text(kafka.OptDelegationToken)
	if mode == "off" {
		return nil
	}
	var notes []creds.Note
	for _, brokers := range kafkaBrokers(sub.needs) {
		cfg, err := kafkaLogin(sub.conf, brokers, sub.h.id)
		if mode == "auto" && (err != nil || cfg.SASL.Kerberos.Keytab != "" || sub.h.id.Real() != "") {
			continue
		}
		var t kafkaToken
		if err == nil {
			err = mayDelegate(sub.conf, cfg, sub.h.id.Real(), sub.h.user)
		}
		if err == nil {
			t, err = getKafkaToken(ctx, cfg)
		}
		if err != nil && mode == "auto" && ctx.Err() == nil {
			fmt.Fprintf(sub.s.env.Stderr, "heddle: warning: %v: agents need a ticket cache of their own for Kafka (%s=off leaves it at that)\n", err, kafka.OptDelegationToken)
			continue
		}
		if err != nil {
			return precondition(err)
		}
		sub.kafka = append(sub.kafka, t)
		if alias := t.named().Alias; slices.ContainsFunc(notes, func(n creds.Note) bool { return n.Alias == alias }) {
			continue
		}
		to.Tokens, notes = append(to.Tokens, t.named()), append(notes, t.note(creds.Submitted))
	}
	if len(notes) == 0 {
		return nil
	}
	var err error
	*to, err = creds.WithNotes(*to, notes)
	return err
}

// kafkaBrokers are the clusters of topics and groups among needs, by their brokers; "": those that are configured.
func kafkaBrokers(needs []flow.Need) (out []string) {
	for _, n := range needs {
		if (n.Kind == flow.NeedTopic || n.Kind == flow.NeedGroup) && !slices.Contains(out, n.At) {
			out = append(out, n.At)
		}
	}
	return out
}

// mayDelegate refuses what a token that is demanded would give away, or not spare. real is who acts for user; "": nobody.
func mayDelegate(c *conf.Config, cfg kafka.Config, real, user string) error {
	switch {
	case real != "":
		return fmt.Errorf("%s is on, and %s acts for %s, in whose containers the token would let everybody act as %s: set it to off", kafka.OptDelegationToken, real, user, real)
	case cfg.SASL.Kerberos.Keytab != "" && c.Text(kafka.OptKerberosKeytab) == "":
		return fmt.Errorf("%s is on, and the keytab that %s names would go to agents all the same: name it by %s", kafka.OptDelegationToken, kafka.OptProperties, kafka.OptKerberosKeytab)
	}
	return nil
}

// endKafkaTokens ends the tokens that were got for the application, when it is over or did not begin. Those that can't be ended do so by themselves.
func (sub *submission) endKafkaTokens() {
	ctx, cancel := context.WithTimeout(context.Background(), cancelLimit)
	defer cancel()
	for _, t := range sub.kafka {
		if err := kafka.ExpireToken(ctx, t.cfg, t.token); err != nil {
			fmt.Fprintf(sub.s.env.Stderr, "heddle: the application's delegation token of the Kafka brokers %s is good until %s: %v\n", printable(t.token.Service), moment(t.life.Until), err)
		}
	}
	sub.kafka = nil
}

// keepsKafkaKeytab reports whether agents log in to Kafka by tokens alone, and need its keytab for nothing else.
func keepsKafkaKeytab(c *conf.Config) bool {
	byRegistry := c.Bool("schema-registry.kerberos.enabled") && c.Text("schema-registry.kerberos.keytab") == ""
	return c.Text("target") == "yarn" && c.Text(kafka.OptDelegationToken) == "on" && !byRegistry
}

// kafkaSource is a tokenSource of Kafka's tokens, in an ApplicationMaster that can log in to Kerberos.
type kafkaSource struct {
	clusters map[string]kafka.Config // by the service of their tokens
}

// kafkaSource returns nil where no tokens of Kafka's came along, or there is no keytab.
func (m *yarnMaster) kafkaSource() (tokenSource, error) {
	s := kafkaSource{map[string]kafka.Config{}}
	for _, t := range m.k.creds.Of(token.KindKafka) {
		cfg, err := kafkaLogin(m.app.conf, t.Service, m.h.id)
		if err != nil {
			return nil, err
		}
		if cfg.SASL.Kerberos.Keytab != "" || cfg.SASL.Kerberos.Login != nil {
			s.clusters[t.Service] = cfg
		}
	}
	if len(s.clusters) == 0 {
		return nil, nil
	}
	return s, nil
}

// fetch implements tokenSource. What one cluster does not give is no loss to the others.
func (s kafkaSource) fetch(ctx context.Context) (out token.Credentials, notes []creds.Note, err error) {
	for _, cfg := range s.clusters {
		t, failure := getKafkaToken(ctx, cfg)
		if failure != nil {
			err = errors.Join(err, failure)
			continue
		}
		out.Tokens, notes = append(out.Tokens, t.named()), append(notes, t.note(creds.Fetched))
	}
	return out, notes, err
}

// cancel implements tokenSource.
func (s kafkaSource) cancel(ctx context.Context, t token.Token) error {
	cfg, ok := s.clusters[t.Service]
	if !ok {
		return fmt.Errorf("cannot end the delegation token for %s: it is no Kafka cluster of this application", t.Service)
	}
	return kafka.ExpireToken(ctx, cfg, kafka.Token{Service: t.Service, ID: string(t.Identifier), HMAC: kafka.Secret(t.Password)})
}

func (s kafkaSource) kind() string { return token.KindKafka }
