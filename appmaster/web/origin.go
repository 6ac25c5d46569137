package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// foreign tells what is wrong with a request that a browser sent through the proxy for a page of another site; "": nothing is. YARN's proxy passes Origin on
// since Hadoop 3.3 or so, and never Sec-Fetch-Site, which others do. A request without them is no browser's, or came by an older proxy: actions
// need the token of api/session anyway.
func (p *Proxy) foreign(r *http.Request) string {
	if o := r.Header.Get("Origin"); o != "" && !p.page(r.Context(), o) {
		return "it comes from a page of " + o + ", which is neither a ResourceManager's nor in web.origins"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return ""
	}
	if navigates(r) {
		return ""
	}
	return "the browser sent it for a page of another site"
}

// navigates reports whether somebody follows a link to the dashboard. Of the answer, the page that had the link sees nothing.
func navigates(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// page reports whether an origin is one by which people reach the dashboard. Its name is looked up nowhere: whoever made the page chose it.
func (p *Proxy) page(ctx context.Context, origin string) bool {
	if slices.ContainsFunc(p.Origins, func(o string) bool { return strings.EqualFold(strings.TrimSuffix(o, "/"), origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Path != "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return slices.ContainsFunc(p.Pages, func(page string) bool {
		host, at, err := net.SplitHostPort(page)
		return err == nil && at == port && p.named(ctx, host, u.Hostname())
	})
}

// named reports whether a name is another one of a host's.
func (p *Proxy) named(ctx context.Context, host, name string) bool {
	if strings.EqualFold(host, name) || strings.EqualFold(short(host), name) {
		return true
	}
	addrs := p.resolve(ctx, resolveEvery).addrs[host]
	if a, err := netip.ParseAddr(name); err == nil {
		return slices.Contains(addrs, a.Unmap())
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool {
		names, _ := p.reverse(ctx, a.String()) // many addresses have none
		return slices.ContainsFunc(names, func(n string) bool {
			n = strings.TrimSuffix(n, ".")
			return strings.EqualFold(n, name) || strings.EqualFold(short(n), name)
		})
	})
}

// short is the first label of a name, by which hosts of the same domain know it.
func short(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	label, _, _ := strings.Cut(host, ".")
	return label
}
