package kerberos

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/heddle-stream/heddle/internal/doctor"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// guardedKafka is a broker that wants Kerberos and asks an authorizer. etl may do there what it was granted.
type guardedKafka struct {
	*cluster
	k     *testbed.Kafka
	admin *kgo.Client
	// Listeners: plain, over TLS by an authority of its own, and one that advertises a port where nobody listens.
	plain, inTLS, lost string
	dir                string
	ca                 string // file
}

func (x *cluster) startKafka(t *testing.T) *guardedKafka {
	t.Helper()
	g := &guardedKafka{cluster: x, dir: x.bed.Dir("guarded")}
	x.kdc.Admin("addprinc -randkey kafka/localhost\naddprinc -randkey etl\naddprinc -randkey ghost\n")
	broker := x.kdc.Keytab("kafka.keytab", false, "kafka/localhost")
	x.kdc.KeytabOf("etl")
	x.kdc.KeytabOf("ghost")
	x.kdc.Admin("delprinc -force ghost\n")
	authority := testbed.NewAuthority(t, "of Kafka")
	g.ca = x.bed.File("guarded/ca.pem", string(authority.PEM()))
	store := filepath.Join(g.dir, "broker.jks")
	authority.KeyJKS(store, authority.Leaf("localhost"))
	at := func() string { return fmt.Sprintf("localhost:%d", testbed.FreePort(t)) }
	g.plain, g.inTLS, g.lost = at(), at(), at()
	login := fmt.Sprintf(`com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="%s" principal="kafka/localhost@%s";`, broker, x.kdc.Realm)
	g.k = testbed.StartKafkasAs(t, x.bed, 1, testbed.KafkaSetup{
		JVM:       []string{"-Djava.security.krb5.conf=" + x.kdc.Conf},
		Listeners: []string{"KRB:SASL_PLAINTEXT@" + g.plain, "KRBS:SASL_SSL@" + g.inTLS, "LOST:SASL_PLAINTEXT@" + g.lost + "=" + deadAddr(t)},
		Extra: func(int) string {
			s := fmt.Sprintf("sasl.enabled.mechanisms=GSSAPI\nsasl.kerberos.service.name=kafka\nssl.keystore.location=%s\nssl.keystore.password=%s\nssl.key.password=%s\nssl.keystore.type=JKS\n"+
				"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:ANONYMOUS;User:kafka\n", store, testbed.StorePassword, testbed.StorePassword)
			for _, l := range []string{"krb", "krbs", "lost"} {
				s += "listener.name." + l + ".gssapi.sasl.jaas.config=" + login + "\n"
			}
			return s
		},
	})[0]
	var err error
	if g.admin, err = kgo.NewClient(kgo.SeedBrokers(g.k.Bootstrap)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.admin.Close)
	for _, topic := range []string{"in", "out", "hidden"} {
		r := kmsg.NewPtrCreateTopicsRequest()
		one := kmsg.NewCreateTopicsRequestTopic()
		one.Topic, one.NumPartitions, one.ReplicationFactor = topic, 2, 1
		r.Topics = append(r.Topics, one)
		if _, err := r.RequestWith(t.Context(), g.admin); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// grant lets etl do something with a topic or a group, or no longer.
func (g *guardedKafka) grant(t *testing.T, kind kmsg.ACLResourceType, name string, op kmsg.ACLOperation) {
	t.Helper()
	r := kmsg.NewPtrCreateACLsRequest()
	one := kmsg.NewCreateACLsRequestCreation()
	one.ResourceType, one.ResourceName, one.ResourcePatternType = kind, name, kmsg.ACLResourcePatternTypeLiteral
	one.Principal, one.Host, one.Operation, one.PermissionType = "User:etl", "*", op, kmsg.ACLPermissionTypeAllow
	r.Creations = append(r.Creations, one)
	resp, err := r.RequestWith(t.Context(), g.admin)
	if err != nil || resp.Results[0].ErrorCode != 0 {
		t.Fatalf("%v, %+v", err, resp)
	}
}

// revoke takes every right on a topic or a group away.
func (g *guardedKafka) revoke(t *testing.T, kind kmsg.ACLResourceType, name string) {
	t.Helper()
	r := kmsg.NewPtrDeleteACLsRequest()
	f := kmsg.NewDeleteACLsRequestFilter()
	f.ResourceType, f.ResourceName, f.ResourcePatternType = kind, &name, kmsg.ACLResourcePatternTypeLiteral
	f.Operation, f.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	r.Filters = append(r.Filters, f)
	resp, err := r.RequestWith(t.Context(), g.admin)
	if err != nil || resp.Results[0].ErrorCode != 0 || len(resp.Results[0].MatchingACLs) == 0 {
		t.Fatalf("%v, %+v", err, resp)
	}
}

// as are the options of etl, with changes as names and values.
func (g *guardedKafka) as(brokers string, changes ...string) map[string]string {
	o := map[string]string{"kafka.brokers": brokers, "kafka.sasl.mechanism": "GSSAPI", "kafka.sasl.kerberos.principal": "etl@" + g.kdc.Realm,
		"kafka.sasl.kerberos.keytab": g.kdc.KeytabOf("etl"), "kafka.sasl.kerberos.conf": g.kdc.Conf}
	for i := 0; i < len(changes); i += 2 {
		o["kafka."+changes[i]] = changes[i+1]
	}
	maps.DeleteFunc(o, func(_, v string) bool { return v == "" })
	return o
}

// asks is a setup of the doctor that looks at Kafka alone.
func asks(options map[string]string, needs ...flow.Need) doctor.Config {
	k := doctor.KafkaCluster{}
	k.Config, k.Err = kafka.FromOptions(func(name string) (string, bool) { v, ok := options[name]; return v, ok }, nil)
	return doctor.Config{NoHadoop: "it is not meant", Needs: needs, Kafka: []doctor.KafkaCluster{k}}
}

// testDoctorKafka breaks the way to a broker that demands Kerberos, and what one may do there.
func (x *cluster) testDoctorKafka(t *testing.T) {
	g := x.startKafka(t)
	g.grant(t, kmsg.ACLResourceTypeTopic, "in", kmsg.ACLOperationRead)
	g.grant(t, kmsg.ACLResourceTypeTopic, "none", kmsg.ACLOperationRead)
	g.grant(t, kmsg.ACLResourceTypeGroup, "mine", kmsg.ACLOperationRead)
	reads := func(name string) flow.Need { return flow.Need{Kind: flow.NeedTopic, Name: name, Read: true} }
	writes := func(name string) flow.Need { return flow.Need{Kind: flow.NeedTopic, Name: name, Write: true} }
	commits := func(name string) flow.Need { return flow.Need{Kind: flow.NeedGroup, Name: name, Write: true} }
	tls := []string{"tls.enabled", "true", "tls.ca-file", g.ca}
	tokens := asks(g.as(g.plain))
	tokens.Kafka[0].Tokens = doctor.Demanded
	ghost := []string{"sasl.kerberos.principal", "ghost@" + x.kdc.Realm, "sasl.kerberos.keytab", x.kdc.KeytabOf("ghost")}
	for name, s := range map[string]sick{
		"well, Kafka":            {cfg: asks(g.as(g.plain), reads("in"), commits("mine"))},
		"well, Kafka over TLS":   {cfg: asks(g.as(g.inTLS, tls...), reads("in"))},
		"Kafka's mechanism":      {cfg: asks(g.as(g.plain, "sasl.mechanism", "PLAIN", "sasl.user", "etl", "sasl.password", "x", "sasl.kerberos.principal", "", "sasl.kerberos.keytab", "", "sasl.kerberos.conf", "")), check: "kafka", diagnosis: "kafka-mechanism"},
		"unknown to the KDC":     {cfg: asks(g.as(g.plain, ghost...)), check: "kafka", diagnosis: "principal-unknown"},
		"Kafka's service":        {cfg: asks(g.as(g.plain, "sasl.kerberos.service", "kafak")), check: "kafka", diagnosis: "service-unknown"},
		"Kafka's keytab":         {cfg: asks(g.as(g.plain, "sasl.kerberos.keytab", "/none.keytab")), check: "kafka", diagnosis: "keytab-missing"},
		"no login to Kafka":      {cfg: asks(map[string]string{"kafka.brokers": g.plain}), check: "kafka", diagnosis: "kafka-hangs-up"},
		"TLS to a plain port":    {cfg: asks(g.as(g.plain, tls...)), check: "kafka", diagnosis: "kafka-tls"},
		"plain to a port of TLS": {cfg: asks(g.as(g.inTLS)), check: "kafka", diagnosis: "kafka-hangs-up"},
		"Kafka's authority":      {cfg: asks(g.as(g.inTLS, "tls.enabled", "true")), check: "kafka", diagnosis: "kafka-tls"},
		"advertised port":        {cfg: asks(g.as(g.lost)), check: "kafka-listeners", diagnosis: "kafka-advertised"},
		"topic without right":    {cfg: asks(g.as(g.plain), reads("hidden")), check: "kafka-topics", diagnosis: "topic-denied"},
		"topic to read only":     {cfg: asks(g.as(g.plain), writes("in")), check: "kafka-topics", diagnosis: "topic-denied"},
		"no such topic":          {cfg: asks(g.as(g.plain), reads("none")), check: "kafka-topics", diagnosis: "topic-missing"},
		"Kafka's tokens":         {cfg: tokens, check: "kafka-tokens", diagnosis: "kafka-tokens-off"},
		"group without right":    {cfg: asks(g.as(g.plain), reads("in"), commits("theirs")), check: "kafka-groups", diagnosis: "group-denied"},
	} {
		t.Run(name, func(t *testing.T) { x.diagnose(t, s) })
	}
	t.Run("registry", x.testDoctorRegistry)
	t.Run("grants", g.testGrants)
}

// testDoctorRegistry breaks the way to a schema registry that speaks TLS and wants a password.
func (x *cluster) testDoctorRegistry(t *testing.T) {
	authority := testbed.NewAuthority(t, "of the registry")
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch user, password, _ := r.BasicAuth(); {
		case user != "etl" || password != "right":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/subjects/in-value/versions/latest":
			fmt.Fprint(w, `{"id":1,"version":1,"schema":"\"string\""}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error_code":40401,"message":"Subject not found."}`)
		}
	}))
	pair := authority.Leaf("127.0.0.1")
	srv.TLS = serverTLS(pair)
	srv.StartTLS()
	defer srv.Close()
	srv.Config.ErrorLog = quiet()
	ca := x.bed.File("registry-ca.pem", string(authority.PEM()))
	ask := func(subject string, change ...string) doctor.Config {
		o := map[string]string{"schema-registry.urls": srv.URL, "schema-registry.user": "etl", "schema-registry.password": "right", "schema-registry.ca-file": ca}
		for i := 0; i < len(change); i += 2 {
			o["schema-registry."+change[i]] = change[i+1]
		}
		return doctor.Config{NoHadoop: "it is not meant", Needs: []flow.Need{{Kind: flow.NeedSubject, Name: subject, Read: true}},
			Registry: func(name string) (string, bool) { v, ok := o[name]; return v, ok && v != "" }}
	}
	for name, s := range map[string]sick{
		"well, a registry":       {cfg: ask("in-value")},
		"registry down":          {cfg: ask("in-value", "urls", "https://"+deadAddr(t)), check: "schema-registry", diagnosis: "registry-unreachable"},
		"registry's authority":   {cfg: ask("in-value", "ca-file", ""), check: "schema-registry", diagnosis: "registry-tls"},
		"registry without TLS":   {cfg: ask("in-value", "urls", strings.Replace(srv.URL, "https", "http", 1)), check: "schema-registry", diagnosis: "registry-strange"},
		"registry's password":    {cfg: ask("in-value", "password", "wrong"), check: "schema-registry", diagnosis: "registry-login"},
		"no such subject":        {cfg: ask("none-value"), check: "schema-registry", diagnosis: "subject-missing"},
		"registry without a URL": {cfg: ask("in-value", "urls", ""), check: "schema-registry", diagnosis: "registry-options"},
	} {
		t.Run(name, func(t *testing.T) { x.diagnose(t, s) })
	}
}

// clicks reads one topic and writes another, and commits how far it is.
const clicks = `name: clicks
source: { kafka: { topics: [in], format: text, stop: latest, commit_to: mine } }
sink: { kafka: { topic: out, format: json } }
`

// testGrants has an administrator run the lines that the plan lists, with Kafka's own tool: the job runs with that and nothing more, and not with a line less.
func (g *guardedKafka) testGrants(t *testing.T) {
	for kind, names := range map[kmsg.ACLResourceType][]string{kmsg.ACLResourceTypeTopic: {"in", "none"}, kmsg.ACLResourceTypeGroup: {"mine"}} {
		for _, n := range names {
			g.revoke(t, kind, n)
		}
	}
	for i := range 10 {
		if err := g.admin.ProduceSync(t.Context(), &kgo.Record{Topic: "in", Value: fmt.Appendf(nil, "line %d", i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	exe := testbed.BuildProgram(t, g.bed, "./cmd/heddle", "heddle")
	job := g.bed.File("guarded/clicks.yaml", clicks)
	var options []string
	for name, v := range g.as(g.plain) {
		options = append(options, "--"+name, v)
	}
	heddle := func(code int, verb ...string) string {
		t.Helper()
		out, err := g.heddle(t, exe, []string{"HADOOP_CONF_DIR="}, append(verb, options...)...)
		if got := exitCode(err); got != code {
			t.Fatalf("%v: exit code %d, want %d:\n%s", verb, got, code, out)
		}
		return out
	}
	heddle(3, "doctor", job)
	lines := heddle(0, "plan", job, "--grants", "--format", "kafka-acls")
	if n := strings.Count(lines, "kafka-acls.sh "); n != 3 || strings.Count(lines, "\n") != n {
		t.Fatalf("the lines are\n%s", lines)
	}
	g.apply(t, lines)
	t.Logf("%s\n%s", lines, heddle(0, "doctor", job))
	heddle(0, "run", job, "--target", "local")
	g.read(t, "out", 10)
	for _, less := range []struct {
		kind            kmsg.ACLResourceType
		name, diagnosis string
		op              kmsg.ACLOperation
	}{
		{kmsg.ACLResourceTypeTopic, "in", "topic-denied", kmsg.ACLOperationRead},
		{kmsg.ACLResourceTypeTopic, "out", "topic-denied", kmsg.ACLOperationWrite},
		{kmsg.ACLResourceTypeGroup, "mine", "group-denied", kmsg.ACLOperationRead},
	} {
		g.revoke(t, less.kind, less.name)
		if out := heddle(3, "doctor", job); strings.Count(out, less.diagnosis) != 1 || strings.Count(out, "fail\t") != 1 || !strings.Contains(out, less.name) {
			t.Errorf("without a right on %s the doctor says\n%s", less.name, out)
		}
		out, err := g.heddle(t, exe, []string{"HADOOP_CONF_DIR="}, append([]string{"run", job, "--target", "local"}, options...)...)
		t.Logf("without a right on %s: %v\n%s", less.name, err, out)
		if less.kind == kmsg.ACLResourceTypeTopic && err == nil {
			t.Errorf("the job runs without a right on %s:\n%s", less.name, out)
		}
		g.grant(t, less.kind, less.name, less.op)
	}
}

// read waits for so many records of a topic.
func (g *guardedKafka) read(t *testing.T, topic string, n int) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(g.k.Bootstrap), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for n > 0 {
		f := cl.PollFetches(ctx)
		if err := f.Err0(); err != nil {
			t.Fatalf("%d records are missing: %v", n, err)
		}
		n -= f.NumRecords()
	}
}

// apply runs command lines as Kafka's administrator, who logs in by the broker's keytab.
func (g *guardedKafka) apply(t *testing.T, lines string) {
	t.Helper()
	g.bed.File("guarded/admin.properties", fmt.Sprintf(`security.protocol=SASL_PLAINTEXT
sasl.kerberos.service.name=kafka
sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="%s" principal="kafka/localhost@%s";
`, g.bed.Dir("kdc-"+g.kdc.Realm)+"/kafka.keytab", g.kdc.Realm))
	tool := g.bed.File("guarded/kafka-acls.sh", fmt.Sprintf("#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -Djava.security.krb5.conf=%s -cp '%s/*' org.apache.kafka.tools.AclCommand \"$@\"\n", g.kdc.Conf, g.k.Lib()))
	if err := os.Chmod(tool, 0o700); err != nil {
		t.Fatal(err)
	}
	script := g.bed.File("guarded/grant.sh", "set -e\ncd "+g.dir+"\nPATH="+g.dir+":$PATH\n"+lines)
	if out, err := g.bed.Run(patience, "sh", script); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
