package cli

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/doctor"
)

const kafkaJob = `name: clicks
source: { kafka: { topics: [clicks], format: json, start: { committed: clicks-job, otherwise: earliest }, commit_to: clicks-job } }
sink: { kafka: { topic: out, format: json } }
`

// TestDoctor runs the verb where there is no cluster, where Kafka does not answer, and with a broken configuration of Hadoop's.
func TestDoctor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte(kafkaJob), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	_ = l.Close()
	if got := command(t, nil, nil, "doctor"); got.code != 0 || !strings.Contains(got.stdout, "skipped\tconf\t-\tthe target is local") {
		t.Errorf("without a cluster: %+v", got)
	}
	got := command(t, nil, nil, "doctor", file, "--json", "--kafka.brokers", dead)
	var results []doctor.Result
	if err := json.Unmarshal([]byte(got.stdout), &results); err != nil || got.code != 3 {
		t.Fatalf("exit code %d, %v: %+v", got.code, err, got)
	}
	for _, r := range results {
		if r.Check == "kafka" && (r.Diagnosis != "kafka-unreachable" || !strings.Contains(r.Means, dead)) {
			t.Errorf("%+v", r)
		}
		if r.Check == "kafka-topics" && r.Means != "needs Kafka" {
			t.Errorf("%+v", r)
		}
	}
	if got := command(t, nil, nil, "doctor", "--target", "yarn", "--yarn.conf-dir", t.TempDir()); got.code != 3 || !strings.Contains(got.stdout, "fail\tconf\tconf-missing\t") {
		t.Errorf("without configuration: %+v", got)
	}
}

// TestGrants lists what a job needs, in every format.
func TestGrants(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "job.yaml")
	site := `<configuration><property><name>fs.defaultFS</name><value>hdfs://nn:8020</value></property>
<property><name>yarn.resourcemanager.hostname</name><value>rm</value></property></configuration>`
	for name, text := range map[string]string{file: kafkaJob, filepath.Join(dir, "core-site.xml"): site, filepath.Join(dir, "yarn-site.xml"): "<configuration/>"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"plan", file, "--grants", "--target", "yarn", "--yarn.conf-dir", dir, "--yarn.user", "etl", "--queue", "root.etl", "--kafka.brokers", "k1:9092", "--kafka.sasl.user", "writer"}
	for format, want := range map[string][]string{
		"text":       {"principal\tetl\t", "hdfs-path\t/user/etl/.heddle and below\tread,write,execute\thdfs://nn:8020\t", "queue\troot.etl\t", "topic\tclicks\tRead,Describe\t", "group\tclicks-job\t", "port\trm:8032\t", "port\tk1:9092\t"},
		"json":       {`"kind": "topic"`, `"name": "clicks-job"`},
		"kafka-acls": {"--bootstrap-server k1:9092 --command-config admin.properties --add --allow-principal User:writer --operation Write --operation Describe --topic out\n"},
		"ranger":     {`"service": "cm_hdfs"`, `"/user/etl/.heddle"`, `"submit-app"`, `"writer"`},
	} {
		got := command(t, nil, nil, append(args, "--format", format)...)
		for _, w := range want {
			if got.code != 0 || !strings.Contains(got.stdout, w) {
				t.Errorf("%s: exit code %d, no %q in\n%s%s", format, got.code, w, got.stdout, got.stderr)
			}
		}
	}
	away := filepath.Join(dir, "hdfs.yaml")
	if err := os.WriteFile(away, []byte(strings.Replace(kafkaJob, "{ kafka: { topic: out, format: json } }", `{ file: { path: "hdfs://nn/out", format: json } }`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := command(t, nil, nil, "plan", away, "--grants"); got.code != 0 || !strings.Contains(got.stdout, "hdfs-path\t/out and below\tread,write,execute\thdfs://nn\t") || !strings.Contains(got.stderr, "set HADOOP_CONF_DIR") {
		t.Errorf("without Hadoop's configuration: %+v", got)
	}
	if got := command(t, nil, nil, append(args, "--format", "xml")...); got.code != 2 {
		t.Errorf("an unknown format: %+v", got)
	}
	if got := command(t, nil, nil, "plan", file, "--format", "json"); got.code != 2 || !strings.Contains(got.stderr, "--grants") {
		t.Errorf("a format without grants: %+v", got)
	}
}
