package verdict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/yarnclient/report"
)

// TestJudgements judges what fakes can't be made to do.
func TestJudgements(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	unknown := fmt.Errorf("cannot get a Kerberos ticket for nn/a@R: %w", &krb.KDCError{From: "the KDC", Code: errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN})
	queue := QueueFacts{Name: "root.q", User: "alice", Scheduler: report.Scheduler{Queues: []report.Queue{{Path: "root"}, {Path: "root.q", Leaf: true, State: "RUNNING"}}}}
	queue.AccessErr = errors.New("RPC is closed")
	for name, x := range map[string]struct {
		v         Verdict
		status    Status
		diagnosis string
		says      string
	}{
		"no such service":      {NameNodes("hdfs://n", []Server{{Addr: "a:1", Err: unknown}}, nil, true), Fail, "service-unknown", "nn/a@R"},
		"one NameNode is dead": {NameNodes("hdfs://n", []Server{{Addr: "a:1", Err: errors.New("connection refused")}, {Addr: "b:1", Active: true}}, nil, false), Warn, "nn-unreachable", "b:1 is active"},
		"one on standby":       {NameNodes("hdfs://n", []Server{{Addr: "a:1", Standby: true}, {Addr: "b:1", Active: true}}, []string{"auth"}, true), Pass, "", "1 on standby"},
		"none active":          {Web([]Server{{Addr: "a", Err: errors.New("connection refused")}, {Addr: "b", Standby: true}}, true), Fail, "rm-standby", "b on standby"},
		"old token":            {NameNodes("hdfs://n", []Server{{Addr: "a:1", Err: &hrpc.RemoteError{Class: hrpc.ClassInvalidToken, Message: "token is expired"}}}, nil, true), Fail, "token-refused", "expired"},
		"access not known":     {Queue(queue), Warn, "queue-access-unknown", "RPC is closed"},
		"nothing open":         {Queue(QueueFacts{User: "alice"}), Pass, "", "none that is known"},
		"quota nearly used":    {Staging("/s", "alice", "", nil, hdfs.QuotaUsage{Space: 95 << 20, SpaceQuota: 100 << 20}), Warn, "quota-short", "95 of 100 MB"},
		"data not protected":   {Staging("/s", "alice", StepWrite, errors.New("no common protection with the DataNode"), hdfs.QuotaUsage{}), Fail, "data-protection", "cannot write in /s"},
		"tokens":               {Tokens{Fetched: 2, Until: now.Add(24 * time.Hour), Keytab: true}.Judge(now), Pass, "", "2 tokens fetched, renewed for 24h0m0s"},
		"no tokens":            {Tokens{FetchErr: errors.New("cannot get a delegation token")}.Judge(now), Fail, "token-fetch", "cannot get"},
		"no renewer":           {Tokens{FetchErr: errors.New("cannot fetch delegation tokens: yarn.resourcemanager.principal, who is to renew them, is not set")}.Judge(now), Fail, "token-renewer", "not set"},
		"no renewal":           {Tokens{Fetched: 2, RenewErr: &hrpc.RemoteError{Class: hrpc.ClassAccessControl, Message: "alice tries to renew a token with renewer rm"}}.Judge(now), Fail, "token-renew", "tries to renew"},
		"tokens alone":         {Tokens{ByTokens: true}.Judge(now), Warn, "token-only", "alone"},
		"ticket ends soon":     {Login(Credentials{Cache: "/c", HasTicket: true, End: now.Add(5 * time.Minute), Principal: "a@R"}, now), Warn, "ticket-short", "5m0s"},
		"cache can be read":    {Login(Credentials{Cache: "/c", HasTicket: true, End: now.Add(5 * time.Hour), Principal: "a@R", Mode: 0o640}, now), Warn, "cache-readable", "0640"},
		"cache without ticket": {Login(Credentials{Cache: "/c", Principal: "a@R"}, now), Fail, "ticket-missing", "no ticket-granting"},
		"KDC without TCP":      {KDCs("R", []KDC{{Addr: "a:88", TriedTCP: true, TriedUDP: true, TCP: errors.New("refused")}}, true), Warn, "kdc-tcp-closed", "not by TCP"},
		"no time":              {Clock([]KDC{{Addr: "a"}}, time.Minute), Skipped, "", "no KDC told"},
		"wrong password":       {Brokers([]string{"b:1"}, 0, "PLAIN", fmt.Errorf("no Kafka broker answers: %s", sarama.ErrSASLAuthenticationFailed)), Fail, "kafka-login", "SASL"},
		"no ticket for Kafka":  {Brokers([]string{"b:1"}, 0, "GSSAPI", &kafka.KerberosError{Err: unknown}), Fail, "service-unknown", "nn/a@R"},
		"listener not in DNS":  {Listeners([]Listener{{ID: 3, Addr: "inside:9092", DNS: errors.New("no such host")}, {ID: 4, Addr: "b:1"}}), Fail, "kafka-advertised", "broker 3 advertises inside:9092"},
		"listener closed":      {Listeners([]Listener{{ID: 3, Addr: "b:1", Err: errors.New("refused")}}), Fail, "kafka-advertised", "refused"},
		"Kafka's tokens":       {KafkaTokens([]TokenBroker{{Addr: "b:1"}, {Addr: "c:1"}}, true), Pass, "", "2 brokers"},
		"tokens without key":   {KafkaTokens([]TokenBroker{{Addr: "b:1"}, {Addr: "c:1", Err: fmt.Errorf("c:1: %w", sarama.ErrDelegationTokenAuthDisabled)}}, true), Fail, "kafka-tokens-off", "c:1"},
		"tokens not needed":    {KafkaTokens([]TokenBroker{{Addr: "b:1", Err: sarama.ErrDelegationTokenAuthDisabled}}, false), Warn, "kafka-tokens-off", "ticket caches of their own"},
		"tokens without SCRAM": {KafkaTokens([]TokenBroker{{Addr: "b:1", Err: kafka.ErrNoTokenLogin}}, true), Fail, "kafka-tokens-scram", "SCRAM-SHA-256"},
		"tokens by a token":    {KafkaTokens([]TokenBroker{{Addr: "b:1", Err: fmt.Errorf("b:1: %w", sarama.ErrDelegationTokenRequestNotAllowed)}}, true), Fail, "kafka-tokens-refused", "b:1"},
		"tokens, no answer":    {KafkaTokens([]TokenBroker{{Addr: "b:1", Err: errors.New("gone")}}, true), Fail, "kafka-tokens-failed", "gone"},
		"tokens barred":        {KafkaTokenBar(errors.New("acts for")), Fail, "kafka-tokens-barred", "acts for"},
		"group in use":         {Groups([]Group{{Name: "g", Write: true, AllowedGroup: kafka.AllowedGroup{Members: 2}}}, "User:a"), Warn, "group-in-use", "2 members"},
		"access not told":      {Topics([]Topic{{Name: "t", AllowedTopic: kafka.AllowedTopic{Partitions: 1}}}, "User:a"), Warn, "topic-access-unknown", "does not tell"},
	} {
		if x.v.Status != x.status || x.v.Diagnosis != x.diagnosis || !strings.Contains(x.v.Means, x.says) {
			t.Errorf("%s: %+v; want %s %q with %q", name, x.v, x.status, x.diagnosis, x.says)
		}
	}
}

// TestHTTPStaging compares what is seen of the staging folder over HTTP and by RPC.
func TestHTTPStaging(t *testing.T) {
	const root = "/user/alice/.heddle"
	for name, x := range map[string]struct {
		seen, byRPC string
		status      Status
		diagnosis   string
	}{
		"all":           {root, root, Pass, ""},
		"home":          {"/user/alice", "/user/alice", Pass, ""},
		"nothing":       {"/", "/", Warn, "http-staging"},
		"less over it":  {"/user", "/user/alice", Fail, "http-other"},
		"more over it":  {root, "/user", Fail, "http-other"},
		"nothing there": {"/", "/user/alice", Fail, "http-other"},
	} {
		if v := HTTPStaging(root, "alice", x.seen, x.byRPC, nil); v.Status != x.status || v.Diagnosis != x.diagnosis || v.Means == "" || (v.Fix == "") != (v.Status == Pass) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestKeylessTokens warns where key servers gave no tokens, unless worse is to be told.
func TestKeylessTokens(t *testing.T) {
	lack := Tokens{Keyless: errors.New("the key server refuses")}
	if v := lack.Judge(time.Now()); v.Status != Warn || v.Diagnosis != "token-keys" || v.Means != "the key server refuses" {
		t.Errorf("%+v", v)
	}
	lack.RenewErr = errors.New("no")
	if v := lack.Judge(time.Now()); v.Diagnosis != "token-renew" {
		t.Errorf("%+v", v)
	}
}
