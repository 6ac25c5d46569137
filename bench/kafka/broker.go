package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/internal/testnet"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const kafkaVersion = "4.2.0"

// kafkaPOM names what a broker and Kafka's own tools need.
const kafkaPOM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
 <modelVersion>4.0.0</modelVersion>
 <groupId>bench</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
 <dependencies>
  <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>` + kafkaVersion + `</version></dependency>
  <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>` + kafkaVersion + `</version></dependency>
 </dependencies>
</project>
`

// realBroker is Apache Kafka in a process of its own, and its tools.
type realBroker struct {
	lib, dir string
	addr     string
	process  *exec.Cmd
	client   *kgo.Client
}

// fetchKafka fetches the jars by Maven into a folder, unless that was done before, and returns where they are.
func fetchKafka(ctx context.Context, dir string) (lib string, err error) {
	dir = filepath.Join(dir, "kafka-"+kafkaVersion)
	lib = filepath.Join(dir, "lib")
	done := filepath.Join(dir, "ready")
	if _, err := os.Stat(done); err == nil {
		return lib, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	pom := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(pom, []byte(kafkaPOM), 0o644); err != nil {
		return "", err
	}
	fmt.Println("fetching Kafka into", dir)
	out, err := exec.CommandContext(ctx, "mvn", "-q", "-B", "-ntp", "-f", pom, "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
		"-DoutputDirectory="+lib, "-DincludeScope=runtime").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot fetch Kafka by Maven: %w\n%s", err, out)
	}
	return lib, os.WriteFile(done, nil, 0o644)
}

// startKafka starts a broker that keeps what it has in a folder of its own, and waits until it answers.
func startKafka(ctx context.Context, jars string) (_ *realBroker, err error) {
	b := &realBroker{}
	if b.lib, err = fetchKafka(ctx, jars); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "bench-kafka-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.stop()
		}
	}()
	ports, err := testnet.FreePorts(2)
	if err != nil {
		return nil, err
	}
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	b.addr = at(ports[0])
	conf := filepath.Join(b.dir, "server.properties")
	if err := os.WriteFile(conf, fmt.Appendf(nil, `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
advertised.listeners=PLAINTEXT://%[1]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs=%[3]s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.hours=-1
file.delete.delay.ms=1000
`, at(ports[0]), at(ports[1]), filepath.Join(b.dir, "data")), 0o600); err != nil {
		return nil, err
	}
	id, err := b.tool(ctx, "kafka.tools.StorageTool", "random-uuid")
	if err != nil {
		return nil, err
	}
	f := strings.Fields(id)
	if _, err := b.tool(ctx, "kafka.tools.StorageTool", "format", "-t", f[len(f)-1], "-c", conf); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(b.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := exec.Command("java", "-Xms512m", "-Xmx1g", "-XX:+UseG1GC", "-cp", filepath.Join(b.lib, "*"), "kafka.Kafka", conf)
	p.Stdout, p.Stderr = log, log
	if err := p.Start(); err != nil {
		return nil, err
	}
	b.process = p
	if b.client, err = kgo.NewClient(kgo.SeedBrokers(b.addr)); err != nil {
		return nil, err
	}
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if err = b.client.Ping(ctx); err == nil {
			return b, nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			tail, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("the broker does not come up: %w\n%s", err, tail[max(0, len(tail)-2000):])
		}
	}
}

func (b *realBroker) stop() {
	if b.client != nil {
		b.client.Close()
	}
	if b.process != nil {
		b.process.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(30*time.Second, func() { b.process.Process.Kill() })
		b.process.Wait()
		kill.Stop()
	}
	os.RemoveAll(b.dir)
}

// tool runs one of Kafka's classes to its end.
func (b *realBroker) tool(ctx context.Context, class string, args ...string) (string, error) {
	out, _, err := b.measured(ctx, class, args...)
	return out, err
}

// measured runs one of Kafka's classes to its end, and returns its CPU time, that of Java's start included.
func (b *realBroker) measured(ctx context.Context, class string, args ...string) (string, time.Duration, error) {
	cmd := exec.CommandContext(ctx, "java", append([]string{"-Xmx512m", "-cp", filepath.Join(b.lib, "*"), class}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", 0, fmt.Errorf("cannot run %s: %w\n%s%s", class, err, out, errs.String())
	}
	return string(out), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// topic makes a topic, in place of the one there is, and waits until the broker tells of it.
func (b *realBroker) topic(ctx context.Context, name string) error {
	if err := b.drop(ctx, name); err != nil {
		return err
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 60_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	req.Topics = append(req.Topics, t)
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		resp, err := req.RequestWith(ctx, b.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		}
		if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
			err = b.known(ctx, name)
		}
		if err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

// known is nil if the broker tells of all partitions of a topic.
func (b *realBroker) known(ctx context.Context, name string) error {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &name
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return err
	}
	if n := len(resp.Topics[0].Partitions); n != partitions {
		return fmt.Errorf("topic %s has %d partitions", name, n)
	}
	return nil
}

// drop deletes a topic, if there is one.
func (b *realBroker) drop(ctx context.Context, name string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 60_000
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = &name
	req.Topics, req.TopicNames = append(req.Topics, t), []string{name}
	_, err := req.RequestWith(ctx, b.client)
	return err
}

// fill writes records by Kafka's own tool, with batches as producers on a busy topic have them.
func (b *realBroker) fill(ctx context.Context, topic string, records int64, size int) error {
	if err := b.topic(ctx, topic); err != nil {
		return err
	}
	_, err := b.tool(ctx, "org.apache.kafka.tools.ProducerPerformance", b.producing(topic, records, size)...)
	return err
}

func (b *realBroker) producing(topic string, records int64, size int) []string {
	return []string{"--bootstrap-server", b.addr, "--topic", topic, "--num-records", strconv.FormatInt(records, 10), "--record-size", strconv.Itoa(size), "--throughput", "-1",
		"--command-property", "linger.ms=5", "--command-property", "batch.size=131072", "--command-property", "buffer.memory=67108864"}
}

// consumePerf reads a topic by Kafka's own tool, in a cold JVM.
func (b *realBroker) consumePerf(ctx context.Context, topic string, records int64) (round, error) {
	out, cpu, err := b.measured(ctx, "org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", b.addr, "--topic", topic, "--num-records", strconv.FormatInt(records, 10), "--hide-header")
	if err != nil {
		return round{}, err
	}
	// … , records, records/s, ms of rebalancing, ms of fetching, MB/s of that, records/s of that
	lines := strings.Split(strings.TrimSpace(out), "\n")
	f := strings.Split(lines[len(lines)-1], ",")
	if len(f) < 10 {
		return round{}, fmt.Errorf("cannot read what ConsumerPerformance printed: %s", out)
	}
	return perf(f[4], f[9], cpu)
}

// producePerf writes a topic by Kafka's own tool, in a cold JVM.
func (b *realBroker) producePerf(ctx context.Context, topic string, records int64, size int) (round, error) {
	out, cpu, err := b.measured(ctx, "org.apache.kafka.tools.ProducerPerformance", b.producing(topic, records, size)...)
	if err != nil {
		return round{}, err
	}
	// 100000 records sent, 63171.2 records/sec (…
	lines := strings.Split(strings.TrimSpace(out), "\n")
	f := strings.Fields(lines[len(lines)-1])
	if len(f) < 4 {
		return round{}, fmt.Errorf("cannot read what ProducerPerformance printed: %s", out)
	}
	return perf(f[0], f[3], cpu)
}

func perf(records, rate string, cpu time.Duration) (round, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(records), 10, 64)
	if err != nil {
		return round{}, err
	}
	perSecond, err := strconv.ParseFloat(strings.TrimSpace(rate), 64)
	if err != nil || perSecond <= 0 || n <= 0 {
		return round{}, fmt.Errorf("cannot read a rate of %q", rate)
	}
	return round{Records: n, Seconds: float64(n) / perSecond, CPU: float64(cpu) / float64(n)}, nil
}
