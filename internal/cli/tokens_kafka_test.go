package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/doctor"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/creds"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// mint is a tokenSource that makes a token each time.
type mint struct {
	made      int
	err       error
	cancelled []string
}

// minted is the nth token of a mint.
func minted(n int) kafkaToken {
	return kafkaToken{token: kafka.Token{Service: "kafka-test:9092", ID: string(rune('a' + n)), HMAC: "c2VjcmV0"},
		life: kafka.TokenLife{Owner: "etl", Issued: time.Now(), Until: time.Now().Add(time.Hour), Max: time.Now().Add(7 * time.Hour)}}
}

func (m *mint) fetch(context.Context) (out token.Credentials, notes []creds.Note, err error) {
	if m.err != nil {
		return out, nil, m.err
	}
	t := minted(m.made)
	m.made++
	return token.Credentials{Tokens: []token.Named{t.named()}}, []creds.Note{t.note(creds.Fetched)}, nil
}

func (m *mint) cancel(_ context.Context, t token.Token) error {
	m.cancelled = append(m.cancelled, string(t.Identifier))
	return nil
}

func (m *mint) kind() string { return token.KindKafka }

// TestKafkaTokensKept: fresh tokens are handed on in the place of the old, those before the last two are ended while the job runs, and all of them at its end, with that
// of the submission if no other attempt needs it. A failure changes nothing.
func TestKafkaTokensKept(t *testing.T) {
	for _, last := range []bool{false, true} {
		m := &mint{}
		k := newKeeper(t, &slot{})
		came := minted(25)
		k.more, k.came = m, []token.Named{came.named()}
		for n := range 4 {
			wait := k.refreshMore(t.Context())
			if wait < 40*time.Minute || wait > 50*time.Minute {
				t.Errorf("the next ones are got in %v", wait)
			}
			news := <-k.out
			i := slices.IndexFunc(news.Held, func(h appmaster.Token) bool { return h.Kind == token.KindKafka })
			if i < 0 || news.Held[i].Owner != "etl" || news.Held[i].Source != creds.Fetched || news.Held[i].Until.IsZero() || news.Credentials == nil {
				t.Fatalf("what is told of it: %+v", news.Held)
			}
			if got := k.present().Of(token.KindKafka); len(got) != 1 || got[0].Identifier[0] != byte('a'+n) {
				t.Errorf("it has %v", got)
			}
		}
		if !slices.Equal(m.cancelled, []string{"a", "b"}) {
			t.Errorf("while it runs, %q are ended", m.cancelled)
		}
		m.err = errors.New("no broker")
		if wait := k.refreshMore(t.Context()); wait > refreshRetry || len(k.out) != 0 || len(k.present().Of(token.KindKafka)) != 1 {
			t.Errorf("after a failure it goes on in %v", wait)
		}
		want := []string{"a", "b", "c", "d"}
		if last {
			want = append(want, "z")
		}
		if k.end(t.Context(), last); !slices.Equal(m.cancelled, want) {
			t.Errorf("at the end, %q are ended, want %q", m.cancelled, want)
		}
	}
}

// TestKafkaBrokers: tokens are got for each cluster whose topics or groups the job uses, once.
func TestKafkaBrokers(t *testing.T) {
	got := kafkaBrokers([]flow.Need{{Kind: flow.NeedPath, Name: "hdfs://x/y"}, {Kind: flow.NeedTopic, Name: "a"}, {Kind: flow.NeedGroup, Name: "g"}, {Kind: flow.NeedTopic, Name: "b", At: "other:9092"}})
	if !slices.Equal(got, []string{"", "other:9092"}) {
		t.Errorf("they are %q", got)
	}
}

// TestKafkaKeytabKept: with kafka.delegation-token on, agents on YARN get no keytab, unless they need it for the schema registry.
func TestKafkaKeytabKept(t *testing.T) {
	for _, x := range []struct {
		flags []string
		kept  bool
	}{
		{[]string{"target=yarn", "kafka.delegation-token=on"}, true},
		{[]string{"target=yarn"}, false},
		{[]string{"target=local", "kafka.delegation-token=on"}, false},
		{[]string{"target=yarn", "kafka.delegation-token=on", "schema-registry.kerberos.enabled=true"}, false},
	} {
		r, err := registry()
		if err != nil {
			t.Fatal(err)
		}
		c := conf.New(r)
		for _, flag := range x.flags {
			name, text, _ := strings.Cut(flag, "=")
			if err := c.Set(name, text, conf.FromFlag, "--"+name); err != nil {
				t.Fatal(err)
			}
		}
		sec := agentSecrets(c, secrets{Options: map[string]string{fileSecret + kafka.OptKerberosKeytab: "{}"}})
		if _, there := sec[fileSecret+kafka.OptKerberosKeytab]; there == x.kept {
			t.Errorf("with %v the keytab goes to agents: %v", x.flags, there)
		}
	}
}

// TestKafkaTokensCaughtUp: a second attempt, which begins with the tokens of the submission, replaces those that have ended before it uses them.
func TestKafkaTokensCaughtUp(t *testing.T) {
	now := time.Now()
	for name, x := range map[string]struct {
		until time.Time
		err   error
		made  int
		held  byte
	}{
		"good":       {now.Add(time.Hour), nil, 0, 'z'},
		"ends soon":  {now.Add(time.Minute), nil, 1, 'a'},
		"over":       {now.Add(-time.Hour), nil, 1, 'a'},
		"not to get": {now.Add(-time.Hour), errors.New("no broker"), 0, 'z'},
	} {
		m, came := &mint{err: x.err}, minted(25)
		came.life.Issued, came.life.Until = now.Add(-2*time.Hour), x.until
		k := newKeeper(t, &slot{})
		k.more, k.came, k.have.Tokens, k.notes = m, []token.Named{came.named()}, append(k.have.Tokens, came.named()), []creds.Note{came.note(creds.Submitted)}
		k.catchUp(t.Context(), now)
		if got := k.present().Of(token.KindKafka); m.made != x.made || len(got) != 1 || got[0].Identifier[0] != x.held || len(k.out) != 0 {
			t.Errorf("%s: %d are got, it has %v", name, m.made, got)
		}
	}
	(*tokenKeeper)(nil).catchUp(t.Context(), now)
	newKeeper(t, &slot{}).catchUp(t.Context(), now)
}

// TestKafkaTokensLooked: what doctor and plan --grants look at is what a submission would do.
func TestKafkaTokensLooked(t *testing.T) {
	gssapi := []string{"target=yarn", "kafka.brokers=b:1", "kafka.sasl.mechanism=GSSAPI", "kafka.sasl.kerberos.conf=/nowhere"}
	for name, x := range map[string]struct {
		options []string
		proxy   string
		use     doctor.TokenUse
		barred  string
		keytab  string
	}{
		"a ticket cache":       {options: gssapi, use: doctor.IfThere},
		"Hadoop's keytab":      {options: append(gssapi, "kerberos.keytab=FILE:/k", "kerberos.principal=etl@R"), use: doctor.IfThere, keytab: "/k"},
		"a keytab for Kafka":   {options: append(gssapi, "kafka.sasl.kerberos.keytab=/k"), keytab: "/k"},
		"both, and demanded":   {options: append(gssapi, "kafka.sasl.kerberos.keytab=/k", "kafka.delegation-token=on"), use: doctor.Demanded, keytab: "/k"},
		"off":                  {options: append(gssapi, "kafka.delegation-token=off")},
		"local":                {options: append(gssapi, "target=local")},
		"another mechanism":    {options: []string{"target=yarn", "kafka.brokers=b:1"}},
		"demanded without":     {options: []string{"target=yarn", "kafka.brokers=b:1", "kafka.delegation-token=on"}, use: doctor.Demanded, barred: "GSSAPI"},
		"for another":          {options: gssapi, proxy: "alice"},
		"demanded for another": {options: append(gssapi, "kafka.delegation-token=on"), proxy: "alice", use: doctor.Demanded, barred: "acts for alice"},
	} {
		t.Run(name, func(t *testing.T) {
			var flags []conf.Flag
			for _, o := range x.options {
				name, text, _ := strings.Cut(o, "=")
				flags = append(flags, conf.Flag{Name: name, Text: text, Where: "the test"})
			}
			s := &session{env: Env{Environ: []string{"HADOOP_PROXY_USER=" + x.proxy}}, flags: flags}
			c, err := s.load()
			if err != nil {
				t.Fatal(err)
			}
			ks := s.withTokens(kafkaClusters(c, nil), c)
			if len(ks) != 1 || ks[0].Err != nil {
				t.Fatalf("%+v", ks)
			}
			k := ks[0]
			if k.Tokens != x.use || k.Config.SASL.Kerberos.Keytab != x.keytab || (k.Barred == nil) != (x.barred == "") || k.Barred != nil && !strings.Contains(k.Barred.Error(), x.barred) {
				t.Errorf("%d, %q, %v", k.Tokens, k.Config.SASL.Kerberos.Keytab, k.Barred)
			}
		})
	}
}
