package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/yarn"
	"github.com/heddle-stream/heddle/appmaster/web"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/ctl"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
	"github.com/heddle-stream/heddle/internal/lastlines"
	"github.com/heddle-stream/heddle/internal/ship"
	"github.com/heddle-stream/heddle/netstack"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/amrm"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/nm"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// container is what a role finds in a container of YARN's.
type container struct {
	id    yarnid.Container
	host  string // of its node, as others call it
	creds token.Credentials
}

func (s *session) openContainer() (container, error) {
	var k container
	var err error
	if k.id, err = yarnid.ParseContainer(s.env.Getenv("CONTAINER_ID")); err != nil {
		return k, fmt.Errorf("cannot tell which container this is by CONTAINER_ID: %w", err)
	}
	if k.host = s.env.Getenv("NM_HOST"); k.host == "" {
		return k, errors.New("cannot tell this node's name: NM_HOST is not set")
	}
	data, err := os.ReadFile(s.env.Getenv("HADOOP_TOKEN_FILE_LOCATION"))
	if err != nil {
		return k, fmt.Errorf("cannot read the container's credentials: %w", err)
	}
	if k.creds, err = token.Parse(data); err != nil {
		return k, fmt.Errorf("cannot read the container's credentials: %w", err)
	}
	return k, nil
}

// yarnMaster is the ApplicationMaster in a container.
type yarnMaster struct {
	// Immutable.
	s       *session
	k       container
	app     *application
	launch  launch
	driver  *yarn.Driver
	tokens  *tokenKeeper // nil: the cluster needs none
	h       *hadoop
	callers *tickets
	files   appDir      // where the client's files are
	https   *ssl.Master // nil: its pages are served by HTTP
}

// runYARNMaster is the role of the ApplicationMaster in a container of YARN's.
func (s *session) runYARNMaster(ctx context.Context, path string) error {
	k, err := s.openContainer()
	if err != nil {
		return err
	}
	m := &yarnMaster{s: s, k: k}
	if err := m.open(path); err != nil {
		return err
	}
	fitProcess(m.launch.MemoryMB, int64(m.app.conf.Int("appmaster.cpu")), m.launch.VmemRatio)
	defer m.h.close()
	if text := m.h.inClear(m.app.conf); text != "" {
		m.app.log.Warn(text)
	}
	if n := k.id.Attempt.Number; n > 1 {
		m.app.log.Warn("an earlier attempt of this application failed: the job starts afresh", "attempt", n)
	}
	return m.run(ctx)
}

// open reads the application's files and secrets.
func (m *yarnMaster) open(path string) error {
	m.files = appDir{m.k.id.Attempt.App.String(), filepath.Join(path, bundleDir)}
	var sec secrets
	if err := json.Unmarshal(m.k.creds.Secret(appSecret), &sec); err != nil {
		return errors.New("the container's credentials hold no secrets of an application: heddle did not submit it")
	}
	c, err := restore(m.files, sec)
	if err != nil {
		return err
	}
	if err := m.files.readJSON(launchFile, &m.launch); err != nil {
		return err
	}
	m.h = &hadoop{user: m.launch.User, staging: c.Text("yarn.staging-dir")}
	xml, err := os.ReadFile(m.files.file(hadoopFile))
	if err != nil {
		return fmt.Errorf("cannot read Hadoop's configuration: %w", err)
	}
	if m.h.conf, err = hconf.Read(hadoopFile, xml, nil); err != nil {
		return err
	}
	if m.h.id, err = containerIdentity(m.h.conf, m.h.user, m.k.creds); err != nil {
		return err
	}
	useHDFS(m.h.conf, m.h.id)
	useKafkaTokens(m.k.creds)
	if m.h.rm, err = resourceManagers(m.h.conf, m.h.id, yarnclient.REST, nil); err != nil {
		return err
	}
	m.app = &application{dir: appDir{m.files.id, path}, conf: c, sec: sec, log: m.s.settle(c)}
	m.app.job, err = m.s.roleJob(m.files, c)
	return err
}

// restore reads back the configuration that the client resolved.
func restore(dir appDir, sec secrets) (*conf.Config, error) {
	r, err := registry()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(dir.file(confFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read the application's configuration: %w", err)
	}
	return restoreConf(r, ".", dir.file(confFile), data, sec.Options)
}

// run runs the application and tells YARN how it went, unless YARN ended this attempt or the container was told to go: then another attempt may follow.
func (m *yarnMaster) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	result, err := m.master(ctx, func(err error) { cancel(err) })
	if m.driver == nil {
		return failed(err)
	}
	if why := context.Cause(ctx); why != nil {
		m.driver.Close()
		m.cancelTokens(false)
		m.app.log.Warn("leaving without a word to YARN, which ends this attempt", "reason", why)
		return &exitError{exitCancelled, fmt.Errorf("this attempt of the application was ended: %w", why), nil}
	}
	status, text := finalStatus(result, err)
	if c := m.app.conf; c.Int("history.max-count") > 0 {
		text += "\nWhat it did: heddle history " + m.app.dir.id
	}
	bye, done := context.WithTimeout(context.Background(), 5*time.Minute)
	defer done()
	if ferr := m.driver.Finish(bye, status, text); ferr != nil {
		return unreachable(ferr)
	}
	m.app.log.Info("unregistered", "status", status) // the diagnostics may show a record, which is not for logs
	m.clean()
	m.cancelTokens(true)
	if err != nil {
		return failed(err)
	}
	return nil // how the job went is told; a failed container would be another failure
}

// tokensThere has tokens that were handed in looked at; nil where none are needed.
func (m *yarnMaster) tokensThere() func() {
	if m.tokens == nil {
		return nil
	}
	return m.tokens.hint
}

// cancelTokens ends tokens that only this attempt and its agents have used, and, after the last attempt, those of the submission that YARN does not end.
func (m *yarnMaster) cancelTokens(last bool) {
	if m.tokens == nil {
		return
	}
	m.tokens.end(context.Background(), last) // it takes no longer than cancelLimit
}

// clean removes the application's folder from HDFS.
func (m *yarnMaster) clean() {
	store, f, err := m.h.openStore()
	if err == nil {
		err = errors.Join(store.RemoveApplication(m.app.dir.id), f.Close())
	}
	if err != nil {
		m.app.log.Warn("cannot remove the application's files from HDFS", "err", err)
	}
}

// logBar begins the lines of a log in what YARN is told of an application's end.
const logBar = "  | "

// finalStatus is how the application ended, for YARN.
func finalStatus(result appmaster.Result, err error) (pb.FinalApplicationStatusProto, string) {
	f := figuresOf(&appmaster.Snapshot{Vertices: result.Vertices})
	counts := fmt.Sprintf("%s records in, %s out", number(f.in), number(f.out))
	switch {
	case err != nil:
		return pb.FinalApplicationStatusProto_APP_FAILED, "the job could not be run: " + err.Error()
	case result.State == "finished":
		return pb.FinalApplicationStatusProto_APP_SUCCEEDED, fmt.Sprintf("the job %s finished: %s in %s", result.Job, counts, result.Ended.Sub(result.Started).Round(time.Millisecond))
	case result.State == "canceled":
		text := "the job " + result.Job + " was cancelled: " + counts
		if result.Cause != nil {
			text += "; " + result.Cause.Message
		}
		return pb.FinalApplicationStatusProto_APP_KILLED, text
	}
	text := fmt.Sprintf("the job %s %s", result.Job, result.State)
	if c := result.Cause; c != nil {
		text += ": "
		if where := place(c); where != "" {
			text += where + ": "
		}
		text += printable(c.Message)
		for _, line := range c.LastLogs {
			text += "\n" + logBar + printable(line)
		}
	}
	return pb.FinalApplicationStatusProto_APP_FAILED, text
}

// master wires the ApplicationMaster and runs it. over is called when YARN ends this attempt.
func (m *yarnMaster) master(ctx context.Context, over func(error)) (none appmaster.Result, err error) {
	c := m.app.conf
	control, pages, err := listenAll(c)
	if err != nil {
		return none, err
	}
	address := func(l net.Listener) string {
		return net.JoinHostPort(m.k.host, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	m.callers = &tickets{attempt: m.k.id.Attempt, short: m.h.shortName}
	if m.https, err = m.openHTTPS(); err == nil {
		m.tokens, err = m.newTokenKeeper()
		m.tokens.catchUp(ctx, time.Now())
	}
	at := m.scheme() + "://" + address(pages) + "/"
	if err == nil {
		m.driver, err = m.newDriver(pages, at, over)
	}
	if err != nil {
		return none, errors.Join(err, control.Close(), pages.Close())
	}
	plan, err := compile(m.app.job, c)
	if err == nil && plan.Fingerprint != m.app.sec.Job {
		err = errOtherGraph
	}
	if err != nil {
		return none, errors.Join(err, control.Close(), pages.Close())
	}
	front, err := web.New(web.Config{Listener: pages, Token: m.app.sec.Token, Logger: m.app.log, Options: m.app.options, Advertise: m.k.host, Proxy: m.proxy(), Certificate: m.certificate(), Ticket: m.callers.of, TokensThere: m.tokensThere()})
	if err != nil {
		return none, errors.Join(err, control.Close(), pages.Close())
	}
	cfg := m.app.masterConfig(plan, m.driver, front, control)
	cfg.Agents.ExitWait = exitWait
	cfg.Advertise, cfg.Attempt = address(control), uint32(m.k.id.Attempt.Number-1)
	defer m.announce(ctx, at, cfg.Advertise)()
	if m.tokens != nil {
		cfg.Tokens = m.tokens.out
		ctx, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { m.tokens.run(ctx) })
		defer wg.Wait()
		defer stop()
	}
	keeper := m.app.keeper(m.h.shelf())
	keeper.Base.User, keeper.Base.Queue, keeper.Follows = m.h.user, c.Text("yarn.queue"), true
	return m.s.runTraced(ctx, m.app, cfg, keeper)
}

// exitWait is how long the loss of an agent that is gone is held back for YARN to say why: a heartbeat of its node, one of ours, and its last log lines.
const exitWait = 4 * time.Second

// newDriver starts agents of this very program, with the same arguments, from the files that YARN made of it for this container. at is the address of our pages.
func (m *yarnMaster) newDriver(pages net.Listener, at string, over func(error)) (*yarn.Driver, error) {
	c := m.app.conf
	tokens := m.k.creds.Of(token.KindAMRM)
	if len(tokens) != 1 {
		return nil, fmt.Errorf("the container's credentials hold %d tokens for the ResourceManager, want 1", len(tokens))
	}
	rms, err := m.h.conf.RMs()
	if err != nil {
		return nil, err
	}
	var scheduler []string
	for _, rm := range rms {
		scheduler = append(scheduler, rm.Scheduler)
	}
	protection, err := m.h.conf.Protection()
	if err != nil {
		return nil, err
	}
	constraints, err := m.h.conf.String("yarn.resourcemanager.placement-constraints.handler")
	if err != nil {
		return nil, err
	}
	custom, err := customResources(c, "agent.resources")
	if err != nil {
		return nil, err
	}
	resources, err := ship.DecodeResources(m.s.env.Getenv(resourcesVar))
	if err != nil {
		return nil, err
	}
	env := handedOn(m.s.env.Environ)
	maps.Copy(env, configured(c))
	env["HEDDLE_ROLE"], env["HEDDLE_APP_DIR"], env[driverVar], env[vmemVar] = "agent", "$PWD", "yarn", fmt.Sprint(m.launch.VmemRatio)
	var fresh func() token.Credentials
	if m.tokens != nil {
		fresh = m.tokens.current
	}
	return yarn.New(yarn.Config{
		Fresh:     fresh,
		Master:    amrm.Config{Addrs: scheduler, Token: tokens[0], Host: m.k.host, Port: pages.Addr().(*net.TCPAddr).Port, TrackingURL: at, Protection: protection, Expiry: m.h.masterExpiry()},
		ClientKey: m.callers.learn,
		Nodes:     nm.Config{Protection: protection},
		MemoryMB:  c.Bytes("agent.memory") >> 20, VCores: int32(c.Int("agent.cpu")), Custom: custom, Label: c.Text("yarn.node-label"), Spread: c.Text("slot.selection") == "evenly-spread",
		PerNode: c.Int("yarn.agents-per-node"), Constrain: constraints == "scheduler", Hosts: c.List("yarn.nodes"), Racks: c.List("yarn.racks"), Strict: c.Bool("yarn.strict-locality"),
		Command: m.launch.Command, Env: env, Resources: resources, Credentials: withoutApp(m.k.creds),
		Files: m.agentFiles(), Logs: m.lastLogs, Over: over,
		SizeEnv: func(memoryMB int64, cores int32) map[string]string {
			return map[string]string{containerVar: fmt.Sprint(memoryMB), coresVar: fmt.Sprint(cores)}
		},
	})
}

// withoutApp is what agents may know of the master's credentials.
func withoutApp(c token.Credentials) token.Credentials {
	out := c
	out.Secrets = nil
	for _, s := range c.Secrets {
		if s.Name != appSecret && s.Name != kerberosSecret && !strings.HasPrefix(s.Name, ssl.MasterSecrets) {
			out.Secrets = append(out.Secrets, s)
		}
	}
	return out
}

// agentFiles are what agents get of the application's files, with their secrets.
func (m *yarnMaster) agentFiles() map[string]string {
	files := map[string]string{confFile: m.files.file(confFile), hadoopFile: m.files.file(hadoopFile)}
	if _, err := os.Stat(m.files.file(jobFile)); err == nil {
		files[jobFile], files[nameFile] = m.files.file(jobFile), m.files.file(nameFile)
	}
	return files
}

// proxy is YARN's web proxy, which stands at the ResourceManagers or alone, and whom it lets in: on a cluster that has no access control, everybody,
// as everywhere else there; else the application's user and those whom the options name.
func (m *yarnMaster) proxy() *web.Proxy {
	c := m.app.conf
	pages := m.h.proxyPages()
	p := &web.Proxy{Hosts: hostsOf(pages), Pages: pages, Origins: c.List("web.origins")}
	if m.https != nil {
		p.Certificates = m.https.Proxy
	}
	guarded, err := m.h.conf.Bool("yarn.acl.enable", false)
	book := &groupBook{ask: m.h.groups, log: m.app.log}
	p.Modify = func(user string) bool {
		return err == nil && !guarded || user == m.h.user || named(c.Text("yarn.acl-modify"), user, book.of)
	}
	p.View = func(user string) bool { return named(c.Text("yarn.acl-view"), user, book.of) }
	return p
}

// lastLogs are the last lines that an agent wrote: from its file, where it ran on this node, else by asking the NodeManager, whose web service lets nobody in
// who has no more than tokens.
func (m *yarnMaster) lastLogs(ctx context.Context, g book.Grant) []string {
	const lines, bytes = 10, 16 << 10
	if host, _, err := net.SplitHostPort(g.Node); err == nil && host == m.k.host {
		if found := siblingLog(m.s.env.Getenv("LOG_DIRS"), m.k.id.String(), g.Container.String(), lines); len(found) > 0 {
			return found
		}
	}
	if m.h.id.Secure() && m.h.id.Login() == nil {
		m.app.log.Info("an agent's last log lines are not told: its NodeManager shows them to nobody without a ticket, and there is no keytab here; heddle logs shows them", "container", g.Container)
		return nil
	}
	text, err := m.h.rm.Web().ContainerLog(ctx, g.HTTP, g.Container, "stderr", bytes)
	if err != nil {
		m.app.log.Info("cannot get an agent's last log lines", "container", g.Container, "err", err)
		return nil
	}
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) == 1 && all[0] == "" {
		return nil
	}
	return all[max(0, len(all)-lines):]
}

// siblingLog are the last lines of the standard error of another container of this application on this node. dirs are the folders of our own log files: each
// container has one of its name beside ours on one of the node's disks.
func siblingLog(dirs, own, other string, lines int) []string {
	for dir := range strings.SplitSeq(dirs, ",") {
		if filepath.Base(dir) != own {
			continue
		}
		if found := lastlines.Of(filepath.Join(filepath.Dir(dir), other, "stderr"), lines); len(found) > 0 {
			return found
		}
	}
	return nil
}

// runYARNAgent is the role of an agent in a container of YARN's.
func (s *session) runYARNAgent(ctx context.Context) error {
	k, err := s.openContainer()
	if err != nil {
		return err
	}
	sec, err := yarn.SecretsOf(s.env.Getenv("HADOOP_TOKEN_FILE_LOCATION"))
	if err != nil {
		return err
	}
	r, err := registry()
	if err != nil {
		return err
	}
	c, err := restoreConf(r, ".", confFile, sec.Files[confFile], sec.Options)
	if err != nil {
		return err
	}
	hc, err := hconf.Read(hadoopFile, sec.Files[hadoopFile], nil)
	if err != nil {
		return err
	}
	id, err := containerIdentity(hc, s.env.Getenv("USER"), k.creds)
	if err != nil {
		return err
	}
	useHDFS(hc, id)
	useKafkaTokens(k.creds)
	memory, _ := strconv.ParseInt(s.env.Getenv(containerVar), 10, 64)
	cores, _ := strconv.ParseInt(s.env.Getenv(coresVar), 10, 64)
	ratio, _ := strconv.ParseFloat(s.env.Getenv(vmemVar), 64)
	fitProcess(memory, cores, ratio)
	app := &application{conf: c, log: s.settle(c), job: s.job}
	if text, ok := sec.Files[jobFile]; ok {
		name := string(sec.Files[nameFile])
		if name == "" {
			name = filepath.Base(jobFile)
		}
		if app.job, err = parseJob(name, text, c); err != nil {
			return err
		}
	} else if s.job == nil {
		return errors.New("the application has neither a job file nor a program that is the job")
	}
	sec.Files = nil
	cfg := yarnAgentConfig(sec, k, memory)
	cfg.Tokens = func(b []byte) error {
		fresh, err := token.Parse(b)
		if err == nil {
			id.Replace(fresh)
			useKafkaTokens(fresh)
		}
		return err
	}
	return s.runAgent(ctx, app, cfg)
}

// yarnAgentConfig is how an agent in a container joins.
func yarnAgentConfig(sec ctl.AgentSecrets, k container, memoryMB int64) agent.Config {
	return agent.Config{Secrets: sec, Host: k.host, MemoryMB: memoryMB, Exchange: netstack.Config{Advertise: k.host}}
}
