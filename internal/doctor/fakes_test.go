package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/internal/hadoop/krb/krbtest"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

// world is a small cluster in the process, without security unless a test says otherwise.
type world struct {
	t    *testing.T
	dir  string // for files
	site map[string]string
	env  map[string]string
	cfg  Config

	yarn *yarntest.Cluster
	nn   func(method string) error // what the NameNode refuses; nil: it answers
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// closed is an address where nobody listens.
func closed(t *testing.T) string {
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

// queues are those of the fake scheduler.
func queues() []report.Queue {
	leaf := func(path string) report.Queue {
		return report.Queue{Path: path, State: "RUNNING", Leaf: true, Capacity: 50, MaxCapacity: 100, Labels: []string{"gpu"}}
	}
	denied, stopped := leaf("root.closed"), leaf("root.stopped")
	denied.Labels, stopped.State = []string{"ssd"}, "STOPPED"
	return []report.Queue{{Path: "root", State: "RUNNING", Capacity: 100, MaxCapacity: 100}, leaf("root.default"), denied, stopped}
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), env: map[string]string{}, yarn: yarntest.New(yarntest.Options{Managers: 2})}
	t.Cleanup(w.yarn.Close)
	w.yarn.Describe(yarntest.World{Scheduler: report.Scheduler{Type: "capacityScheduler", Queues: queues()}, Labels: []string{"gpu", "ssd"},
		Nodes: []report.Node{{ID: "n1:1", Host: "n1", State: "RUNNING", Labels: []string{"gpu"}, Free: report.Resource{MemoryMB: 1024, VCores: 1}}}, Denied: []string{"root.closed"}})
	w.site = map[string]string{"fs.defaultFS": "hdfs://" + w.nameNode(hrpctest.Config{Simple: true})}
	l := listen(t)
	s := hrpctest.Serve(l, w.yarn.ClientConfig())
	t.Cleanup(s.Close)
	web := httptest.NewServer(w.yarn.WebHandler(0))
	t.Cleanup(web.Close)
	w.site["yarn.resourcemanager.address"] = l.Addr().String()
	w.site["yarn.resourcemanager.webapp.address"] = strings.TrimPrefix(web.URL, "http://")
	w.cfg = Config{Hadoop: true, User: "alice", Limit: 30 * time.Second, StagingDir: "/staging"}
	return w
}

// nameNode serves a NameNode that has no files, and returns its address.
func (w *world) nameNode(cfg hrpctest.Config) string {
	l := listen(w.t)
	cfg.Handle = func(r *hrpctest.Request) (proto.Message, error) {
		if w.nn != nil {
			if err := w.nn(r.Method); err != nil {
				return nil, err
			}
		}
		switch r.Method {
		case "getFileInfo", "mkdirs", "delete":
			return &pb.GetFileInfoResponseProto{}, nil
		}
		return nil, &hrpc.RemoteError{Class: "java.lang.UnsupportedOperationException", Message: r.Method}
	}
	s := hrpctest.Serve(l, cfg)
	w.t.Cleanup(s.Close)
	return l.Addr().String()
}

// write writes a file and returns its path.
func (w *world) write(name string, data []byte) string {
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// run writes the configuration and runs the doctor.
func (w *world) run() map[string]Result {
	var b strings.Builder
	for k, v := range w.site {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>", k, v)
	}
	if w.site != nil {
		w.write("core-site.xml", []byte("<configuration>"+b.String()+"</configuration>"))
		w.write("yarn-site.xml", []byte("<configuration/>"))
	}
	if w.cfg.ConfDir == "" {
		w.cfg.ConfDir = w.dir
	}
	w.cfg.Env = func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }
	out := map[string]Result{}
	for _, r := range Run(w.t.Context(), w.cfg, nil) {
		out[r.Check] = r
	}
	return out
}

// kerberos makes the cluster one that demands Kerberos of a realm, and alice one who logs in by keytab.
func (w *world) kerberos() *realm {
	r := &realm{Realm: krbtest.New("TEST.LOCAL")}
	r.Preauth = true
	r.Add("alice", 18)
	r.addr = serveKDC(w.t, r.Realm)
	w.site["hadoop.security.authentication"] = "kerberos"
	w.site["dfs.namenode.kerberos.principal"], w.site["yarn.resourcemanager.principal"] = "nn/_HOST@TEST.LOCAL", "rm/_HOST@TEST.LOCAL"
	w.cfg.Keytab = w.write("alice.keytab", r.Keytab(0, "alice"))
	w.krb5(r, "", r.addr)
	return r
}

type realm struct {
	*krbtest.Realm
	addr string
}

// change changes fields of a realm that answers already.
func (r *realm) change(f func()) {
	r.Lock()
	defer r.Unlock()
	f()
}

// skew sets the KDC's clock ahead.
func (r *realm) skew(d time.Duration) {
	r.change(func() { r.Now = func() time.Time { return time.Now().Add(d) } })
}

// krb5 writes krb5.conf.
func (w *world) krb5(r *realm, more string, kdcs ...string) {
	text := "[libdefaults]\n default_realm = TEST.LOCAL\n dns_lookup_kdc = false\n" + more + "\n[realms]\n TEST.LOCAL = {\n"
	for _, k := range kdcs {
		text += "  kdc = " + k + "\n"
	}
	w.env["KRB5_CONFIG"] = w.write("krb5.conf", []byte(text+" }\n"))
}

// serveKDC answers for a realm by TCP and UDP on one port.
func serveKDC(t *testing.T, r *krbtest.Realm) string {
	t.Helper()
	var l net.Listener
	var u net.PacketConn
	for range 20 { // a port that both have
		l = listen(t)
		var err error
		if u, err = net.ListenPacket("udp", l.Addr().String()); err == nil {
			break
		}
		_ = l.Close()
	}
	if u == nil {
		t.Fatal("no port is free for TCP and UDP")
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answerTCP(c, r)
		}
	})
	wg.Go(func() {
		b := make([]byte, 64<<10)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			if a := r.Answer(b[:n]); a != nil {
				_, _ = u.WriteTo(a, from)
			}
		}
	})
	t.Cleanup(func() { _ = l.Close(); _ = u.Close(); wg.Wait() })
	return l.Addr().String()
}

func answerTCP(c net.Conn, r *krbtest.Realm) {
	defer c.Close()
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return
	}
	msg := make([]byte, min(binary.BigEndian.Uint32(head[:]), 64<<10))
	if _, err := io.ReadFull(c, msg); err != nil {
		return
	}
	if a := r.Answer(msg); a != nil {
		_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(a))), a...))
	}
}

// names is a Resolver of what a test says.
type names struct {
	forward map[string][]string
	back    map[string][]string
}

func (n names) LookupHost(_ context.Context, host string) ([]string, error) {
	if a, ok := n.forward[host]; ok {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (n names) LookupAddr(_ context.Context, addr string) ([]string, error) { return n.back[addr], nil }

// kerberosKeytab is a keytab of a principal that the realm does not have.
func (w *world) kerberosKeytab(principal string) string {
	other := krbtest.New("TEST.LOCAL")
	other.Add(principal, 18)
	return w.write("other.keytab", other.Keytab(0, principal))
}

// onlyTCP serves a realm without UDP.
func onlyTCP(t *testing.T, r *realm) string {
	l := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answerTCP(c, r.Realm)
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}
