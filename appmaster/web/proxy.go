package web

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Proxy is a web proxy in front of the server that vouches for its callers, as YARN's does: it names the user in a cookie.
// Whoever can send from its hosts can claim to be anybody, as with every page behind that proxy, unless it has a certificate.
type Proxy struct {
	// Certificates are those of which the proxy shows one, and what it says counts on such connections alone. Empty: it has none, and Hosts count.
	Certificates []*x509.Certificate
	Hosts        []string               // names or addresses that it sends from
	Pages        []string               // host:port by which browsers reach it
	Origins      []string               // origins of gateways in front of it, such as https://knox:8443
	View         func(user string) bool // who may look
	Modify       func(user string) bool // who may act
	// Lookup and Reverse find addresses of a name and names of an address. Nil: as the host does.
	Lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	Reverse func(ctx context.Context, addr string) ([]string, error)

	mu       sync.Mutex // guards what follows
	found    *known     // never changed, only replaced
	resolved time.Time
}

// known is what names of the proxy's hosts were resolved to.
type known struct{ addrs map[string][]netip.Addr }

// proxyCookie is the cookie in which YARN's proxy names the user (Hadoop's ProxyUtils).
const proxyCookie = "proxy-user"

// resolveEvery is how long the addresses of the proxy's hosts are believed; resolveAgain, where a request comes from another one, since the proxy may have moved.
const (
	resolveEvery = time.Minute
	resolveAgain = 5 * time.Second
)

// caller is who sent a request, as far as that is known.
type caller struct {
	user    string
	modify  bool
	proxied bool   // the proxy vouches for them
	barred  bool   // may not even look
	answer  string // proof of ours to who has proven something by an encrypted connection
}

// who tells whether a request may look, and who sent it. Of an application behind a proxy, that and the token are the only ways: who else has our user
// on this host may be another application, since containers of many users can have one account.
func (s *Server) who(r *http.Request) (caller, bool) {
	switch {
	case proven(r) != nil:
		return *proven(r), !proven(r).barred
	case r.Header.Get("Authorization") != "":
		return caller{modify: true}, s.bearer(r)
	case s.cfg.Proxy != nil:
		return s.cfg.Proxy.caller(r)
	}
	return caller{modify: true}, s.ownBrowser(r)
}

// caller is who the proxy says sent the request. ok is false for one that does not come from it, or whose user may not look.
func (p *Proxy) caller(r *http.Request) (c caller, ok bool) {
	cookie, err := r.Cookie(proxyCookie)
	if err != nil || !p.sent(r) {
		return c, false
	}
	c.user, c.proxied = cookie.Value, true
	c.modify = p.Modify(c.user)
	return c, c.modify || p.View(c.user)
}

// sent reports whether a request comes from the proxy: with its certificate if it has one, else from one of its addresses.
func (p *Proxy) sent(r *http.Request) bool {
	if len(p.Certificates) > 0 {
		return shown(r, p.Certificates)
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr := from.Addr().Unmap()
	return p.resolve(r.Context(), resolveEvery).has(addr) || p.resolve(r.Context(), resolveAgain).has(addr)
}

func (k *known) has(addr netip.Addr) bool {
	for _, list := range k.addrs {
		if slices.Contains(list, addr) {
			return true
		}
	}
	return false
}

// resolve resolves the proxy's hosts, unless that was done within an age. A name that can't be resolved for now has the addresses that it had.
func (p *Proxy) resolve(ctx context.Context, age time.Duration) *known {
	p.mu.Lock()
	old, at := p.found, p.resolved
	p.mu.Unlock()
	if old != nil && time.Since(at) < age {
		return old
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	k := &known{addrs: map[string][]netip.Addr{}}
	for _, host := range p.Hosts {
		list, err := p.lookup(ctx, host)
		if err != nil {
			if old != nil {
				k.addrs[host] = old.addrs[host]
			}
			continue
		}
		for _, a := range list {
			k.addrs[host] = append(k.addrs[host], a.Unmap())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found, p.resolved = k, time.Now()
	return k
}

func (p *Proxy) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if p.Lookup != nil {
		return p.Lookup(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func (p *Proxy) reverse(ctx context.Context, addr string) ([]string, error) {
	if p.Reverse != nil {
		return p.Reverse(ctx, addr)
	}
	return net.DefaultResolver.LookupAddr(ctx, addr)
}
