package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/yarnclient"
)

// hadoop is a cluster and who we are there.
type hadoop struct {
	// Immutable.
	conf    *hconf.Conf
	user    string
	id      *identity.Identity
	rm      *yarnclient.Access
	staging string // directory of HDFS; "": in the user's home
	owners  []string
	public  bool
}

// openHadoop reads Hadoop's configuration. It speaks to nobody.
func (s *session) openHadoop(c *conf.Config) (*hadoop, error) {
	h := &hadoop{staging: c.Text("yarn.staging-dir"), owners: c.List("yarn.staging-owners"), public: c.Bool("yarn.staging-public")}
	var err error
	user, noUser := s.hadoopUser(c)
	h.conf, err = hconf.Load(hconf.Options{Dir: c.Text("yarn.conf-dir"), Env: s.lookup, User: user, Need: []string{"core-site.xml", "yarn-site.xml"}, Also: overHTTP(c)})
	if err != nil {
		return nil, precondition(err, "set HADOOP_CONF_DIR, or --yarn.conf-dir, to the folder with the cluster's core-site.xml and yarn-site.xml")
	}
	if secure, err := h.conf.Kerberos(); err == nil && !secure && noUser != nil {
		return nil, noUser // elsewhere the ticket says it
	}
	if h.id, err = s.whoami(h.conf, user, c); err != nil {
		return nil, err
	}
	h.user = h.id.User()
	notice := func(text string) { fmt.Fprintln(s.env.Stderr, "heddle: "+text) }
	if h.rm, err = resourceManagers(h.conf, h.id, yarnclient.Mode(c.Text("yarn.client")), notice); err != nil {
		return nil, precondition(err)
	}
	return h, nil
}

// hadoopUser is who we are on a cluster that believes it.
func (s *session) hadoopUser(c *conf.Config) (string, error) {
	for _, name := range []string{c.Text("yarn.user"), s.env.Getenv("HADOOP_USER_NAME"), s.env.Getenv("USER"), s.env.Getenv("LOGNAME")} {
		if name != "" {
			return name, nil
		}
	}
	if os.Getuid() == 0 {
		return "root", nil
	}
	return "", precondition(errors.New("cannot tell which user of the cluster you are"), "set HADOOP_USER_NAME, or --yarn.user")
}

// resourceManagers makes a client of the cluster's ResourceManagers.
func resourceManagers(c *hconf.Conf, id *identity.Identity, mode yarnclient.Mode, notice func(string)) (*yarnclient.Access, error) {
	rms, err := c.RMs()
	if err != nil {
		return nil, err
	}
	https, err := c.YARNOverHTTPS()
	if err != nil {
		return nil, err
	}
	proofs, protection, err := id.RPC()
	if err != nil {
		return nil, err
	}
	transport, auth := id.REST(nil)
	var bases, clients []string
	for _, rm := range rms {
		clients = append(clients, rm.Client)
		if https {
			bases = append(bases, "https://"+rm.WebHTTPS)
		} else {
			bases = append(bases, "http://"+rm.Web)
		}
	}
	return yarnclient.Open(yarnclient.Options{
		Mode: mode, Notice: notice,
		REST: yarnclient.Config{Bases: bases, Auth: auth, Transport: transport, Timeout: 20 * time.Second, Attempts: 5},
		RPC:  yarnclient.RPCConfig{Addrs: clients, Auth: proofs, Protection: protection, Timeout: 20 * time.Second, Attempts: 5},
	})
}

// hdfs is how to connect to HDFS.
func (h *hadoop) hdfs() (hdfs.Config, error) {
	cfg, err := h.id.HDFS()
	cfg.Timeout = 20 * time.Second
	return cfg, err
}

// proxyPages are host:port of YARN's web proxies: those of all ResourceManagers, and the one that stands alone.
func (h *hadoop) proxyPages() []string {
	var pages []string
	add := func(addr string) {
		if _, _, err := net.SplitHostPort(addr); err == nil && !slices.Contains(pages, addr) {
			pages = append(pages, addr)
		}
	}
	if alone, err := h.conf.Address("yarn.web-proxy.address", 0); err == nil {
		add(alone)
	}
	if rms, err := h.conf.RMs(); err == nil {
		for _, rm := range rms {
			add(rm.Web)
			add(rm.WebHTTPS)
		}
	}
	return pages
}

// hostsOf are the hosts of addresses, each once.
func hostsOf(addrs []string) []string {
	var hosts []string
	for _, a := range addrs {
		if host, _, err := net.SplitHostPort(a); err == nil && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func (h *hadoop) close() { h.rm.Close() }

// kerberosError gives an error of a KDC, or of our ticket, its exit code; it says what to do itself. Nil for other errors.
func kerberosError(err error) error {
	if _, ok := errors.AsType[*krb.UnreachableError](err); ok {
		return unreachable(err)
	}
	if _, ok := errors.AsType[*krb.KDCError](err); ok {
		return precondition(err)
	}
	if _, ok := errors.AsType[*krb.ExpiredError](err); ok {
		return precondition(err)
	}
	return nil
}

// hdfsError gives an error of HDFS its exit code and says what to do.
func hdfsError(err error) error {
	if kerr := kerberosError(err); kerr != nil {
		return kerr
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "SafeMode") || strings.Contains(text, "safe mode"):
		return precondition(err, "the NameNode is in safe mode, as after a restart: wait until it has left it, or ask its administrator; hdfs dfsadmin -safemode get tells")
	case errors.Is(err, fs.ErrPermission) || strings.Contains(text, "AccessControl"):
		return precondition(err) // it says what would help
	case strings.Contains(text, "Quota"):
		return precondition(err, "a quota of HDFS is used up: remove files, or set --yarn.staging-dir to another directory")
	case hdfs.TroubleOf(err) == hdfs.NoSpace:
		return precondition(err, hdfs.Advice(err, ""))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), strings.Contains(text, "cannot connect"), strings.Contains(text, "connection refused"),
		strings.Contains(text, "no available namenodes"), strings.Contains(text, "i/o timeout"), strings.Contains(text, "no such host"):
		return unreachable(err, "check fs.defaultFS of Hadoop's configuration, and that the NameNode runs")
	}
	return precondition(err)
}

// applicationID finds the application in what YARN says.
var applicationID = regexp.MustCompile(`application_[0-9]+_[0-9]+`)

// yarnError gives an error of the ResourceManager its exit code.
func yarnError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	if kerr := kerberosError(err); kerr != nil {
		return kerr
	}
	if _, ok := errors.AsType[*yarnclient.UnreachableError](err); ok {
		return unreachable(err, "check yarn.resourcemanager.hostname or .webapp.address of Hadoop's configuration, and that the ResourceManager runs")
	}
	if id := applicationID.FindString(err.Error()); id != "" && yarnclient.IsUnknown(err) {
		return precondition(fmt.Errorf("YARN does not know %s: it was submitted elsewhere, or long ago", id), "heddle list --all --target yarn; of one that was forgotten: heddle history")
	}
	if yarnclient.IsDenied(err) {
		return precondition(err, "the ResourceManager does not let this user do that")
	}
	if yarnclient.IsRefused(err) && strings.Contains(err.Error(), "label") {
		return precondition(err, "choose another label with --yarn.node-label, or unset it: heddle nodes shows what labels nodes have")
	}
	if yarnclient.IsRefused(err) {
		return precondition(err)
	}
	return failed(err)
}
