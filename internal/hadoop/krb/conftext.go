package krb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Text writes the configuration as a krb5.conf that includes nothing, for processes on other hosts. What names this host's files is left out.
func (c *Conf) Text() string {
	var b strings.Builder
	yes := func(v bool) string {
		if v {
			return "true"
		}
		return "false"
	}
	var names []string
	for _, e := range c.Enctypes {
		names = append(names, EnctypeName(e))
	}
	fmt.Fprintf(&b, "[libdefaults]\n default_realm = %s\n permitted_enctypes = %s\n ticket_lifetime = %d\n renew_lifetime = %d\n clockskew = %d\n udp_preference_limit = %d\n"+
		" dns_lookup_kdc = %s\n forwardable = %s\n canonicalize = %s\n", c.DefaultRealm, strings.Join(names, " "), seconds(c.TicketLifetime), seconds(c.RenewLifetime), seconds(c.ClockSkew), c.UDPLimit,
		yes(c.DNSLookupKDC), yes(c.Forwardable), yes(c.Canonicalize))
	b.WriteString("[realms]\n")
	for _, r := range slices.Sorted(maps.Keys(c.KDCs)) {
		fmt.Fprintf(&b, " %s = {\n", r)
		for _, k := range c.KDCs[r] {
			proto := ""
			if k.Proto != "" {
				proto = k.Proto + "/"
			}
			fmt.Fprintf(&b, "  kdc = %s%s\n", proto, k.Addr)
		}
		b.WriteString(" }\n")
	}
	b.WriteString("[domain_realm]\n")
	for _, d := range slices.Sorted(maps.Keys(c.DomainRealm)) {
		fmt.Fprintf(&b, " %s = %s\n", d, c.DomainRealm[d])
	}
	b.WriteString("[capaths]\n")
	for _, from := range slices.Sorted(maps.Keys(c.CAPaths)) {
		fmt.Fprintf(&b, " %s = {\n", from)
		for _, to := range slices.Sorted(maps.Keys(c.CAPaths[from])) {
			for _, via := range c.CAPaths[from][to] {
				fmt.Fprintf(&b, "  %s = %s\n", to, via)
			}
		}
		b.WriteString(" }\n")
	}
	return b.String()
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
