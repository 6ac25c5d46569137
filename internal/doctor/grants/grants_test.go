package grants

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
)

var input = Input{User: "etl", Login: "etl@EXAMPLE.COM", YARN: true, Queue: "root.etl", Staging: "/user/etl/.heddle", HDFS: "hdfs://ns", TokensAt: []string{""}, Needs: []flow.Need{
	{Kind: flow.NeedTopic, Name: "clicks", Read: true}, {Kind: flow.NeedTopic, Name: "log-.*", Pattern: true, Read: true}, {Kind: flow.NeedTopic, Name: "it's", Write: true},
	{Kind: flow.NeedGroup, Name: "g", Read: true, Write: true}, {Kind: flow.NeedGroup, Name: "h", Read: true}, {Kind: flow.NeedSubject, Read: true},
	{Kind: flow.NeedPath, Name: "hdfs:///data/in/*.csv", Pattern: true, Read: true}, {Kind: flow.NeedPath, Name: "hdfs://other/out", Read: true, Write: true}, {Kind: flow.NeedPath, Name: "/tmp/x", Read: true},
}}

func TestList(t *testing.T) {
	var got []string
	for _, g := range List(input) {
		got = append(got, strings.Join([]string{string(g.Kind), g.Name, g.Match, strings.Join(g.Ops, ","), g.Cluster}, " "))
	}
	want := []string{
		"principal etl@EXAMPLE.COM literal  ",
		"hdfs-path /user/etl/.heddle recursive read,write,execute hdfs://ns",
		"hdfs-path /data/in recursive read,execute ",
		"hdfs-path /out recursive read,write,execute hdfs://other",
		"local-path /tmp/x literal read,execute ",
		"queue root.etl literal submit-app ",
		"topic clicks literal Read,Describe ",
		"topic log- prefixed Read,Describe ",
		"topic it's literal Write,Describe ",
		"group g literal Read,Describe ",
		"group h literal Describe ",
		"delegation-token etl literal Create ",
		"subject clicks-value literal read ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSubjects names the schemas of a topic's values as the registry's kind does.
func TestSubjects(t *testing.T) {
	in := Input{Registry: "cloudera", Needs: []flow.Need{{Kind: flow.NeedTopic, Name: "clicks", Read: true}, {Kind: flow.NeedSubject, Read: true}}}
	if gs := List(in); len(gs) != 2 || gs[1].Kind != Subject || gs[1].Name != "clicks" {
		t.Errorf("grants %+v", gs)
	}
}

func TestKafkaACLs(t *testing.T) {
	lines := KafkaACLs(List(input), "etl", "b:9092")
	const head = "kafka-acls.sh --bootstrap-server b:9092 --command-config admin.properties --add --allow-principal User:etl "
	want := []string{
		head + "--operation Read --operation Describe --topic clicks",
		head + "--operation Read --operation Describe --resource-pattern-type prefixed --topic log-",
		head + `--operation Write --operation Describe --topic 'it'\''s'`,
		head + "--operation Read --operation Describe --group g",
		head + "--operation Describe --group h",
		"# User:etl logs in by delegation tokens of its own, for which there is no ACL: brokers need delegation.token.secret.key, and SCRAM-SHA-256 at the listener",
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestRanger(t *testing.T) {
	b, err := json.Marshal(Ranger(List(input), "job", "etl", "etl", Services{"hdfs", "yarn", "kafka"}))
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Policies []struct {
			Service   string
			Resources map[string]struct{ Values []string }
			Items     []struct {
				Users    []string
				Accesses []struct{ Type string }
			} `json:"policyItems"`
		}
	}
	if err := json.Unmarshal(b, &out); err != nil || len(out.Policies) != 9 {
		t.Fatalf("%d policies (%v): %s", len(out.Policies), err, b)
	}
	for _, want := range []string{`"topic":{"values":["log-*"]`, `"type":"publish"`, `"consumergroup":{"values":["g"]`, `"queue":{"values":["root.etl"]`, `"path":{"values":["/out"],"isExcludes":false,"isRecursive":true}`, `"type":"submit-app"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

func TestPrefix(t *testing.T) {
	for expr, want := range map[string]string{"log-.*": "log-", "a|b": "", ".*": "", `a\.b[0-9]`: "a.b", "abc": "abc", "(": ""} {
		if got := prefixOf(expr); got != want {
			t.Errorf("%q: %q, want %q", expr, got, want)
		}
	}
}
