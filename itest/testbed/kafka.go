package testbed

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// KafkaVersion is the release of Apache Kafka that the tests run.
const KafkaVersion = "4.2.0"

// Kafka is a real broker in KRaft mode.
type Kafka struct {
	Bootstrap string // host:port

	name   string // of its folder and logs
	bed    *Bed
	lib    string
	conf   string
	jvm    []string
	broker *Process
	starts int
}

// NeedJava names what a group that runs Java services needs.
var NeedJava = map[string]string{
	"java": "install a JDK, 17 or later (Debian: apt-get install openjdk-17-jdk-headless)",
	"mvn":  "install Maven (Debian: apt-get install maven)",
}

// StartKafka fetches, formats and starts a broker, and waits until it answers.
func StartKafka(t testing.TB, b *Bed) *Kafka {
	t.Helper()
	return StartKafkas(t, b, 1)[0]
}

// StartKafkas starts a cluster of n brokers, each of which is a controller too.
// A Bootstrap names one broker alone.
func StartKafkas(t testing.TB, b *Bed, n int) []*Kafka {
	t.Helper()
	return StartKafkasAs(t, b, n, KafkaSetup{})
}

// KafkaSetup is how a cluster differs from the usual.
type KafkaSetup struct {
	Version string                  // "": KafkaVersion
	Extra   func(broker int) string // lines for the properties of a broker, which are counted from 1; may be nil
	// Listeners are more listeners of each broker, as name:protocol@host:port, with =host:port where they advertise another address.
	Listeners []string
	JVM       []string // more arguments of the brokers' JVMs
}

// StartKafkasAs is StartKafkas with a setup.
func StartKafkasAs(t testing.TB, b *Bed, n int, setup KafkaSetup) []*Kafka {
	t.Helper()
	Need(t, NeedJava)
	version, name := setup.Version, "kafka"
	if version == "" {
		version = KafkaVersion
	} else {
		name += "-" + version
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	lib, err := Jars(ctx, name, Artifact("org.apache.kafka:kafka_2.13:"+version), Artifact("org.apache.kafka:kafka-tools:"+version))
	if err != nil {
		t.Fatal(err)
	}
	nodes := make([]*Kafka, n)
	var voters []string
	ports := make([]int, n)
	for i := range nodes {
		ports[i] = FreePort(t)
		ctl := FreePort(t)
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", i+1, ctl))
		nodes[i] = &Kafka{Bootstrap: fmt.Sprintf("127.0.0.1:%d", ports[i]), bed: b, lib: lib, name: "kafka", jvm: setup.JVM}
		if n > 1 {
			nodes[i].name = fmt.Sprintf("kafka%d", i+1)
		}
	}
	id, err := nodes[0].Tool("", "kafka.tools.StorageTool", "random-uuid")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(id)
	for i, k := range nodes {
		_, ctl, _ := strings.Cut(voters[i], "@")
		text := fmt.Sprintf(kafkaConf, i+1, strings.Join(voters, ","), k.Bootstrap, ctl, filepath.Join(b.dir, k.name, "data"), n, min(n, 2))
		for _, l := range setup.Listeners {
			name, at, _ := strings.Cut(l, "@")
			name, protocol, _ := strings.Cut(name, ":")
			at, advertised, other := strings.Cut(at, "=")
			if !other {
				advertised = at
			}
			text = strings.Replace(text, "\nadvertised.listeners=", ","+name+"://"+at+"\nadvertised.listeners=", 1)
			text = strings.Replace(text, "\nlistener.security.protocol.map=", ","+name+"://"+advertised+"\nlistener.security.protocol.map="+name+":"+protocol+",", 1)
		}
		if setup.Extra != nil {
			text += setup.Extra(i + 1)
		}
		k.conf = b.File(k.name+"/server.properties", text)
		if _, err := k.Tool("", "kafka.tools.StorageTool", "format", "-t", f[len(f)-1], "-c", k.conf); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range nodes {
		k.launch()
	}
	for _, k := range nodes {
		k.await()
	}
	return nodes
}

const kafkaConf = `process.roles=broker,controller
node.id=%[1]d
controller.quorum.voters=%[2]s
listeners=PLAINTEXT://%[3]s,CONTROLLER://%[4]s
advertised.listeners=PLAINTEXT://%[3]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=%[5]s
offsets.topic.replication.factor=%[6]d
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=%[6]d
transaction.state.log.min.isr=%[7]d
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=%[6]d
share.coordinator.state.topic.min.isr=%[7]d
default.replication.factor=%[6]d
min.insync.replicas=%[7]d
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.hours=-1
`

// Start starts the broker again after Kill or Stop, and waits until it accepts connections.
func (k *Kafka) Start() {
	k.bed.t.Helper()
	k.launch()
	k.await()
}

// StartAll starts brokers again after Kill or Stop, all at once, as those of a cluster need each other, and waits until they accept connections.
func StartAll(nodes []*Kafka) {
	for _, k := range nodes {
		k.launch()
	}
	for _, k := range nodes {
		k.bed.t.Helper()
		k.await()
	}
}

func (k *Kafka) launch() {
	k.bed.t.Helper()
	k.starts++
	k.broker = k.bed.Start(Spec{
		Name: fmt.Sprintf("%s-%d", k.name, k.starts), Path: "java",
		Args: append(append([]string{"-Xms256m", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, k.jvm...), "-cp", filepath.Join(k.lib, "*"), "kafka.Kafka", k.conf),
	})
}

func (k *Kafka) await() {
	k.bed.t.Helper()
	k.bed.Eventually("Kafka accepts connections on "+k.Bootstrap, 3*time.Minute, func() error {
		if !k.broker.Running() {
			k.bed.t.Fatalf("the broker ended:\n%s", k.broker.Tail(20))
		}
		c, err := net.DialTimeout("tcp", k.Bootstrap, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// Lib is the folder of Kafka's jars.
func (k *Kafka) Lib() string { return k.lib }

// Stop ends the broker in good order: it hands its partitions over first.
func (k *Kafka) Stop() {
	k.bed.t.Helper()
	k.broker.Signal(syscall.SIGTERM)
	k.broker.Wait(time.Minute)
}

// Kill kills the broker as kill -9 does.
func (k *Kafka) Kill() { k.broker.Kill() }

// Tool runs one of Kafka's own command line classes with stdin and returns its standard output.
func (k *Kafka) Tool(stdin, class string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-cp", filepath.Join(k.lib, "*"), class}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var errb strings.Builder
	cmd.Stderr = &errb
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("cannot run %s: %w\n%s%s", class, err, tail(string(out), 10), tail(errb.String(), 10))
	}
	return string(out), nil
}

// CreateTopic makes a topic by Kafka's own tool.
func (k *Kafka) CreateTopic(name string, partitions int) {
	k.bed.t.Helper()
	_, err := k.Tool("", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", k.Bootstrap,
		"--create", "--topic", name, "--partitions", fmt.Sprint(partitions))
	if err != nil {
		k.bed.t.Fatal(err)
	}
}

// Produce writes lines as records by Kafka's own console producer, round robin over the partitions.
func (k *Kafka) Produce(topic, lines string) {
	k.bed.t.Helper()
	_, err := k.Tool(lines, "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", k.Bootstrap, "--topic", topic,
		"--command-property", "partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner")
	if err != nil {
		k.bed.t.Fatal(err)
	}
}

// Count returns how many offsets a topic's partitions span in all, by Kafka's own tool.
func (k *Kafka) Count(topic string) int {
	k.bed.t.Helper()
	out, err := k.Tool("", "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", k.Bootstrap, "--topic", topic)
	if err != nil {
		k.bed.t.Fatal(err)
	}
	sum := 0
	for l := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(l), ":")
		n := 0
		if _, err := fmt.Sscan(f[len(f)-1], &n); err == nil {
			sum += n
		}
	}
	return sum
}

// Consume reads n records' values by Kafka's own console consumer, from the beginning.
func (k *Kafka) Consume(topic string, n int) []string {
	k.bed.t.Helper()
	out, err := k.Tool("", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", k.Bootstrap, "--topic", topic,
		"--from-beginning", "--max-messages", fmt.Sprint(n), "--timeout-ms", "30000")
	if err != nil {
		k.bed.t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(out, "\n"), "\n")
}

// BuildHeddle builds the heddle command, static, once a test binary, and returns its path.
func BuildHeddle(t testing.TB, b *Bed) string { return BuildProgram(t, b, "./cmd/heddle", "heddle") }

// BuildProgram builds one of the module's programs and returns its path.
func BuildProgram(t testing.TB, b *Bed, pkg, name string) string {
	t.Helper()
	root, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(b.Dir("bin"), name)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // a machine that has built nothing yet
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", pkg, err, msg)
	}
	return out
}

// Descriptors is how many files and connections the broker has open.
func (k *Kafka) Descriptors() int {
	k.bed.t.Helper()
	d, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", k.broker.Pid()))
	if err != nil {
		k.bed.t.Fatal(err)
	}
	return len(d)
}
