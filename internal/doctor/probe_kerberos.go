package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

// Reasons to look at nothing.
const (
	noKerberos = "the cluster has no security"
	byTokens   = "delegation tokens alone are used, for which no KDC is asked"
	noJob      = "no job was named that needs it"
)

func (p *patient) readConf(context.Context) (string, verdict.Verdict) {
	if !p.cfg.Hadoop {
		return "", verdict.Skip(p.cfg.NoHadoop)
	}
	dir, from := p.cfg.ConfDir, "yarn.conf-dir"
	var err error
	if dir == "" {
		dir, from, err = hconf.FindDir(p.cfg.Env)
	}
	tried := "read core-site.xml, hdfs-site.xml and yarn-site.xml in " + dir
	if err == nil {
		p.conf, err = hconf.Load(hconf.Options{Dir: dir, Env: p.cfg.Env, User: p.cfg.User, Also: p.cfg.HTTP, Need: []string{"core-site.xml", "yarn-site.xml"}})
	}
	if err == nil {
		p.secure, err = p.conf.Kerberos()
	}
	if err == nil {
		p.fs, err = p.conf.DefaultFS()
	}
	if err == nil {
		p.rms, err = p.conf.RMs()
	}
	if err == nil {
		if herr := cmp.Or(p.cfg.HTTPErr, identity.CheckHTTP(p.conf)); herr != nil {
			return tried, verdict.HTTPOptions(herr)
		}
	}
	return tried, verdict.Conf(dir, from, p.fs, len(p.rms), p.secure, err)
}

func (p *patient) readKrb5(context.Context) (string, verdict.Verdict) {
	if !p.secure {
		return "", verdict.Skip(noKerberos)
	}
	c, err := krb.LoadConf(p.cfg.Env)
	tried := "read /etc/krb5.conf, or what KRB5_CONFIG names"
	if err == nil {
		tried = "read " + strings.Join(c.Files, ", ")
	} else if file, ok := p.cfg.Env("HADOOP_TOKEN_FILE_LOCATION"); ok && file != "" && p.cfg.Keytab == "" {
		return tried, verdict.Skip(byTokens)
	}
	p.krb = c
	return tried, verdict.Krb5(c, err)
}

// openLogin looks at what there is to log in by, and asks nobody.
func (p *patient) openLogin(context.Context) (string, verdict.Verdict) {
	id, err := identity.Open(identity.Config{Conf: p.conf, Env: p.cfg.Env, Keytab: p.cfg.Keytab, Principal: p.cfg.Principal, Kerberos: p.krb, User: p.cfg.User, WebPassword: p.cfg.HTTPPassword})
	p.id = id
	if err == nil {
		p.name = id.User()
	}
	if !p.secure {
		if err != nil {
			return "tell who we are", verdict.Verdict{Status: verdict.Fail, Diagnosis: "user-unknown", Means: err.Error(), Fix: "set HADOOP_USER_NAME, or --yarn.user"}
		}
		return "tell who we are", verdict.Verdict{Status: verdict.Pass, Means: "user " + id.User() + ", who is believed"}
	}
	c, tried := p.credentials(err)
	if p.krb == nil && err != nil {
		return tried, verdict.Skip(needsPrefix + "Kerberos's configuration")
	}
	return tried, verdict.Login(c, p.cfg.Now())
}

// credentials describes them. err is why they can't be used.
func (p *patient) credentials(err error) (verdict.Credentials, string) {
	c := verdict.Credentials{Err: err, Principal: p.cfg.Principal, Keytab: strings.TrimPrefix(p.cfg.Keytab, "FILE:")}
	if err == nil && p.id.Login() != nil {
		c.Principal = p.id.Login().Principal().String()
		p.name = c.Principal
	}
	switch {
	case c.Keytab != "":
		c.Mode = mode(c.Keytab)
		if b, err := os.ReadFile(c.Keytab); err == nil {
			describeKeytab(&c, b, p.krb)
		}
		return c, "read the keytab " + c.Keytab
	case err == nil && p.id.Login() == nil:
		c.Tokens = len(p.id.Credentials().Of(token.KindHDFS))
		return c, "read HADOOP_TOKEN_FILE_LOCATION"
	}
	file, ferr := krb.CacheFile("", p.cfg.Env, p.krb)
	if ferr != nil {
		return c, "find the ticket cache"
	}
	c.Cache, c.Mode = file, mode(file)
	if b, err := os.ReadFile(file); err == nil {
		describeCache(&c, b)
	}
	return c, "read the ticket cache " + file
}

func mode(file string) uint32 {
	st, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return uint32(st.Mode().Perm())
}

func describeKeytab(c *verdict.Credentials, b []byte, kc *krb.Conf) {
	entries, err := krb.ParseKeytab(b)
	if err != nil {
		return
	}
	for _, x := range krb.Principals(entries) {
		c.Principals = append(c.Principals, x.String())
	}
	who, err := krb.ParsePrincipal(c.Principal)
	if err != nil {
		return
	}
	if who.Realm == "" && kc != nil {
		who.Realm = kc.DefaultRealm
	}
	c.Keys = krb.KeySummary(entries, who)
}

func describeCache(c *verdict.Credentials, b []byte) {
	cache, err := krb.ParseCache(b)
	if err != nil {
		return
	}
	c.Principal = cache.Client.String()
	if t := cache.GrantingTicket(); t != nil {
		c.HasTicket, c.End, c.Renew, c.Enctype = true, t.End, t.RenewTill, krb.EnctypeName(t.Enctype())
	}
}

// probeTime is how long a KDC may take to answer. Those that drop packets do not answer at all.
const probeTime = 3 * time.Second

// askKDCs asks every KDC of our realm by TCP and UDP, all at once.
func (p *patient) askKDCs(ctx context.Context) (string, verdict.Verdict) {
	realm := p.krb.DefaultRealm
	who := krb.Principal{Parts: []string{"heddle-doctor"}, Realm: realm}
	if p.id != nil {
		if p.id.Login() == nil {
			return "", verdict.Skip(byTokens)
		}
		who = p.id.Login().Principal()
		realm = who.Realm
	}
	kdcs, err := p.findKDCs(ctx, realm)
	if err != nil {
		return "find the KDCs of " + realm, verdict.KDCs(realm, nil, false)
	}
	probe := krb.Probe{Conf: p.krb, Who: who, Now: p.cfg.Now}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p.kdcs = make([]verdict.KDC, len(kdcs))
	udp := p.krb.UDPLimit > 1
	var wg sync.WaitGroup
	var tried []string
	for i, k := range kdcs {
		at := &p.kdcs[i]
		*at = verdict.KDC{Addr: k.Addr, TriedTCP: k.Proto != "udp", TriedUDP: k.Proto != "tcp" && udp}
		tried = append(tried, k.Addr)
		wg.Go(func() { askKDC(ctx, probe, at) })
	}
	wg.Wait()
	return "ask " + strings.Join(tried, ", ") + " for a ticket to nothing, by TCP and UDP", verdict.KDCs(realm, p.kdcs, udp)
}

// askKDC asks one KDC.
func askKDC(ctx context.Context, probe krb.Probe, k *verdict.KDC) {
	var tcp, udp krb.Seen
	var wg sync.WaitGroup
	if k.TriedTCP {
		wg.Go(func() { tcp, k.TCP = probe.Ask(ctx, "tcp", k.Addr) })
	}
	if k.TriedUDP {
		wg.Go(func() { udp, k.UDP = probe.Ask(ctx, "udp", k.Addr) })
	}
	wg.Wait()
	for _, s := range []krb.Seen{udp, tcp} {
		if s.Timed {
			k.Skew, k.Timed = s.Skew, true
		}
	}
}

// findKDCs lists those of a realm, as krb5.conf or DNS has them.
func (p *patient) findKDCs(ctx context.Context, realm string) ([]krb.KDC, error) {
	if kdcs := p.krb.KDCs[realm]; len(kdcs) > 0 {
		return kdcs, nil
	}
	if !p.krb.DNSLookupKDC {
		return nil, errors.New("krb5.conf names none")
	}
	var out []krb.KDC
	_, srvs, err := net.DefaultResolver.LookupSRV(ctx, "kerberos", "tcp", realm)
	for _, s := range srvs {
		out = append(out, krb.KDC{Addr: net.JoinHostPort(strings.TrimSuffix(s.Target, "."), fmt.Sprint(s.Port))})
	}
	return out, err
}

func (p *patient) judgeClock(context.Context) (string, verdict.Verdict) {
	return "compare the time in the KDCs' answers with this host's", verdict.Clock(p.kdcs, p.krb.ClockSkew)
}

func (p *patient) logIn(ctx context.Context) (string, verdict.Verdict) {
	l := p.id.Login()
	end, renew, err := l.Ready(ctx)
	return "get a ticket-granting ticket by " + l.Source(), verdict.Ticket(l.Principal().String(), end, renew, err, p.cfg.Now())
}

// lookUp looks up the names of the cluster's servers, and the names of their addresses.
func (p *patient) lookUp(ctx context.Context) (string, verdict.Verdict) {
	var names []string
	add := func(addr string) {
		host, _, err := net.SplitHostPort(addr)
		if err == nil && host != "" && net.ParseIP(host) == nil && !slices.Contains(names, host) {
			names = append(names, host)
		}
	}
	for _, a := range p.fs.NameNodes {
		add(a)
	}
	for _, rm := range p.rms {
		add(rm.Client)
		add(rm.Web)
	}
	if len(names) == 0 {
		return "", verdict.Skip("the configuration names servers by their addresses")
	}
	hosts := make([]verdict.Host, len(names))
	var wg sync.WaitGroup
	for i, n := range names {
		wg.Go(func() { hosts[i] = p.host(ctx, n) })
	}
	wg.Wait()
	return "look up " + strings.Join(names, ", ") + ", and their addresses", verdict.DNS(hosts, p.secure)
}

func (p *patient) host(ctx context.Context, name string) verdict.Host {
	h := verdict.Host{Name: name, Back: map[string][]string{}}
	h.Addrs, h.Err = p.cfg.Resolver.LookupHost(ctx, name)
	for _, a := range h.Addrs {
		names, err := p.cfg.Resolver.LookupAddr(ctx, a)
		if dns, ok := errors.AsType[*net.DNSError](err); err == nil || ok && dns.IsNotFound {
			h.Back[a] = names
		}
	}
	return h
}
