package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Proxy is a web proxy in front of the server that vouches for its callers, as YARN's does: it names the user in a cookie.
// Whoever can send from its hosts can claim to be anybody, as with every page behind that proxy.
type Proxy struct {
	Hosts  []string               // names or addresses that it sends from
	View   func(user string) bool // who may look
	Modify func(user string) bool // who may act

	mu       sync.Mutex // guards what follows
	addrs    []netip.Addr
	resolved time.Time
}

// proxyCookie is the cookie in which YARN's proxy names the user (Hadoop's ProxyUtils).
const proxyCookie = "proxy-user"

// resolveEvery is how long the addresses of the proxy's hosts are believed.
const resolveEvery = time.Minute

// caller is who sent a request, as far as that is known.
type caller struct {
	user   string
	modify bool
}

// who tells whether a request may look, and who sent it.
func (s *Server) who(r *http.Request) (caller, bool) {
	if r.Header.Get("Authorization") != "" {
		return caller{modify: true}, s.bearer(r)
	}
	if _, err := r.Cookie(proxyCookie); err == nil && s.cfg.Proxy != nil {
		return s.cfg.Proxy.caller(r) // nothing else counts: the proxy may be a process of our own user on this host
	}
	return caller{modify: true}, s.ownBrowser(r)
}

// caller is who the proxy says sent the request. ok is false for one that does not come from it, or whose user may not look.
func (p *Proxy) caller(r *http.Request) (c caller, ok bool) {
	if p == nil {
		return c, false
	}
	cookie, err := r.Cookie(proxyCookie)
	from, aerr := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || aerr != nil || !slices.Contains(p.addresses(r.Context()), from.Addr().Unmap()) {
		return c, false
	}
	c.user = cookie.Value
	c.modify = p.Modify(c.user)
	return c, c.modify || p.View(c.user)
}

// addresses are those of the proxy's hosts. A name that can't be resolved for now has those that it had.
func (p *Proxy) addresses(ctx context.Context) []netip.Addr {
	p.mu.Lock()
	addrs, age := p.addrs, time.Since(p.resolved)
	p.mu.Unlock()
	if age < resolveEvery {
		return addrs
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var found []netip.Addr
	for _, host := range p.Hosts {
		list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			list = addrs
		}
		for _, a := range list {
			found = append(found, a.Unmap())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addrs, p.resolved = found, time.Now()
	return found
}
