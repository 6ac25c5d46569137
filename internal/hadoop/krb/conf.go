package krb

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

// KDC is a server of a realm.
type KDC struct {
	Addr  string // host:port
	Proto string // "tcp" or "udp" alone; "": either
}

// Conf is what a client needs of krb5.conf. It does not change after it was read.
type Conf struct {
	Files        []string // that were read
	Notes        []string // lines that were passed over
	DefaultRealm string
	KDCs         map[string][]KDC // by realm, in their order
	DomainRealm  map[string]string
	CAPaths      map[string]map[string][]string // from realm, to realm: the realms between

	Enctypes       []int32 // for tickets of our own
	TicketLifetime time.Duration
	RenewLifetime  time.Duration
	ClockSkew      time.Duration
	UDPLimit       int // requests longer than this go by TCP first
	DNSLookupKDC   bool
	Forwardable    bool
	Canonicalize   bool
	DefaultCache   string // with %{uid} and the like as they are; "": libkrb5's default
	ClientKeytab   string
}

// LoadConf reads krb5.conf: the files that KRB5_CONFIG lists, else /etc/krb5.conf. A nil env is the process's own.
func LoadConf(env func(string) (string, bool)) (*Conf, error) {
	if env == nil {
		env = os.LookupEnv
	}
	names := []string{"/etc/krb5.conf"}
	v, set := env("KRB5_CONFIG")
	if set = set && v != ""; set {
		names = strings.Split(v, ":")
	}
	p := &profile{}
	var read []string
	var last error
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			last = err
			continue
		}
		read = append(read, n)
		p.parse(n, data, disk, 0)
	}
	if len(read) == 0 {
		hint := "install it, or set KRB5_CONFIG to the cluster's"
		if set {
			hint = "KRB5_CONFIG names it"
		}
		return nil, fmt.Errorf("cannot read Kerberos's configuration: %w; %s", last, hint)
	}
	c, err := confOf(p)
	if err != nil {
		return nil, fmt.Errorf("cannot use Kerberos's configuration in %s: %w", strings.Join(read, ", "), err)
	}
	c.Files = read
	return c, nil
}

// ParseConf reads the text of a krb5.conf that includes nothing.
func ParseConf(text string) (*Conf, error) {
	p := &profile{}
	none := errors.New("includes are not read here")
	p.parse("krb5.conf", []byte(text), files{
		read: func(string) ([]byte, error) { return nil, none },
		list: func(string) ([]string, error) { return nil, none },
	}, 0)
	return confOf(p)
}

var disk = files{
	read: os.ReadFile,
	list: func(dir string) ([]string, error) {
		es, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // distributions name a folder that few have
		}
		var names []string
		for _, e := range es {
			names = append(names, e.Name())
		}
		sort.Strings(names)
		return names, err
	},
}

// confOf takes out of a profile what is needed of it.
func confOf(p *profile) (*Conf, error) {
	const lib = "libdefaults"
	c := &Conf{DefaultRealm: p.get(lib, "default_realm"), KDCs: map[string][]KDC{}, DomainRealm: map[string]string{}, CAPaths: map[string]map[string][]string{},
		DefaultCache: p.get(lib, "default_ccache_name"), ClientKeytab: p.get(lib, "default_client_keytab_name")}
	num := func(name string, def int) int {
		v := p.get(lib, name)
		if v == "" {
			return def
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			p.notes = append(p.notes, name+" = "+v+" is not a number")
			return def
		}
		return n
	}
	span := func(name string, def time.Duration) time.Duration {
		v := p.get(lib, name)
		if v == "" {
			return def
		}
		d, ok := parseSpan(v)
		if !ok {
			p.notes = append(p.notes, name+" = "+v+" is not a span of time")
			return def
		}
		return d
	}
	yes := func(name string, def bool) bool {
		switch strings.ToLower(p.get(lib, name)) {
		case "y", "yes", "true", "t", "1", "on":
			return true
		case "n", "no", "false", "nil", "0", "off":
			return false
		}
		return def
	}
	c.TicketLifetime, c.RenewLifetime, c.ClockSkew = span("ticket_lifetime", 24*time.Hour), span("renew_lifetime", 0), span("clockskew", 5*time.Minute)
	c.UDPLimit = num("udp_preference_limit", 1465)
	c.DNSLookupKDC = yes("dns_lookup_kdc", yes("dns_fallback", true))
	c.Forwardable, c.Canonicalize = yes("forwardable", false), yes("canonicalize", false)
	c.Enctypes = enctypesOf(p)
	c.realms(p)
	c.Notes = p.notes
	if len(c.Enctypes) == 0 {
		return nil, errors.New("permitted_enctypes or default_tkt_enctypes names none that can be used: aes256-cts-hmac-sha1-96 and the like")
	}
	return c, nil
}

func enctypesOf(p *profile) []int32 {
	allowed := enctypes
	if v := p.get("libdefaults", "permitted_enctypes"); v != "" {
		allowed = parseEnctypes(v)
	}
	if v := p.get("libdefaults", "default_tkt_enctypes"); v != "" {
		allowed = both(parseEnctypes(v), allowed)
	}
	return allowed
}

// realms reads [realms], [domain_realm] and [capaths].
func (c *Conf) realms(p *profile) {
	for _, section := range p.all("realms") {
		for _, r := range section.kids {
			for _, e := range r.kids {
				if e.name != "kdc" {
					continue
				}
				k, err := parseKDC(e.value)
				if err != nil {
					c.Notes = append(c.Notes, r.name+": "+err.Error())
					p.notes = append(p.notes, r.name+": "+err.Error())
					continue
				}
				c.KDCs[r.name] = append(c.KDCs[r.name], k)
			}
		}
	}
	for _, section := range p.all("domain_realm") {
		for _, e := range section.kids {
			name := strings.ToLower(e.name)
			if _, had := c.DomainRealm[name]; !had && e.value != "" {
				c.DomainRealm[name] = e.value
			}
		}
	}
	for _, section := range p.all("capaths") {
		for _, from := range section.kids {
			for _, to := range from.kids {
				if c.CAPaths[from.name] == nil {
					c.CAPaths[from.name] = map[string][]string{}
				}
				for _, via := range strings.Fields(to.value) {
					if via != "." {
						c.CAPaths[from.name][to.name] = append(c.CAPaths[from.name][to.name], via)
					}
				}
			}
		}
	}
}

// parseKDC reads host, host:port, [IPv6]:port, tcp/host:port and udp/host:port.
func parseKDC(v string) (KDC, error) {
	var k KDC
	for _, proto := range []string{"tcp", "udp"} {
		if rest, ok := strings.CutPrefix(strings.ToLower(v), proto+"/"); ok {
			k.Proto, v = proto, rest
		}
	}
	switch {
	case v == "" || strings.ContainsAny(v, " \t"):
		return k, fmt.Errorf("kdc = %s is not host:port", v)
	case strings.Contains(v, "://"):
		return k, fmt.Errorf("kdc = %s: KDCs behind an HTTPS proxy cannot be used", v)
	}
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		host, port = strings.Trim(v, "[]"), "88"
		if strings.Count(host, ":") == 1 {
			return k, fmt.Errorf("kdc = %s is not host:port", v)
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "" {
		return k, fmt.Errorf("kdc = %s is not host:port", v)
	}
	k.Addr = net.JoinHostPort(host, port)
	return k, nil
}

// parseSpan reads 300, 24h, 7d, 1d12h30m and 8:30[:15], as krb5.conf writes them.
func parseSpan(v string) (time.Duration, bool) {
	v = strings.ReplaceAll(strings.TrimSpace(v), " ", "")
	if parts := strings.Split(v, ":"); len(parts) == 2 || len(parts) == 3 {
		total, unit := time.Duration(0), time.Hour
		for _, x := range parts {
			n, err := strconv.ParseUint(x, 10, 20)
			if err != nil {
				return 0, false
			}
			total, unit = total+time.Duration(n)*unit, unit/60
		}
		return total, true
	}
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	total, units := time.Duration(0), map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}
	for v != "" {
		i := 0
		for i < len(v) && v[i] >= '0' && v[i] <= '9' {
			i++
		}
		if i == 0 || i == len(v) {
			return 0, false
		}
		n, err := strconv.ParseUint(v[:i], 10, 20)
		unit, ok := units[v[i]|0x20]
		if err != nil || !ok {
			return 0, false
		}
		total, v = total+time.Duration(n)*unit, v[i+1:]
	}
	return total, total > 0
}

// RealmOf returns the realm of a host by [domain_realm], "" if nothing says it.
func (c *Conf) RealmOf(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if r, ok := c.DomainRealm[host]; ok {
		return r
	}
	for at := host; ; {
		_, rest, ok := strings.Cut(at, ".")
		if !ok {
			return ""
		}
		if r, ok := c.DomainRealm["."+rest]; ok {
			return r
		}
		if r, ok := c.DomainRealm[rest]; ok {
			return r
		}
		at = rest
	}
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
