package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// cluster is where jobs are started.
type cluster struct {
	user    string
	confDir string
	jars    string // Hadoop's, for Flink's client
	exe     string // the heddle command
	dir     string // of this benchmark's own files
	host    string // where tasks can tell us something
	fs      *hdfs.FS
	uri     string // of the default file system
	rm      *yarnclient.Client
	daemons map[string]int // process ids by name, of a cluster of our own
	n       int            // runs so far
}

// openCluster takes the cluster of HADOOP_CONF_DIR, or starts one.
func openCluster(ctx context.Context, o *owner) (_ *cluster, err error) {
	bed := testbed.New(o)
	c := &cluster{user: os.Getenv("HADOOP_USER_NAME"), confDir: os.Getenv("HADOOP_CONF_DIR"), dir: bed.Dir("bench"), host: "127.0.0.1"}
	if c.user == "" {
		c.user = "bench"
	}
	if c.jars, err = testbed.HadoopJars(ctx); err != nil {
		return nil, err
	}
	c.exe = testbed.BuildHeddle(o, bed)
	own := c.confDir == ""
	if own {
		c.start(o, bed)
	}
	return c, c.connect(own)
}

// start starts a cluster whose containers find Hadoop's jars, which Flink needs there.
func (c *cluster) start(o *owner, bed *testbed.Bed) {
	fmt.Println("starting Hadoop", testbed.HadoopVersion)
	h := testbed.StartHadoop(o, bed, testbed.HadoopOptions{YARN: map[string]string{"yarn.application.classpath": "$HADOOP_CONF_DIR," + filepath.Join(c.jars, "*")}})
	c.confDir, c.daemons = h.ConfDir, map[string]int{}
	for _, name := range []string{testbed.NameNode, testbed.DataNode, testbed.ResourceManager, "nm1", "nm2"} {
		c.daemons[name] = h.Daemon(name).Pid()
	}
}

func (c *cluster) connect(own bool) error {
	conf, err := hconf.Load(hconf.Options{Dir: c.confDir, Need: []string{"core-site.xml", "yarn-site.xml"}})
	if err != nil {
		return err
	}
	if secure, err := conf.Kerberos(); err != nil || secure {
		return errors.Join(err, errors.New("cannot measure on a cluster with Kerberos"))
	}
	rms, err := conf.RMs()
	if err != nil {
		return err
	}
	var bases []string
	for _, rm := range rms {
		bases = append(bases, "http://"+rm.Web)
	}
	if c.rm, err = yarnclient.New(yarnclient.Config{Bases: bases, Auth: yarnclient.UserName(c.user)}); err != nil {
		return err
	}
	def, err := conf.DefaultFS()
	if err != nil {
		return err
	}
	c.uri = def.URI
	if own {
		err = makeHome(def.NameNodes, c.user)
	} else {
		c.host, err = towards(rms[0].Web)
	}
	if err != nil {
		return err
	}
	c.fs, err = hdfs.Open(hdfs.Config{NameNodes: def.NameNodes, User: c.user})
	return err
}

// makeHome makes the folders that applications need, as HDFS's own user.
func makeHome(nameNodes []string, user string) error {
	super, err := hdfs.Open(hdfs.Config{NameNodes: nameNodes, User: "hdfs"})
	if err != nil {
		return err
	}
	defer super.Close()
	home := "/user/" + user
	return errors.Join(super.MkdirAll(home, 0o755), super.Chown(home, user, user), super.MkdirAll("/app-logs", 0o777), super.Chmod("/app-logs", 0o777|fs.ModeSticky))
}

// towards is our address for hosts near another's.
func towards(addr string) (string, error) {
	conn, err := net.Dial("udp", addr) // sends nothing
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String(), nil
}

func (c *cluster) close() {
	if c.fs != nil {
		_ = c.fs.Close()
	}
	if c.rm != nil {
		c.rm.Close()
	}
}

// env is what clients need.
func (c *cluster) env(more ...string) []string {
	return append(append(os.Environ(), "HADOOP_CONF_DIR="+c.confDir, "HADOOP_USER_NAME="+c.user), more...)
}

// end kills an application and waits until YARN says so.
func (c *cluster) end(ctx context.Context, id yarnid.Application) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := c.rm.Kill(ctx, id, "measured"); err != nil {
		return err
	}
	for {
		a, err := c.rm.App(ctx, id)
		if err == nil && a.Ended() && a.Containers <= 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("cannot end %s: %w", id, errors.Join(err, ctx.Err()))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// appIn is the application that a text names.
func appIn(text string) (yarnid.Application, bool) {
	at := strings.Index(text, "application_")
	if at < 0 {
		return yarnid.Application{}, false
	}
	end := at + len("application_")
	for end < len(text) && (text[end] == '_' || text[end] >= '0' && text[end] <= '9') {
		end++
	}
	id, err := yarnid.ParseApplication(text[at:end])
	return id, err == nil
}
