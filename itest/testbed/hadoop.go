package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// HadoopOptions say what a cluster is to be like.
type HadoopOptions struct {
	NodeManagers int               // 0: 2
	OnlyHDFS     bool              // NameNode and DataNode alone
	Unprivileged bool              // daemons and containers run as a user without rights, with umask 027, if the test is root's
	HA           bool              // two ResourceManagers, of which one is active, and a ZooKeeper
	TwoNameNodes bool              // of one HDFS, which is called hdfs://itest; the first is active
	SecondHDFS   bool              // a NameNode more, with an HDFS of its own, which is Hadoop.Second
	YARN         map[string]string // properties of yarn-site.xml beside the usual
	HDFS         map[string]string // of hdfs-site.xml
	Core         map[string]string // of core-site.xml
	Scheduler    map[string]string // of capacity-scheduler.xml, in place of the usual queues; names without yarn.scheduler.capacity.
	KDC          *KDC              // the cluster demands Kerberos of this realm
	DataTransfer string            // dfs.data.transfer.protection, with a KDC
	TLS          bool              // web services speak HTTPS only
	MutualTLS    bool              // and those of HDFS want a client's certificate
	KeyServer    bool              // Hadoop's key management server, for encryption zones
	HttpFS       bool

	KeyServerConf map[string]string // of kms-site.xml
}

// Hadoop is a real cluster on this machine: NameNode, DataNode, ResourceManager and NodeManagers, a JVM each. NodeManager i listens on 127.0.0.(1+i), so that
// each is a host of its own. There is no security: HDFS belongs to the user hdfs, YARN to the user yarn.
type Hadoop struct {
	ConfDir  string     // for clients and daemons
	HDFS     string     // the URI of the default file system
	Second   string     // and of the other, with SecondHDFS
	RMWeb    []string   // host:port of each ResourceManager's web service
	RMSched  []string   // and of its scheduler
	NameNode string     // host:port of its RPC; of the first
	Nodes    []string   // NodeIds
	CA       *Authority // of web services, with TLS

	KeyProvider string // the URI of the key server
	HttpFS      string // where HttpFS answers, to its paths' /webhdfs/v1

	gatewayAt map[string]string // host:port of key server and HttpFS, by their names as daemons

	bed     *Bed
	lib     string
	dir     string
	zk      string // host:port, with HA
	nameAt  map[string]nameNodeAt
	kdc     *KDC
	http    http.Client       // asks the web services
	web     http.RoundTripper // knows their authority; nil: there is none
	uid     uint32            // of daemons and containers; 0: the test's own
	daemons map[string]*daemon
}

// daemon is one JVM that can be started again.
type daemon struct {
	class  string
	user   string
	args   []string
	conf   string // folder of configuration of its own, before that of all
	lib    string // folder of its jars; "": that of all
	jvm    []string
	proc   *Process
	starts int
	killed bool // by the test
}

// Daemons of a cluster; NodeManagers are nm1, nm2, ….
const (
	NameNode        = "namenode"
	StandbyNameNode = "namenode2" // with TwoNameNodes; either may be active
	SecondNameNode  = "namenode3" // with SecondHDFS
	DataNode        = "datanode"
	ResourceManager = "rm1"
	StandbyManager  = "rm2" // with HA; either may be active
	zooKeeper       = "zookeeper"
)

// StartHadoop fetches and starts a cluster and waits until every part of it is ready.
func StartHadoop(t testing.TB, b *Bed, opt HadoopOptions) *Hadoop {
	t.Helper()
	Need(t, NeedJava)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	lib, err := HadoopJars(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if opt.NodeManagers == 0 {
		opt.NodeManagers = 2
	}
	h := &Hadoop{bed: b, lib: lib, dir: b.Dir("hadoop"), daemons: map[string]*daemon{}, kdc: opt.KDC, http: http.Client{Timeout: 10 * time.Second}}
	h.configure(t, opt)
	if h.kdc != nil && !opt.OnlyHDFS {
		h.openLogs(t)
	}
	if opt.Unprivileged && os.Getuid() == 0 {
		h.giveAway(t)
	}
	if opt.OnlyHDFS {
		maps.DeleteFunc(h.daemons, func(_ string, d *daemon) bool { return d.class != nameNodeClass && d.class != dataNodeClass })
		h.Nodes = nil
	}
	h.format(opt)
	t.Cleanup(h.stop)
	if opt.HA {
		h.launch(zooKeeper)
		b.Eventually("ZooKeeper accepts connections", time.Minute, func() error {
			c, err := net.DialTimeout("tcp", h.zk, time.Second)
			if err != nil {
				return err
			}
			return c.Close()
		})
	}
	for _, name := range slices.Sorted(maps.Keys(h.daemons)) {
		if name != zooKeeper {
			h.launch(name)
		}
	}
	if opt.TwoNameNodes {
		h.Activate(NameNode)
	}
	h.WaitReady()
	return h
}

// nobody is the user of that name on every Linux. Java wants one that the host knows.
const nobody = 65534

// giveAway makes a user without rights the owner of all that the cluster uses, which then runs as that user.
func (h *Hadoop) giveAway(t testing.TB) {
	t.Helper()
	h.uid = nobody
	lib := h.bed.Dir("hadoop/lib") // the cache may be where only its owner can look
	jars, err := os.ReadDir(h.lib)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jars {
		data, err := os.ReadFile(filepath.Join(h.lib, j.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(lib, j.Name()), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h.lib = lib
	if err := os.Chmod(filepath.Dir(h.dir), 0o711); err != nil {
		t.Fatal(err)
	}
	h.own(t, h.dir)
}

// own gives a folder with all in it to the user that the cluster runs as.
func (h *Hadoop) own(t testing.TB, dir string) {
	t.Helper()
	if h.uid == 0 {
		return
	}
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(h.uid), int(h.uid))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// properties is the content of a *-site.xml.
type properties map[string]string

func (p properties) xml() string {
	var s strings.Builder
	s.WriteString("<configuration>\n")
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&s, "<property><name>%s</name><value>%s</value></property>\n", k, p[k])
	}
	return s.String() + "</configuration>\n"
}

// configure chooses ports, writes the configuration and notes how to start each daemon.
func (h *Hadoop) configure(t testing.TB, opt HadoopOptions) {
	port := func() string { return fmt.Sprintf("127.0.0.1:%d", FreePort(t)) }
	core := properties{
		"hadoop.tmp.dir": h.dir + "/tmp", "hadoop.http.staticuser.user": "dr.who",
		"ipc.client.connect.max.retries": "5", "ipc.client.connect.retry.interval": "200",
	}
	hdfs := properties{
		"dfs.replication": "1", "dfs.datanode.data.dir": "file://" + h.dir + "/dn", "dfs.namenode.secondary.http-address": "127.0.0.1:0",
		"dfs.datanode.address": port(), "dfs.datanode.http.address": port(), "dfs.datanode.ipc.address": port(), "dfs.datanode.hostname": "127.0.0.1",
		"dfs.namenode.datanode.registration.ip-hostname-check": "false", "dfs.namenode.safemode.extension": "0", "dfs.heartbeat.interval": "1",
		"dfs.datanode.du.reserved": "0", "dfs.namenode.resource.du.reserved": "0",
	}
	yarn := properties{
		"yarn.resourcemanager.scheduler.class":                    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
		"yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200", "yarn.resourcemanager.connect.retry-interval.ms": "500",
		"yarn.resourcemanager.am.max-attempts": "4", "yarn.scheduler.minimum-allocation-mb": "64", "yarn.scheduler.maximum-allocation-mb": "4096",
		"yarn.resourcemanager.recovery.enabled": "true", "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
		"yarn.resourcemanager.store.class":                                              "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
		"yarn.resourcemanager.fs.state-store.uri":                                       "file://" + h.dir + "/rmstate",
		"yarn.nodemanager.resource.memory-mb":                                           "4096",
		"yarn.nodemanager.resource.cpu-vcores":                                          "8",
		"yarn.nodemanager.vmem-check-enabled":                                           "false",
		"yarn.nodemanager.resource.memory.enforced":                                     "false", // its default switches the memory check off
		"yarn.nodemanager.sleep-delay-before-sigkill.ms":                                "250",
		"yarn.nodemanager.env-whitelist":                                                "JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG,TZ",
		"yarn.node-attribute.fs-store.root-dir":                                         "file://" + h.dir + "/attributes", // its default is shared by all clusters of a host
		"yarn.node-labels.fs-store.root-dir":                                            "file://" + h.dir + "/labels",     // likewise
		"yarn.nodemanager.delete.debug-delay-sec":                                       "0",
		"yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100.0",
		"yarn.log-aggregation-enable":                                                   "true", "yarn.nodemanager.remote-app-log-dir": "/app-logs", "yarn.acl.enable": "true", "yarn.admin.acl": "yarn",
	}
	const q = "yarn.scheduler.capacity."
	scheduler := properties{
		q + "maximum-am-resource-percent": "1.0", q + "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
		q + "root.queues": "default,alt", q + "root.default.capacity": "70", q + "root.default.maximum-capacity": "100", q + "root.default.user-limit-factor": "10",
		q + "root.alt.capacity": "30", q + "root.alt.maximum-capacity": "100", q + "root.alt.user-limit-factor": "10", q + "node-locality-delay": "0",
		q + "root.acl_administer_queue": "yarn", q + "root.acl_submit_applications": "*",
	}
	if opt.Scheduler != nil {
		scheduler = properties{q + "resource-calculator": scheduler[q+"resource-calculator"], q + "node-locality-delay": "0",
			q + "root.acl_administer_queue": "yarn", q + "root.acl_submit_applications": "*"}
		for k, v := range opt.Scheduler {
			scheduler[q+k] = v
		}
	}
	h.nameNodes(core, hdfs, opt, port)
	h.managers(yarn, opt.HA, port)
	if opt.TLS {
		h.overTLS(t, opt, hdfs, yarn, port)
		h.http.Transport = h.web
	}
	if h.kdc != nil {
		h.secure(opt, core, hdfs, yarn)
	}
	h.gateways(t, opt, core, hdfs)
	maps.Copy(core, opt.Core)
	maps.Copy(hdfs, opt.HDFS)
	maps.Copy(yarn, opt.YARN)
	for name, p := range map[string]properties{"core-site.xml": core, "hdfs-site.xml": hdfs, "yarn-site.xml": yarn, "capacity-scheduler.xml": scheduler} {
		h.ConfDir = filepath.Dir(h.bed.File("hadoop/conf/"+name, p.xml()))
	}
	for _, id := range []string{ResourceManager, StandbyManager} {
		if d := h.daemons[id]; d != nil && opt.HA { // the web proxy does not look at the command line, and takes both addresses for its own
			mine := maps.Clone(yarn)
			mine["yarn.resourcemanager.ha.id"] = id
			d.conf = filepath.Dir(h.bed.File("hadoop/conf-"+id+"/yarn-site.xml", mine.xml()))
		}
	}
	h.bed.File("hadoop/conf/log4j.properties", `log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
`)
	// The jar has no web pages for HDFS, and the daemons only want the folders.
	h.bed.Dir("hadoop/conf/webapps/hdfs")
	h.bed.Dir("hadoop/conf/webapps/datanode")

	// A DataNode that finds no NameNode sleeps for 5 s; its connection may rather keep trying.
	h.daemons[DataNode] = &daemon{class: dataNodeClass, user: "hdfs",
		args: []string{"-Dipc.client.connect.max.retries=600", "-Dipc.client.connect.retry.interval=100"}}
	for i := 1; i <= opt.NodeManagers; i++ {
		host := fmt.Sprintf("127.0.0.%d", i+1)
		at := func() string { return fmt.Sprintf("%s:%d", host, FreePort(t)) }
		id := at()
		h.Nodes = append(h.Nodes, id)
		name := fmt.Sprintf("nm%d", i)
		h.daemons[name] = &daemon{class: nodeManagerClass, user: "yarn", args: []string{
			"-Dyarn.nodemanager.hostname=" + host, "-Dyarn.nodemanager.address=" + id, "-Dyarn.nodemanager.localizer.address=" + at(),
			"-Dyarn.nodemanager.webapp.address=" + at(), "-Dyarn.nodemanager.webapp.https.address=" + at(), "-Dyarn.nodemanager.collector-service.address=" + at(),
			"-Dyarn.nodemanager.local-dirs=" + h.bed.Dir("hadoop/"+name+"/local"), "-Dyarn.nodemanager.log-dirs=" + h.bed.Dir("hadoop/"+name+"/logs"),
		}}
	}
}

// managers configures the ResourceManagers.
func (h *Hadoop) managers(yarn properties, ha bool, port func() string) {
	const class, rm = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager", "yarn.resourcemanager."
	one := func(suffix string) {
		h.RMWeb, h.RMSched = append(h.RMWeb, port()), append(h.RMSched, port())
		i := len(h.RMWeb) - 1
		maps.Copy(yarn, properties{rm + "hostname" + suffix: "127.0.0.1", rm + "address" + suffix: port(), rm + "scheduler.address" + suffix: h.RMSched[i],
			rm + "resource-tracker.address" + suffix: port(), rm + "admin.address" + suffix: port(), rm + "webapp.address" + suffix: h.RMWeb[i]})
	}
	if !ha {
		one("")
		h.daemons[ResourceManager] = &daemon{class: class, user: "yarn"}
		return
	}
	h.zk = port()
	_, zkPort, _ := strings.Cut(h.zk, ":")
	zoo := h.bed.File("hadoop/zoo.cfg", "tickTime=500\ndataDir="+h.bed.Dir("hadoop/zk")+"\nclientPort="+zkPort+"\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n")
	h.daemons[zooKeeper] = &daemon{class: "org.apache.zookeeper.server.ZooKeeperServerMain", user: "yarn", args: []string{zoo}}
	maps.Copy(yarn, properties{rm + "ha.enabled": "true", rm + "cluster-id": "itest", rm + "ha.rm-ids": ResourceManager + "," + StandbyManager, "hadoop.zk.address": h.zk, "hadoop.zk.timeout-ms": "8000",
		rm + "zk-state-store.parent-path": "/rmstore", rm + "store.class": "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
		"yarn.client.failover-sleep-base-ms": "100", "yarn.client.failover-sleep-max-ms": "500"})
	for _, id := range []string{ResourceManager, StandbyManager} {
		one("." + id)
		h.daemons[id] = &daemon{class: class, user: "yarn"}
	}
}

// Active returns the name of the ResourceManager that is active.
func (h *Hadoop) Active() string {
	h.bed.t.Helper()
	name := ""
	h.bed.Eventually("a ResourceManager is active", 2*time.Minute, func() error {
		for i, web := range h.RMWeb {
			var info struct {
				ClusterInfo struct{ HAState string }
			}
			if err := h.getJSON(h.scheme()+web+"/ws/v1/cluster/info", &info); err == nil && info.ClusterInfo.HAState == "ACTIVE" {
				name = []string{ResourceManager, StandbyManager}[i]
				return nil
			}
		}
		return fmt.Errorf("none of %v is", h.RMWeb)
	})
	return name
}

func (h *Hadoop) java(class string, args ...string) []string {
	return h.javaOf(h.lib, h.ConfDir, class, args...)
}

func (h *Hadoop) javaOf(lib, conf, class string, args ...string) []string {
	return append([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.net.preferIPv4Stack=true",
		"--add-opens", "java.base/java.lang=ALL-UNNAMED", "-Dhadoop.log.dir=" + h.dir, "-Dyarn.log.dir=" + h.dir, h.krb5(),
		"-cp", conf + ":" + filepath.Join(lib, "*"), class}, args...)
}

func (h *Hadoop) env(user string) []string {
	if h.kdc != nil {
		return []string{"HADOOP_CONF_DIR=" + h.ConfDir, "KRB5CCNAME=" + h.cacheOf(user)}
	}
	return []string{"HADOOP_CONF_DIR=" + h.ConfDir, "HADOOP_USER_NAME=" + user}
}

// Tool runs one of Hadoop's command line classes as a user and returns what it printed.
func (h *Hadoop) Tool(user, class string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", h.java(class, args...)...)
	cmd.Env = append(os.Environ(), h.env(user)...)
	unprivileged(cmd, h.uid)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("cannot run %s: %w", class, err)
	}
	return string(out), nil
}

func (h *Hadoop) launch(name string) {
	d := h.daemons[name]
	d.starts++
	d.killed = false
	conf := h.ConfDir
	if d.conf != "" {
		conf = d.conf + ":" + conf
	}
	lib := h.lib
	if d.lib != "" {
		lib = d.lib
	}
	d.proc = h.bed.Start(Spec{Name: fmt.Sprintf("%s-%d", name, d.starts), Path: "java", Args: append(slices.Clone(d.jvm), h.javaOf(lib, conf, d.class, d.args...)...), Env: h.env(d.user), Dir: h.dir, UID: h.uid})
}

// Daemon returns the process of a daemon.
func (h *Hadoop) Daemon(name string) *Process { return h.daemons[name].proc }

// Kill kills a daemon as kill -9 does. A NodeManager's containers live on.
func (h *Hadoop) Kill(name string) {
	h.daemons[name].killed = true
	h.daemons[name].proc.Kill()
}

// Start starts a daemon again after Kill, with properties beside its usual ones for this time.
func (h *Hadoop) Start(name string, extra ...string) {
	d := h.daemons[name]
	usual := d.args
	for _, p := range extra {
		d.args = append(slices.Clip(d.args), "-D"+p)
	}
	h.launch(name)
	d.args = usual
}

// WaitReady waits until every daemon is there, HDFS can be written and all nodes have registered.
func (h *Hadoop) WaitReady() {
	h.bed.t.Helper()
	h.bed.Eventually("the Hadoop cluster is ready", 8*time.Minute, func() error {
		for name, d := range h.daemons {
			if !d.proc.Running() && !d.killed {
				h.bed.t.Fatalf("%s ended:\n%s", name, d.proc.Tail(30))
			}
		}
		if n, err := h.activeNodes(); n != len(h.Nodes) {
			return fmt.Errorf("%d of %d NodeManagers have registered (%w)", n, len(h.Nodes), err)
		}
		if err := h.gatewaysReady(); err != nil {
			return err
		}
		return h.hdfsReady()
	})
}

// activeNodes is how many NodeManagers the active ResourceManager has.
func (h *Hadoop) activeNodes() (n int, err error) {
	for _, web := range h.RMWeb {
		var m struct {
			ClusterMetrics struct{ ActiveNodes int }
		}
		if err = h.getJSON(h.scheme()+web+"/ws/v1/cluster/metrics", &m); err == nil && m.ClusterMetrics.ActiveNodes > 0 {
			return m.ClusterMetrics.ActiveNodes, nil
		}
	}
	return 0, err
}

// jmx asks a NameNode for one of its beans.
func (h *Hadoop) jmx(name, bean string, out any) error {
	return h.getJSON(h.scheme()+h.nameAt[name].web+"/jmx?qry=Hadoop:service=NameNode,name="+bean, out)
}

func (h *Hadoop) getJSON(url string, out any) error {
	resp, err := h.http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<22))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, out)
}

// stop kills the daemons and the containers that outlive them, which are in sessions of their own.
func (h *Hadoop) stop() {
	for _, d := range h.daemons {
		if d.proc != nil {
			d.proc.Kill()
		}
	}
	for _, pid := range h.Containers() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Containers returns the processes that run in containers of the cluster.
func (h *Hadoop) Containers() []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, l := range links {
		cwd, err := os.Readlink(l)
		var pid int
		if err != nil || !strings.HasPrefix(cwd, h.dir+"/nm") || !strings.Contains(cwd, "/local/") {
			continue
		}
		if _, err := fmt.Sscanf(l, "/proc/%d/cwd", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
