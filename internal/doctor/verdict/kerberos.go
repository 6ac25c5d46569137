package verdict

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"

	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

// Krb5 judges krb5.conf.
func Krb5(c *krb.Conf, err error) Verdict {
	switch {
	case err != nil:
		return fail("krb5-conf", "get the cluster's krb5.conf from its administrators, and put it to /etc/krb5.conf or name it by KRB5_CONFIG", "%v", err)
	case c.DefaultRealm == "":
		return fail("krb5-no-realm", "set default_realm in [libdefaults]", "%s names no default realm", strings.Join(c.Files, ", "))
	case len(c.KDCs[c.DefaultRealm]) == 0 && !c.DNSLookupKDC:
		return fail("krb5-no-kdc", "add kdc = HOST to the realm's entry in [realms]", "%s names no KDC of %s, and dns_lookup_kdc is off", strings.Join(c.Files, ", "), c.DefaultRealm)
	case len(c.Notes) > 0:
		return warn("krb5-lines", "mend these lines, or leave them if they are for other programs", "realm %s; passed over: %s", c.DefaultRealm, strings.Join(c.Notes, "; "))
	}
	return pass("realm %s, %s", c.DefaultRealm, count(len(c.KDCs[c.DefaultRealm]), "KDC"))
}

// KDC is what came of asking one KDC.
type KDC struct {
	Addr     string
	TCP, UDP error // why it did not answer
	TriedTCP bool
	TriedUDP bool
	Skew     time.Duration // how far its clock is ahead of ours
	Timed    bool          // it told its time
}

// reached reports whether a KDC answered at all.
func (k KDC) reached() bool { return k.TriedTCP && k.TCP == nil || k.TriedUDP && k.UDP == nil }

// KDCs judges whether the KDCs of a realm answer. udp says whether krb5.conf lets requests go by UDP.
func KDCs(realm string, all []KDC, udp bool) Verdict {
	const open = "open port 88, TCP and UDP, from here to the KDCs, or mend the kdc lines of krb5.conf"
	if len(all) == 0 {
		return fail("kdc-unknown", "add kdc = HOST to the realm's entry in krb5.conf's [realms]", "no KDC of %s is known", realm)
	}
	var dead, good []string
	var half []Verdict
	for _, k := range all {
		switch {
		case !k.reached():
			dead = append(dead, k.Addr+" ("+why(k)+")")
			continue
		case k.TriedTCP && k.TCP != nil:
			half = append(half, warn("kdc-tcp-closed", "open port 88 for TCP: tickets of users with many groups are too long for UDP", "%s answers by UDP, not by TCP (%v)", k.Addr, k.TCP))
		case udp && k.TriedUDP && k.UDP != nil:
			half = append(half, warn("kdc-udp-closed", "open port 88 for UDP, or set udp_preference_limit = 1 in krb5.conf's [libdefaults], so that nobody waits for it",
				"%s answers by TCP, not by UDP (%v)", k.Addr, k.UDP))
		}
		good = append(good, k.Addr)
	}
	switch {
	case len(good) == 0:
		return fail("kdc-unreachable", open, "no KDC of %s answers: %s", realm, strings.Join(dead, "; "))
	case len(dead) > 0:
		return warn("kdc-dead", "take it out of krb5.conf, put it last, or have it started: logins wait for it", "%s of %s does not answer: %s; %s does", count(len(dead), "KDC"), realm, strings.Join(dead, "; "),
			strings.Join(good, ", "))
	case len(half) > 0:
		return All(half)
	case udp:
		return pass("%s answers by TCP and UDP", strings.Join(good, ", "))
	}
	return pass("%s answers by TCP (krb5.conf rules UDP out)", strings.Join(good, ", "))
}

func why(k KDC) string {
	var out []string
	if k.TriedTCP {
		out = append(out, fmt.Sprintf("tcp: %v", k.TCP))
	}
	if k.TriedUDP {
		out = append(out, fmt.Sprintf("udp: %v", k.UDP))
	}
	return strings.Join(out, ", ")
}

// Clock judges by how much this host's clock differs from the KDCs'. bears is how much Kerberos bears.
func Clock(all []KDC, bears time.Duration) Verdict {
	var most time.Duration
	told, by := false, ""
	for _, k := range all {
		if k.Timed && (!told || k.Skew.Abs() > most.Abs()) {
			most, told, by = k.Skew, true, k.Addr
		}
	}
	if !told {
		return Skip("no KDC told its time")
	}
	const fix = "set the clock right, and keep it so: chronyc tracking, or timedatectl set-ntp true"
	side := "behind"
	if most < 0 {
		side = "ahead of"
	}
	size := most.Abs().Round(time.Millisecond)
	switch {
	case most.Abs() > bears:
		return fail("clock-skew", fix, "this host's clock is %v %s that of the KDC %s, and Kerberos bears %v", size.Round(time.Second), side, by, bears)
	case most.Abs() > bears/5:
		return warn("clock-drift", fix, "this host's clock is %v %s that of the KDC %s; beyond %v nobody can log in", size.Round(time.Second), side, by, bears)
	}
	return pass("differs from the KDC's by %v", size)
}

// Credentials are what there is to log in by.
type Credentials struct {
	Keytab string // its file; "": a ticket cache, or tokens
	Cache  string // its file
	Tokens int    // delegation tokens of HDFS at hand
	Err    error  // why it can't be used

	Principal  string
	Principals []string // that a keytab has keys of
	Keys       []string // of the principal
	Mode       uint32   // of the keytab's or cache's file
	End, Renew time.Time
	Enctype    string // of the ticket's session key
	HasTicket  bool
}

// Login judges what there is to log in by, before anybody is asked.
func Login(c Credentials, now time.Time) Verdict {
	if c.Err != nil {
		return noLogin(c)
	}
	if c.Keytab != "" {
		if c.Mode&0o077 != 0 {
			return warn("keytab-readable", "chmod 600 "+c.Keytab+", and have its keys changed if others may have read it",
				"keytab %s can be read by others than its owner (mode %04o), who can act as %s; %s", c.Keytab, c.Mode&0o777, c.Principal, strings.Join(c.Keys, ", "))
		}
		return pass("keytab %s has %s: %s", c.Keytab, c.Principal, strings.Join(c.Keys, ", "))
	}
	if c.Cache == "" {
		return pass("%s, good as long as they are renewed", count(c.Tokens, "delegation token"))
	}
	left := c.End.Sub(now).Round(time.Second)
	life := fmt.Sprintf("ticket of %s in %s, key %s, good for %v more", c.Principal, c.Cache, c.Enctype, left)
	if c.Renew.After(c.End) {
		life += fmt.Sprintf(", renewable until %s", c.Renew.Format(time.RFC3339))
	} else {
		life += "; it can't be renewed"
	}
	switch {
	case !c.HasTicket:
		return fail("ticket-missing", "run kinit "+c.Principal, "the ticket cache %s of %s has no ticket-granting ticket", c.Cache, c.Principal)
	case left <= 0:
		return fail("ticket-expired", "run kinit "+c.Principal, "the ticket of %s in %s expired at %s, %v ago", c.Principal, c.Cache, c.End.Format(time.RFC3339), -left)
	case left < 10*time.Minute:
		return warn("ticket-short", "run kinit "+c.Principal+", or use a keytab (--kerberos.keytab)", "%s", life)
	case c.Mode&0o077 != 0:
		return warn("cache-readable", "chmod 600 "+c.Cache, "%s; the file can be read by others than its owner (mode %04o)", life, c.Mode&0o777)
	}
	return pass("%s", life)
}

func noLogin(c Credentials) Verdict {
	text := c.Err.Error()
	if _, ok := errors.AsType[*krb.CacheError](c.Err); ok {
		return fail("cache-kind", "run: export KRB5CCNAME=FILE:/tmp/krb5cc_heddle && kinit, or use a keytab (--kerberos.keytab)", "%s", text)
	}
	switch {
	case c.Keytab != "" && strings.Contains(text, "cannot choose a principal"):
		return fail("keytab-choice", "name one by --kerberos.principal", "%s", text)
	case c.Keytab != "" && (len(c.Principals) > 0 && len(c.Keys) == 0):
		return fail("keytab-principal", "name one that it has by --kerberos.principal, or have a keytab written for "+orYours(c.Principal), "%s", text)
	case c.Keytab != "" && (strings.Contains(text, "no such file") || strings.Contains(text, "cannot read the keytab:")):
		return fail("keytab-missing", "check --kerberos.keytab, and that you may read the file", "%s", text)
	case c.Keytab != "":
		return fail("keytab-broken", "have the keytab written anew", "%s", text)
	case strings.Contains(text, "there is no ticket cache"):
		return fail("ticket-missing", "run kinit, or name a keytab by --kerberos.keytab", "%s", text)
	}
	return fail("ticket-cache", "run kinit, or name a keytab by --kerberos.keytab", "%s", text)
}

func orYours(principal string) string {
	if principal == "" {
		return "your principal"
	}
	return principal
}

// Ticket judges a try to get tickets.
func Ticket(principal string, end, renew time.Time, err error, now time.Time) Verdict {
	if err == nil {
		text := fmt.Sprintf("%s is logged in for %v", principal, end.Sub(now).Round(time.Second))
		if renew.After(end) {
			text += ", renewable until " + renew.Format(time.RFC3339)
		}
		return pass("%s", text)
	}
	if e, ok := errors.AsType[*krb.KDCError](err); ok {
		return refusedBy(principal, e, err)
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "it is sealed by another key"), strings.Contains(text, "cannot open the answer"):
		return fail("keytab-old", "have the keytab written anew: ktadd, or ktutil with the present password", "%s", text)
	case strings.Contains(text, "and krb5.conf allows"), strings.Contains(text, "wants a proof with a key of"):
		return fail("keytab-enctype", "have the keytab written with AES keys, or allow their type by permitted_enctypes in krb5.conf", "%s", text)
	case strings.Contains(text, "expired"):
		return fail("ticket-expired", "run kinit "+principal, "%s", text)
	case strings.Contains(text, "no KDC of"):
		return fail("kdc-unreachable", "open port 88, TCP and UDP, from here to the KDCs, or mend the kdc lines of krb5.conf", "%s", text)
	}
	return fail("login-failed", "try kinit with the same krb5.conf, by KRB5_TRACE=/dev/stderr", "%s", text)
}

// refusedBy judges a KDC's refusal.
func refusedBy(principal string, e *krb.KDCError, err error) Verdict {
	text := err.Error()
	switch e.Code {
	case errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN:
		return fail("principal-unknown", "check --kerberos.principal and its realm, or have the principal made", "%s", text)
	case errorcode.KDC_ERR_ETYPE_NOSUPP:
		return fail("keytab-enctype", "have the keytab written anew with the types of keys that the KDC has", "%s", text)
	case errorcode.KDC_ERR_PREAUTH_FAILED:
		return fail("keytab-old", "have the keytab written anew: the principal's password was changed after it was", "%s", text)
	case errorcode.KRB_AP_ERR_SKEW, errorcode.KRB_AP_ERR_TKT_NYV, errorcode.KDC_ERR_NEVER_VALID:
		return fail("clock-skew", "set the clock right, and keep it so: chronyc tracking, or timedatectl set-ntp true", "%s", text)
	case errorcode.KDC_ERR_CLIENT_REVOKED:
		return fail("principal-locked", "ask the KDC's administrators to unlock "+principal, "%s", text)
	case errorcode.KDC_ERR_KEY_EXPIRED:
		return fail("password-expired", "change the password of "+principal+" (kpasswd), and write the keytab anew", "%s", text)
	case errorcode.KRB_AP_ERR_TKT_EXPIRED:
		return fail("ticket-expired", "run kinit "+principal, "%s", text)
	case errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN:
		return fail("service-unknown", "compare the principal in Hadoop's configuration, and the server's name in DNS, with what the KDC has", "%s", text)
	}
	return fail("kdc-refused", "ask the KDC's administrators, with this text and the time", "%s", text)
}

// Host is what DNS says of a host.
type Host struct {
	Name  string   // as the configuration has it
	Addrs []string // forward
	Err   error
	Back  map[string][]string // names of each address
}

// DNS judges the names of the cluster's servers.
func DNS(hosts []Host, kerberos bool) Verdict {
	var vs []Verdict
	for _, h := range hosts {
		if h.Err != nil {
			vs = append(vs, fail("dns-forward", "mend the name in Hadoop's configuration, or have it put into DNS or /etc/hosts", "%s can't be resolved: %v", h.Name, h.Err))
			continue
		}
		for _, a := range h.Addrs {
			names, ok := h.Back[a]
			if !ok || a == h.Name {
				continue
			}
			switch same(h.Name, names) {
			case true:
			default:
				text := fmt.Sprintf("%s is %s, whose name is %s", h.Name, a, strings.Join(names, ", "))
				if len(names) == 0 {
					text = fmt.Sprintf("%s is %s, for which there is no name", h.Name, a)
				}
				fix := "have the reverse entry in DNS changed to " + h.Name
				if kerberos {
					fix += ", or set rdns = false in krb5.conf: programs of others look for the server's principal under that name"
				}
				vs = append(vs, warn("dns-reverse", fix, "%s", text))
			}
		}
	}
	if len(vs) == 0 {
		return pass("%s, forward and reverse", count(len(hosts), "name"))
	}
	return All(vs)
}

// same reports whether one of the names is the host, whole or up to its first dot.
func same(host string, names []string) bool {
	short := func(s string) string {
		s, _, _ = strings.Cut(strings.ToLower(strings.TrimSuffix(s, ".")), ".")
		return s
	}
	for _, n := range names {
		n = strings.ToLower(strings.TrimSuffix(n, "."))
		if strings.EqualFold(n, host) || !strings.Contains(host, ".") && short(n) == short(host) {
			return true
		}
	}
	return false
}
