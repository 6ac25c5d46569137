package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/internal/ship"
	"github.com/heddle-stream/heddle/yarnclient"
)

// callTime bounds one question to a server.
const callTime = 5 * time.Second

// bound connects so that the end of ctx closes the connections.
func bound(ctx context.Context) func(context.Context, string) (net.Conn, error) {
	return func(dctx context.Context, addr string) (net.Conn, error) {
		nc, err := (&net.Dialer{Timeout: callTime}).DialContext(dctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return &boundConn{nc, context.AfterFunc(ctx, func() { nc.Close() })}, nil
	}
}

// boundConn is a connection that ends with a context.
type boundConn struct {
	net.Conn
	stop func() bool
}

func (c *boundConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// hdfs is how to connect to a file system for the time of a check.
func (p *patient) hdfs(ctx context.Context, s hconf.FileSystem) (hdfs.Config, error) {
	cfg, err := p.id.HDFS()
	cfg.NameNodes, cfg.Timeout, cfg.Attempts, cfg.Dial = s.NameNodes, callTime, 1, bound(ctx)
	return cfg, err
}

func (p *patient) askNameNodes(ctx context.Context) (string, verdict.Verdict) {
	cfg, err := p.hdfs(ctx, p.fs)
	tried := "look at / on " + strings.Join(p.fs.NameNodes, ", ")
	if err != nil {
		return tried, verdict.Conf("", "", p.fs, 0, p.secure, err)
	}
	all := make([]verdict.Server, len(p.fs.NameNodes))
	var wg sync.WaitGroup
	for i, addr := range p.fs.NameNodes {
		wg.Go(func() {
			s := verdict.Server{Addr: addr}
			s.Standby, s.Err = hdfs.Answers(ctx, cfg, addr)
			all[i] = s
		})
	}
	wg.Wait()
	v := verdict.NameNodes(p.fs.URI, all, cfg.Security.Protection, p.secure)
	if over, _ := p.id.OverHTTP(); over && p.id.Login() == nil && v.Status == verdict.Fail { // else it is to give a token
		v.Status, v.Means = verdict.Warn, v.Means+"; hdfs.http-uri stands in for it"
	}
	return tried, v
}

// webConfig is how to reach the ResourceManagers' web services.
func (p *patient) webConfig() (yarnclient.Config, error) {
	https, err := p.conf.YARNOverHTTPS()
	if err != nil {
		return yarnclient.Config{}, err
	}
	c := yarnclient.Config{Timeout: callTime, Attempts: 2}
	c.Transport, c.Auth = p.id.REST(nil)
	for _, rm := range p.rms {
		if https {
			c.Bases = append(c.Bases, "https://"+rm.WebHTTPS)
		} else {
			c.Bases = append(c.Bases, "http://"+rm.Web)
		}
	}
	return c, nil
}

// rpcConfig is how to reach their RPC.
func (p *patient) rpcConfig(ctx context.Context) (yarnclient.RPCConfig, error) {
	c := yarnclient.RPCConfig{Timeout: callTime, Attempts: len(p.rms) + 1, PauseMax: time.Second, Dial: bound(ctx)}
	for _, rm := range p.rms {
		c.Addrs = append(c.Addrs, rm.Client)
	}
	var err error
	c.Auth, c.Protection, err = p.id.RPC()
	return c, err
}

func (p *patient) askWeb(ctx context.Context) (string, verdict.Verdict) {
	cfg, err := p.webConfig()
	tried := "ask " + strings.Join(cfg.Bases, ", ") + " for its state"
	var web *yarnclient.Client
	if err == nil {
		web, err = yarnclient.New(cfg)
	}
	if err != nil {
		return tried, verdict.Conf("", "", p.fs, 0, p.secure, err)
	}
	defer web.Close()
	infos, errs := web.Infos(ctx)
	all := make([]verdict.Server, len(infos))
	unreachable := true
	for i, info := range infos {
		all[i] = verdict.Server{Addr: cfg.Bases[i], Standby: info.HAState == "STANDBY" || info.HAState == "INITIALIZING", State: info.HAState, Err: errs[i]}
		unreachable = unreachable && errs[i] != nil
	}
	v := verdict.Web(all, p.secure)
	if v.Status == verdict.Fail && unreachable && p.rpcOpen(ctx) {
		v.Status = verdict.Warn
		v.Means += "; RPC stands in for it"
	}
	return tried, v
}

// rpcOpen reports whether somebody listens at a ResourceManager's RPC.
func (p *patient) rpcOpen(ctx context.Context) bool {
	for _, rm := range p.rms {
		if nc, err := bound(ctx)(ctx, rm.Client); err == nil {
			nc.Close()
			return true
		}
	}
	return false
}

func (p *patient) askRPC(ctx context.Context) (string, verdict.Verdict) {
	cfg, err := p.rpcConfig(ctx)
	tried := "ask " + strings.Join(cfg.Addrs, ", ") + " for the cluster's figures"
	var rpc *yarnclient.RPC
	if err == nil {
		rpc, err = yarnclient.NewRPC(cfg)
	}
	if err != nil {
		return tried, verdict.Conf("", "", p.fs, 0, p.secure, err)
	}
	defer rpc.Close()
	_, err = rpc.Metrics(ctx)
	return tried, verdict.ManagerRPC(cfg.Addrs, err, cfg.Protection, true)
}

// managers opens both ways to the ResourceManagers for the time of a check.
func (p *patient) managers(ctx context.Context) (*yarnclient.Access, *yarnclient.RPC, error) {
	web, err := p.webConfig()
	if err != nil {
		return nil, nil, err
	}
	cfg, err := p.rpcConfig(ctx)
	if err != nil {
		return nil, nil, err
	}
	rpc, err := yarnclient.NewRPC(cfg)
	if err != nil {
		return nil, nil, err
	}
	both, err := yarnclient.Open(yarnclient.Options{REST: web, RPC: cfg})
	if err != nil {
		rpc.Close()
	}
	return both, rpc, err
}

func (p *patient) askQueue(ctx context.Context) (string, verdict.Verdict) {
	const tried = "list the queues, and which of them we may submit to"
	both, rpc, err := p.managers(ctx)
	if err != nil {
		return tried, unexpected(err)
	}
	defer both.Close()
	defer rpc.Close()
	f := verdict.QueueFacts{Name: p.cfg.Queue, User: p.id.User()}
	if f.Scheduler, err = both.Scheduler(ctx); err != nil {
		return tried, unexpected(err)
	}
	f.Access, f.AccessErr = rpc.QueueAccess(ctx)
	return tried, verdict.Queue(f)
}

// unexpected judges the failure of a question to a ResourceManager that answered others.
func unexpected(err error) verdict.Verdict {
	return verdict.Verdict{Status: verdict.Fail, Diagnosis: "rm-refused", Means: err.Error(), Fix: "ask the cluster's administrators, with this text"}
}

func (p *patient) askLabel(ctx context.Context) (string, verdict.Verdict) {
	if p.cfg.Label == "" {
		return "", verdict.Skip("no label is asked for (yarn.node-label)")
	}
	const tried = "list the cluster's labels and nodes"
	both, rpc, err := p.managers(ctx)
	if err != nil {
		return tried, unexpected(err)
	}
	defer both.Close()
	defer rpc.Close()
	labels, err := both.Labels(ctx)
	if err != nil {
		return tried, unexpected(err)
	}
	sched, err := both.Scheduler(ctx)
	if err != nil {
		return tried, unexpected(err)
	}
	nodes, err := both.Nodes(ctx)
	if err != nil {
		return tried, unexpected(err)
	}
	return tried, verdict.Label(p.cfg.Label, p.cfg.Queue, labels, sched, nodes)
}

func (p *patient) askContainer(ctx context.Context) (string, verdict.Verdict) {
	if p.cfg.Fit == nil {
		return "", verdict.Skip("no containers are configured")
	}
	const tried = "reserve an application's identifier, with which the largest container is told"
	both, rpc, err := p.managers(ctx)
	if err != nil {
		return tried, unexpected(err)
	}
	defer both.Close()
	defer rpc.Close()
	app, err := both.NewApplication(ctx)
	if err != nil {
		return tried, unexpected(err)
	}
	fix, err := p.cfg.Fit(app)
	return tried, verdict.Container(app.Max, err, fix)
}

// writeStaging writes a file into the staging folder, reads it and removes it, with the folders that it made.
func (p *patient) writeStaging(ctx context.Context) (string, verdict.Verdict) {
	cfg, err := p.hdfs(ctx, p.fs)
	if err != nil {
		return "", unexpected(err)
	}
	store, f, err := ship.Open(ship.Options{Conf: p.conf, HDFS: cfg, StagingDir: p.cfg.StagingDir})
	dir := p.cfg.StagingDir
	if err != nil {
		return "open the staging folder " + dir, verdict.Staging(dir, p.id.User(), verdict.StepConnect, err, hdfs.QuotaUsage{})
	}
	defer f.Close()
	tried := "write, read and remove a small file in " + store.Root
	step, quota, err := probeFolder(ctx, f, store.Root)
	return tried, verdict.Staging(store.Root, p.id.User(), step, err, quota)
}

// probeFolder writes, reads and removes a file in a folder, and what folders it had to make. It returns the step that failed.
func probeFolder(ctx context.Context, f *hdfs.FS, dir string) (step string, quota hdfs.QuotaUsage, err error) {
	made := missing(f, dir)
	name := path.Join(dir, ".doctor-"+rand.Text()[:10])
	defer func() {
		remove := name
		if made != "" {
			remove = made
		}
		if rerr := f.RemoveAll(remove); rerr != nil && err == nil {
			step, err = verdict.StepRemove, rerr
		}
	}()
	text := []byte("written by heddle doctor; it can be removed\n")
	if made != "" {
		if err := f.MkdirAll(dir, 0o700); err != nil {
			made = ""
			return verdict.StepWrite, quota, err
		}
	}
	if _, err := f.Upload(ctx, name, 0o600, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }, nil); err != nil {
		return verdict.StepWrite, quota, err
	}
	back, err := f.ReadFile(name, int64(len(text)))
	if err == nil && !bytes.Equal(back, text) {
		err = errors.New("what was read is not what was written")
	}
	if err != nil {
		return verdict.StepRead, quota, err
	}
	if q, err := f.Quota(ctx, dir); err == nil {
		quota = q
	}
	return "", quota, nil
}

// missing is the uppermost folder on the way to a folder that is not there, "" if all are.
func missing(f *hdfs.FS, dir string) (made string) {
	for d := dir; d != "/" && d != "."; d = path.Dir(d) {
		if _, err := f.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = d
	}
	return made
}

// askPaths asks whether a job may do what it does with paths of HDFS.
func (p *patient) askPaths(ctx context.Context) (string, verdict.Verdict) {
	var all []verdict.Path
	for _, n := range p.needed(flow.NeedPath) {
		if strings.HasPrefix(n.Name, "hdfs://") {
			all = append(all, p.askPath(ctx, n))
		}
	}
	if len(all) == 0 {
		return "", verdict.Skip(noJob)
	}
	return "ask the NameNode whether we may use them", verdict.Paths(all, p.id.User())
}

// askPath asks about one path. What a job makes need not be there: then the folder counts that it is made in.
func (p *patient) askPath(ctx context.Context, n flow.Need) verdict.Path {
	out := verdict.Path{Name: n.Name}
	where, name, err := p.locate(n.Name)
	var cfg hdfs.Config
	if err == nil {
		cfg, err = p.hdfs(ctx, where)
	}
	if err != nil {
		out.Err = err
		return out
	}
	f, err := hdfs.Open(cfg)
	if err != nil {
		out.Err = err
		return out
	}
	defer f.Close()
	if n.Pattern {
		name = path.Dir(name[:strings.IndexAny(name, "*?[")] + "x")
	}
	out.Want = hdfs.AccessRead
	if n.Write {
		out.Want = hdfs.AccessWrite | hdfs.AccessExecute
		for name != "/" {
			if _, err := f.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			name = path.Dir(name)
		}
	} else if info, err := f.Stat(name); err == nil && info.Dir {
		out.Want |= hdfs.AccessExecute
	}
	out.Err = f.CheckAccess(ctx, name, out.Want)
	return out
}

// locate cuts a URI into its file system and path.
func (p *patient) locate(uri string) (hconf.FileSystem, string, error) {
	authority, name, ok := strings.Cut(strings.TrimPrefix(uri, "hdfs://"), "/")
	if !ok {
		return hconf.FileSystem{}, "", fmt.Errorf("%q is no path in HDFS", uri)
	}
	name = path.Clean("/" + name)
	if authority == "" {
		return p.fs, name, nil
	}
	s, err := p.conf.HDFS("hdfs://" + authority)
	return s, name, err
}

// fetchTokens gets delegation tokens as a submission does, renews one that we may renew, and cancels all.
func (p *patient) fetchTokens(ctx context.Context) (string, verdict.Verdict) {
	const tried = "fetch delegation tokens for HDFS and the ResourceManager, renew one, cancel all"
	if !p.secure {
		return "", verdict.Skip(noKerberos)
	}
	if p.id.Login() == nil {
		return tried, verdict.Tokens{ByTokens: true}.Judge(p.cfg.Now())
	}
	both, rpc, err := p.managers(ctx)
	if err != nil {
		return tried, unexpected(err)
	}
	defer both.Close()
	defer rpc.Close()
	systems := []hconf.FileSystem{p.fs}
	for _, uri := range p.cfg.FileSystems {
		s, err := p.conf.HDFS(uri)
		if err != nil {
			return tried, verdict.Conf("", "", p.fs, 0, p.secure, err)
		}
		systems = append(systems, s)
	}
	out := verdict.Tokens{Keytab: p.id.Login().CanRelogin()}
	creds, err := p.id.Fetch(ctx, systems, both)
	err = keyless(err, &out)
	out.Fetched, out.FetchErr = len(creds.Tokens), err
	if err == nil {
		mine, until, err := p.id.Refresh(ctx, systems[:1])
		out.RenewErr = keyless(err, &out)
		for _, end := range until { // of the one
			out.Until = end
		}
		creds.Tokens = append(creds.Tokens, mine.Tokens...)
	}
	p.cancelTokens(ctx, creds, both)
	return tried, out.Judge(p.cfg.Now())
}

// keyless notes that key servers gave no tokens, and returns what else went wrong.
func keyless(err error, t *verdict.Tokens) error {
	if lack, ok := errors.AsType[*identity.KeyTokenError](err); ok {
		t.Keyless = lack
		return nil
	}
	return err
}

// cancelTokens ends tokens. Those that stay end by themselves.
func (p *patient) cancelTokens(ctx context.Context, creds token.Credentials, rm *yarnclient.Access) {
	for _, t := range creds.Of(token.KindRM) {
		_ = rm.CancelToken(ctx, t)
	}
	for _, t := range creds.Of(token.KindKMS) {
		_ = p.id.CancelKeys(ctx, t)
	}
	for _, t := range creds.Tokens {
		if identity.OfGateway(t.Token) {
			_ = p.id.CancelGateway(ctx, t.Token)
		}
	}
	cfg, err := p.hdfs(ctx, p.fs)
	if err != nil {
		return
	}
	f, err := hdfs.Open(cfg)
	if err != nil {
		return
	}
	defer f.Close()
	for _, t := range creds.Of(token.KindHDFS) {
		_ = f.CancelToken(ctx, t)
	}
}
