package flink

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/internal/testnet"
)

// Cluster is a Flink session cluster: a JobManager and TaskManagers, each a process of its own.
type Cluster struct {
	home     Home
	name     string
	dir      string
	rest     int
	manager  *exec.Cmd
	workers  []*exec.Cmd
	counters string // file that sinks count in
}

// javaOpens is what Flink needs of a JDK 17.
var javaOpens = strings.Fields(`--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED --add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED
--add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.net=ALL-UNNAMED --add-opens=java.base/java.io=ALL-UNNAMED
--add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.lang.reflect=ALL-UNNAMED
--add-opens=java.base/java.text=ALL-UNNAMED --add-opens=java.base/java.time=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED
--add-opens=java.base/java.util.concurrent=ALL-UNNAMED --add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED
--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED`)

// Start starts a cluster of so many TaskManagers of one slot each, and waits until they are registered.
func Start(ctx context.Context, home Home, name string, workers int, tls bool) (_ *Cluster, err error) {
	c := &Cluster{home: home, name: name}
	if c.dir, err = os.MkdirTemp("", "peers-"+name); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	ports, err := testnet.FreePorts(2)
	if err != nil {
		return nil, err
	}
	c.rest, c.counters = ports[0], filepath.Join(c.dir, "counters")
	if err := c.configure(ports[1], tls); err != nil {
		return nil, err
	}
	if c.manager, err = c.java("jobmanager", "-Xmx512m", "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint", "--configDir", c.dir); err != nil {
		return nil, err
	}
	for i := range workers {
		w, err := c.java(fmt.Sprint("taskmanager-", i), "-Xms896m", "-Xmx896m", "-XX:MaxDirectMemorySize=256m", "-XX:MaxMetaspaceSize=256m", "-XX:+UseG1GC",
			"org.apache.flink.runtime.taskexecutor.TaskManagerRunner", "--configDir", c.dir, "-D", fmt.Sprint("taskmanager.resource-id=tm", i))
		if err != nil {
			return nil, err
		}
		c.workers = append(c.workers, w)
	}
	return c, c.await(ctx, workers)
}

// configure writes the configuration: default network settings, one slot, little memory beside the network's.
func (c *Cluster) configure(rpc int, tls bool) error {
	conf := map[string]any{
		"jobmanager.rpc.address": "127.0.0.1", "jobmanager.rpc.port": rpc, "jobmanager.bind-host": "127.0.0.1",
		"rest.port": c.rest, "rest.address": "127.0.0.1", "rest.bind-address": "127.0.0.1",
		"taskmanager.host": "127.0.0.1", "taskmanager.bind-host": "127.0.0.1", "taskmanager.numberOfTaskSlots": 1,
		"taskmanager.cpu.cores": 1.0, "taskmanager.memory.task.heap.size": "768m", "taskmanager.memory.task.off-heap.size": "0b",
		"taskmanager.memory.framework.heap.size": "128m", "taskmanager.memory.framework.off-heap.size": "128m",
		"taskmanager.memory.managed.size": "16m", "taskmanager.memory.network.min": "128m", "taskmanager.memory.network.max": "128m",
		"taskmanager.memory.jvm-metaspace.size": "256m", "taskmanager.memory.jvm-overhead.min": "192m", "taskmanager.memory.jvm-overhead.max": "192m",
		"io.tmp.dirs": c.dir, "web.submit.enable": false, "restart-strategy.type": "none",
		// for machines that are busy for a while; nothing of it is on the records' way
		"pekko.startup-timeout": "120 s", "pekko.ask.timeout": "120 s", "heartbeat.timeout": 180000,
	}
	if tls {
		conf["security.ssl.internal.enabled"] = true
		for _, store := range []string{"keystore", "truststore"} {
			conf["security.ssl.internal."+store] = c.home.keyStore()
			conf["security.ssl.internal."+store+"-password"] = storePassword
		}
		conf["security.ssl.internal.key-password"] = storePassword
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&b, "%s: %v\n", k, conf[k])
	}
	return os.WriteFile(filepath.Join(c.dir, "config.yaml"), []byte(b.String()), 0o644)
}

// java starts a JVM whose output goes to a log in the cluster's folder.
func (c *Cluster) java(log string, args ...string) (*exec.Cmd, error) {
	out, err := os.Create(filepath.Join(c.dir, log+".log"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	args = append(append(slices.Clone(javaOpens), "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-cp", c.home.classpath()), args...)
	cmd := exec.Command("java", args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = out, out, c.dir
	return cmd, cmd.Start()
}

func (c *Cluster) await(ctx context.Context, workers int) error {
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(300 * time.Millisecond) {
		var o struct {
			Workers int `json:"taskmanagers"`
			Slots   int `json:"slots-total"`
		}
		if c.get("/overview", &o) == nil && o.Workers == workers && o.Slots == workers {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cluster %s did not come up\n%s", c.name, c.logs())
		}
	}
}

// logs is the end of each process's log.
func (c *Cluster) logs() string {
	var all strings.Builder
	names, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
	for _, name := range names {
		b, _ := os.ReadFile(name)
		fmt.Fprintf(&all, "--- %s\n%s\n", filepath.Base(name), b[max(0, len(b)-3000):])
	}
	return all.String()
}

func (c *Cluster) get(path string, to any) error {
	r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", c.rest, path))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return json.NewDecoder(r.Body).Decode(to)
}

// Stop ends every process of the cluster and removes its folder.
func (c *Cluster) Stop() {
	all := c.workers
	if c.manager != nil {
		all = append(all, c.manager)
	}
	for _, p := range all {
		p.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range all {
		kill := time.AfterFunc(15*time.Second, func() { p.Process.Kill() })
		p.Wait()
		kill.Stop()
	}
	os.RemoveAll(c.dir)
}

// Job is one run of ShuffleJob.
type Job struct {
	Size, Parallelism int
	Part              string // rebalance, keyBy
	Warm, Measure     time.Duration
}

// Result is what its TaskManagers did in the measured window.
type Result struct {
	RecordsPerSecond, CPUNs float64
	Resident                int64 // of the larger TaskManager
}

// client starts the client of a job, which waits for the job's end.
func (c *Cluster) client(class string, args ...string) (*exec.Cmd, error) {
	if err := os.WriteFile(c.counters, make([]byte, 4096), 0o644); err != nil {
		return nil, err
	}
	return c.java("client", append([]string{"bench." + class, "--counter", c.counters, "--port", strconv.Itoa(c.rest)}, args...)...)
}

// Run runs the job for a while.
func (c *Cluster) Run(ctx context.Context, j Job) (Result, error) {
	secs := int((j.Warm + j.Measure).Seconds()) + 2
	cmd, err := c.client("ShuffleJob", "--secs", strconv.Itoa(secs), "--size", strconv.Itoa(j.Size), "--p", strconv.Itoa(j.Parallelism), "--part", j.Part)
	if err != nil {
		return Result{}, err
	}
	res, err := c.measure(ctx, j)
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return res, fmt.Errorf("%w\n%s", err, c.logs())
	}
	return res, cmd.Wait()
}

func (c *Cluster) measure(ctx context.Context, j Job) (res Result, err error) {
	for deadline := time.Now().Add(3 * time.Minute); c.count() == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return res, errors.New("the job does not start")
		}
	}
	time.Sleep(j.Warm)
	n, cpu, began := c.count(), c.cpu(), time.Now()
	time.Sleep(j.Measure)
	d := float64(c.count() - n)
	res.RecordsPerSecond = d / time.Since(began).Seconds()
	res.CPUNs = float64(c.cpu()-cpu) / d
	for _, w := range c.workers {
		res.Resident = max(res.Resident, resident(w.Process.Pid))
	}
	return res, ctx.Err()
}

// count is how many records all sinks have taken.
func (c *Cluster) count() (n uint64) {
	b, _ := os.ReadFile(c.counters)
	for i := 0; i+8 <= len(b); i += 64 {
		n += binary.LittleEndian.Uint64(b[i:])
	}
	return n
}

// cpu is the processor time of all TaskManagers.
func (c *Cluster) cpu() (d time.Duration) {
	for _, w := range c.workers {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Process.Pid))
		_, after, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(after); len(f) > 12 {
			for _, s := range f[11:13] {
				ticks, _ := strconv.Atoi(s)
				d += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
	}
	return d
}

func resident(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(b); m != nil {
		kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
		return kb << 10
	}
	return 0
}

// Latency runs the job at a rate, without a buffer timeout, and returns its percentiles.
func (c *Cluster) Latency(size, rate int, d time.Duration) (p50, p99 time.Duration, err error) {
	file := filepath.Join(c.dir, "latency")
	cmd, err := c.client("ShuffleJob", "--secs", strconv.Itoa(int(d.Seconds())), "--size", strconv.Itoa(size), "--p", "1", "--part", "rebalance",
		"--bt", "0", "--rate", strconv.Itoa(rate), "--lat", file)
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Wait(); err != nil {
		return 0, 0, err
	}
	b, err := os.ReadFile(file + ".0")
	if err != nil {
		return 0, 0, err
	}
	figure := func(name string) time.Duration {
		m := regexp.MustCompile(name + `_us=([\d.]+)`).FindSubmatch(b)
		if m == nil {
			return 0
		}
		us, _ := strconv.ParseFloat(string(m[1]), 64)
		return time.Duration(us * 1e3)
	}
	return figure("p50"), figure("p99"), nil
}

// NetworkBenchmark runs Flink's own micro benchmark of its network stack, in one JVM, and returns the best round.
func NetworkBenchmark(ctx context.Context, h Home) (recordsPerSecond, cpuNs float64, err error) {
	args := append(slices.Clone(javaOpens), "-Xmx1g", "-XX:MaxDirectMemorySize=512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", h.classpath(), "NetBench", "1", "1", "100")
	out, err := exec.CommandContext(ctx, "java", args...).Output()
	if err != nil {
		return 0, 0, fmt.Errorf("cannot run Flink's network benchmark: %w", err)
	}
	for _, m := range regexp.MustCompile(`rec/s=([\d.]+)M cpu_ns/rec=([\d.]+)`).FindAllSubmatch(out, -1) {
		rate, _ := strconv.ParseFloat(string(m[1]), 64)
		ns, _ := strconv.ParseFloat(string(m[2]), 64)
		if rate*1e6 > recordsPerSecond {
			recordsPerSecond, cpuNs = rate*1e6, ns
		}
	}
	if recordsPerSecond == 0 {
		return 0, 0, fmt.Errorf("cannot read Flink's network benchmark: it printed no figure: %s", out)
	}
	return recordsPerSecond, cpuNs, nil
}
