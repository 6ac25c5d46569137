package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// variant is a way to run Flink.
type variant string

// Flink's libraries are on the cluster before. Its ApplicationMaster sleeps a whole heartbeat before it asks for containers: 5 s, or tuned 1 s.
const (
	provided variant = "provided"
	tuned    variant = "tuned"
)

func (v variant) name() string { return "Flink, " + string(v) }

func variantsOf(names string) (vs []variant, err error) {
	if names == "none" {
		return nil, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		v := variant(strings.TrimSpace(name))
		if v != provided && v != tuned {
			return nil, fmt.Errorf("no such variant of Flink: %q; there are %s and %s", name, provided, tuned)
		}
		vs = append(vs, v)
	}
	return vs, nil
}

// javaOpens is what Flink needs of a JDK 17.
const javaOpens = `--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED --add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED ` +
	`--add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.net=ALL-UNNAMED --add-opens=java.base/java.io=ALL-UNNAMED ` +
	`--add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.lang.reflect=ALL-UNNAMED ` +
	`--add-opens=java.base/java.text=ALL-UNNAMED --add-opens=java.base/java.time=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED ` +
	`--add-opens=java.base/java.util.concurrent=ALL-UNNAMED --add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED ` +
	`--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED`

// libDir is where Flink's libraries are in HDFS.
func (c *cluster) libDir() string { return c.fs.Home() + "/flink-lib" }

// provide puts Flink's libraries where every node may share them.
func (c *cluster) provide(home flinkHome) error {
	jars, err := os.ReadDir(home.lib())
	if err != nil {
		return err
	}
	if err := errors.Join(c.fs.RemoveAll(c.libDir()), c.fs.MkdirAll(c.libDir(), 0o755)); err != nil {
		return err
	}
	for _, jar := range jars {
		open := func() (io.ReadCloser, error) { return os.Open(filepath.Join(home.lib(), jar.Name())) }
		if _, err := c.fs.Upload(context.Background(), path.Join(c.libDir(), jar.Name()), 0o755, open, nil); err != nil {
			return err
		}
	}
	return nil
}

// configure writes the configuration of Flink's client, which is the cluster's too.
func (c *cluster) configure(home flinkHome, v variant) (dir string, err error) {
	conf := map[string]any{
		"jobmanager.memory.process.size": "1024m", "taskmanager.memory.process.size": "1024m", "taskmanager.numberOfTaskSlots": 2,
		"parallelism.default": parallelism, "env.java.opts.all": javaOpens, "yarn.provided.lib.dirs": c.uri + c.libDir(),
	}
	if v == tuned {
		conf["yarn.heartbeat.interval"] = 1
	}
	dir = filepath.Join(c.dir, "flink-"+string(v))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&b, "%s: %v\n", k, conf[k])
	}
	logger, err := os.ReadFile(filepath.Join(home.dir, "src", "log4j.properties"))
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(b.String()), 0o644), os.WriteFile(filepath.Join(dir, "log4j.properties"), logger, 0o644))
}

// news is what a job's processes tell, with the moment it came.
type news struct {
	l  net.Listener
	wg sync.WaitGroup

	mu    sync.Mutex
	heard map[string][]time.Time
}

func listen(host string) (*news, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	n := &news{l: l, heard: map[string][]time.Time{}}
	n.wg.Go(n.accept)
	return n, nil
}

func (n *news) accept() {
	for {
		conn, err := n.l.Accept()
		if err != nil {
			return // closed
		}
		n.wg.Go(func() {
			defer conn.Close()
			if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				n.note(strings.TrimSpace(line))
			}
		})
	}
}

func (n *news) note(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard[what] = append(n.heard[what], time.Now())
}

func (n *news) of(what string) []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.heard[what])
}

func (n *news) close() {
	n.l.Close()
	n.wg.Wait()
}

// flink starts a job in application mode and kills it afterwards. What its script of bash and a JVM do before the client's JVM starts, half a second, is left out.
func (c *cluster) flink(ctx context.Context, home flinkHome, v variant, settle time.Duration) (r result, err error) {
	dir, err := c.configure(home, v)
	if err != nil {
		return r, err
	}
	n, err := listen(c.host)
	if err != nil {
		return r, err
	}
	defer n.close()
	_, port, _ := net.SplitHostPort(n.l.Addr().String())
	c.n++
	tag := fmt.Sprintf("bench-%d-%d", os.Getpid(), c.n)
	log := filepath.Join(dir, tag+".log")
	args := append(strings.Fields(javaOpens), "-Dlog.file="+log, "-Dlog4j.configurationFile=file:"+filepath.Join(dir, "log4j.properties"),
		"-cp", strings.Join([]string{filepath.Join(home.lib(), "*"), c.confDir, filepath.Join(c.jars, "*")}, string(os.PathListSeparator)),
		"org.apache.flink.client.cli.CliFrontend", "run", "-t", "yarn-application", "-Dyarn.tags="+tag, home.job(), c.host, port, strconv.Itoa(parallelism), "1000")
	var out output
	cmd := exec.CommandContext(ctx, "java", args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.env("FLINK_CONF_DIR="+dir), dir, &out, &out
	w := c.watch()
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	w.follow(cmd.Process.Pid)
	s := &sighting{c: c, tag: tag, n: n}
	err = s.watch(ctx)
	if err == nil {
		err = pause(ctx, settle)
	}
	r.memory = w.resident(s.id)
	w.end()
	_ = cmd.Process.Kill() // unless it has ended
	_ = cmd.Wait()
	if s.id != (yarnid.Application{}) {
		err = errors.Join(err, c.end(ctx, s.id), c.fs.RemoveAll(path.Join(c.fs.Home(), ".flink", s.id.String())))
	}
	if err != nil {
		text, _ := os.ReadFile(log)
		return r, fmt.Errorf("%w\n%s\n%s", err, out.String(), text[max(0, len(text)-5000):])
	}
	r.phases = s.phases(start)
	r.first = r.phases[len(r.phases)-1].at
	r.spent = w.spent(s.id, start.Add(r.first))
	return r, nil
}

// sighting is what is seen of an application of Flink's from outside.
type sighting struct {
	c   *cluster
	tag string
	n   *news

	id                             yarnid.Application
	submitted, launched, up, given time.Time
}

// watch looks until the first record.
func (s *sighting) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for len(s.n.of("first")) == 0 {
		if err := s.look(ctx); err != nil {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return s.look(ctx)
}

func (s *sighting) look(ctx context.Context) error {
	if s.id == (yarnid.Application{}) {
		list, err := s.c.rm.Apps(ctx, yarnclient.Filter{Tags: []string{s.tag}})
		if err != nil || len(list) == 0 {
			return err
		}
		if s.id, err = yarnid.ParseApplication(list[0].ID); err != nil {
			return err
		}
		s.submitted = list[0].Started
	}
	a, err := s.c.rm.App(ctx, s.id)
	if err != nil {
		return err
	}
	if a.Ended() {
		return fmt.Errorf("%s is %s: %s", s.id, a.State, a.Diagnostics)
	}
	s.launched = a.Launched
	if s.up.IsZero() && a.State == yarnclient.StateRunning {
		s.up = time.Now()
	}
	if s.given.IsZero() && a.Containers >= 1+parallelism/2 {
		s.given = time.Now()
	}
	return nil
}

func (s *sighting) phases(start time.Time) (ps []phase) {
	last := func(what string) time.Time {
		all := s.n.of(what)
		if len(all) == 0 {
			return time.Time{}
		}
		return all[len(all)-1]
	}
	for _, p := range []struct {
		name string
		at   time.Time
	}{{submitted, s.submitted}, {"ApplicationMaster launched", s.launched}, {amStarted, last("main")}, {registered, s.up}, {granted, s.given}, {deployed, last("open")}, {firstOut, s.n.of("first")[0]}} {
		if !p.at.IsZero() {
			ps = append(ps, phase{p.name, p.at.Sub(start)})
		}
	}
	return ps
}
