package krb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPrincipal(t *testing.T) {
	for in, want := range map[string]Principal{
		"alice":                  {Parts: []string{"alice"}},
		"alice@R":                {Parts: []string{"alice"}, Realm: "R"},
		"nn/host.example@R.COM":  {Parts: []string{"nn", "host.example"}, Realm: "R.COM"},
		`a\/b/c\@d@R`:            {Parts: []string{"a/b", "c@d"}, Realm: "R"},
		"krbtgt/OTHER.COM@R.COM": {Parts: []string{"krbtgt", "OTHER.COM"}, Realm: "R.COM"},
		"HTTP/127.0.0.1@E/X.COM": {Parts: []string{"HTTP", "127.0.0.1"}, Realm: "E/X.COM"},
	} {
		p, err := ParsePrincipal(in)
		if err != nil || !slices.Equal(p.Parts, want.Parts) || p.Realm != want.Realm {
			t.Errorf("%s: %+v, %v", in, p, err)
		}
		if again, err := ParsePrincipal(p.String()); err != nil || !again.Equal(p) {
			t.Errorf("%s is written as %s, which reads as %v (%v)", in, p, again, err)
		}
	}
	for _, bad := range []string{"", "@R", "a@", "a@b@c", "a//b@R", "/a", `a\`} {
		if p, err := ParsePrincipal(bad); err == nil {
			t.Errorf("%q is accepted as %+v", bad, p)
		}
	}
	p, err := ServicePrincipal("nn/_HOST@R", "NN1.Example.com.")
	if err != nil || p.String() != "nn/nn1.example.com@R" {
		t.Errorf("_HOST: %v, %v", p, err)
	}
	if _, err := ServicePrincipal("nn/_HOST@R", ""); err == nil {
		t.Error("_HOST without a host")
	}
}

const sampleConf = `# a comment
[libdefaults]
	default_realm = EXAMPLE.COM
	ticket_lifetime = 1d
	renew_lifetime = "7d"
	clockskew = 120
	udp_preference_limit = 1
	dns_lookup_kdc = false
	default_ccache_name = KEYRING:persistent:%{uid}
	permitted_enctypes = aes256-cts aes128-cts aes256-sha2 nonsense rc4 -rc4
	forwardable = yes
	spake_preauth_groups = edwards25519
	this line makes no sense
includedir /etc/krb5.conf.d
; another comment
[realms]
 EXAMPLE.COM = {
	kdc = kdc1.example.com
	kdc = kdc2.example.com:750
	kdc = tcp/[2001:db8::1]:88
	kdc = https://proxy/KdcProxy
	admin_server = kdc1.example.com
	auth_to_local_names = {
		kdc = not a KDC
	}
	pkinit_anchors = FILE:/x }
 }
 OTHER.COM={
	kdc = k.other.com
 }
[domain_realm]
 .example.com = EXAMPLE.COM
 example.com = EXAMPLE.COM
 odd.example.com = OTHER.COM
[capaths]
 EXAMPLE.COM = {
   THIRD.COM = OTHER.COM
   OTHER.COM = .
 }
[logging]
 kdc = FILE:/var/log/x
`

func TestConf(t *testing.T) {
	dir := t.TempDir()
	conf := strings.ReplaceAll(sampleConf, "/etc/krb5.conf.d", dir+"/conf.d")
	more := filepath.Join(dir, "conf.d")
	if err := os.Mkdir(more, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("krb5.conf", conf)
	write("conf.d/ours", "[realms]\n INCLUDED.COM = {\n kdc = i.example.com\n }\n[libdefaults]\n default_realm = WRONG.COM\n canonicalize = true\n")
	write("conf.d/backup~", "[libdefaults]\n forwardable = no\n")
	write("conf.d/more.conf", "include "+dir+"/deep\n")
	write("deep", "[domain_realm]\n .deep.org = INCLUDED.COM\n include "+dir+"/deep\n")
	c, err := LoadConf(func(k string) (string, bool) { return dir + "/missing:" + dir + "/krb5.conf", k == "KRB5_CONFIG" })
	if err != nil {
		t.Fatal(err)
	}
	if c.DefaultRealm != "EXAMPLE.COM" || c.TicketLifetime != 24*time.Hour || c.RenewLifetime != 7*24*time.Hour || c.ClockSkew != 2*time.Minute ||
		c.UDPLimit != 1 || c.DNSLookupKDC || !c.Forwardable || !c.Canonicalize || c.DefaultCache != "KEYRING:persistent:%{uid}" {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(c.Enctypes, []int32{aes256SHA1, aes128SHA1, aes256SHA2}) {
		t.Errorf("enctypes: %v", enctypeList(c.Enctypes))
	}
	want := []KDC{{Addr: "kdc1.example.com:88"}, {Addr: "kdc2.example.com:750"}, {Addr: "[2001:db8::1]:88", Proto: "tcp"}}
	if !slices.Equal(c.KDCs["EXAMPLE.COM"], want) || len(c.KDCs["OTHER.COM"]) != 1 || len(c.KDCs["INCLUDED.COM"]) != 1 {
		t.Errorf("KDCs: %+v", c.KDCs)
	}
	for host, realm := range map[string]string{"a.b.example.com": "EXAMPLE.COM", "example.com": "EXAMPLE.COM", "odd.example.com": "OTHER.COM", "ODD.example.com.": "OTHER.COM", "x.deep.org": "INCLUDED.COM", "other.org": ""} {
		if got := c.RealmOf(host); got != realm {
			t.Errorf("the realm of %s is %q, want %q", host, got, realm)
		}
	}
	if got := c.CAPaths["EXAMPLE.COM"]; !maps.EqualFunc(got, map[string][]string{"THIRD.COM": {"OTHER.COM"}}, slices.Equal) {
		t.Errorf("capaths: %v", got)
	}
	again, err := ParseConf(c.Text())
	if err != nil || len(again.Notes) > 0 || again.Text() != c.Text() || !slices.Equal(again.KDCs["EXAMPLE.COM"], want) || again.RealmOf("x.deep.org") != "INCLUDED.COM" {
		t.Errorf("written and read again: %v, notes %v\n%s", err, again.Notes, c.Text())
	}
	notes := strings.Join(c.Notes, "\n")
	for _, part := range []string{"krb5.conf:13", "HTTPS proxy", "too many files"} {
		if !strings.Contains(notes, part) {
			t.Errorf("the notes lack %q:\n%s", part, notes)
		}
	}
	if _, err := LoadConf(func(string) (string, bool) { return dir + "/missing", true }); err == nil || !strings.Contains(err.Error(), "KRB5_CONFIG names it") {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := ParseConf("[libdefaults]\npermitted_enctypes = des\n"); err == nil {
		t.Error("a configuration without usable encryption types is accepted")
	}
}

func TestSpan(t *testing.T) {
	for in, want := range map[string]time.Duration{"300": 5 * time.Minute, "24h": 24 * time.Hour, "1d 12h": 36 * time.Hour, "8:30": 8*time.Hour + 30*time.Minute, "0:0:7": 7 * time.Second, "1d2h3m4s": 26*time.Hour + 3*time.Minute + 4*time.Second} {
		if got, ok := parseSpan(in); !ok || got != want {
			t.Errorf("%s: %v, %v", in, got, ok)
		}
	}
	for _, bad := range []string{"", "d", "7x", "-3", "1:2:3:4", "h7"} {
		if got, ok := parseSpan(bad); ok {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

func FuzzConf(f *testing.F) {
	f.Add(sampleConf)
	f.Add("[a]\nb = {\nc = {\n}}\n}\n[x")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseConf(s)
		if err == nil {
			c.RealmOf(s)
		}
	})
}

// keytabBytes writes a keytab as libkrb5 does.
func keytabBytes(es ...KeytabEntry) []byte {
	be := binary.BigEndian
	str := func(b []byte, s string) []byte { return append(be.AppendUint16(b, uint16(len(s))), s...) }
	out := []byte{5, 2}
	for _, e := range es {
		var r []byte
		r = str(be.AppendUint16(r, uint16(len(e.Principal.Parts))), e.Principal.Realm)
		for _, p := range e.Principal.Parts {
			r = str(r, p)
		}
		r = be.AppendUint32(be.AppendUint32(r, 1), uint32(e.Time.Unix()))
		r = be.AppendUint16(append(r, byte(e.Version)), uint16(e.Enctype))
		r = be.AppendUint32(str(r, string(e.key)), e.Version)
		out = append(be.AppendUint32(out, uint32(len(r))), r...)
	}
	return out
}

func testKey(p string, version uint32, enctype int32) KeytabEntry {
	pr, err := ParsePrincipal(p)
	if err != nil {
		panic(err)
	}
	return KeytabEntry{Principal: pr, Time: time.Unix(1e9, 0), Version: version, Enctype: enctype, key: bytes.Repeat([]byte{byte(version)}, keySize(enctype))}
}

func TestKeytab(t *testing.T) {
	b := keytabBytes(testKey("alice@R", 1, aes128SHA1), testKey("alice@R", 300, aes256SHA1), testKey("HTTP/h@R", 2, rc4))
	hole := append([]byte{5, 2, 0xff, 0xff, 0xff, 0xfd, 1, 2, 3}, b[2:]...)
	for name, in := range map[string][]byte{"plain": b, "with a hole": hole, "with zeros behind": append(bytes.Clone(b), make([]byte, 9)...)} {
		es, err := ParseKeytab(in)
		if err != nil || len(es) != 3 {
			t.Fatalf("%s: %v, %v", name, es, err)
		}
		keys := keysOf(es, es[0].Principal)
		if len(keys) != 2 || keys[0].Version != 300 || len(keys[0].key) != 32 {
			t.Errorf("%s: keys %+v", name, keys)
		}
		if got := enctypesOfKeys(keys, []int32{aes128SHA1, aes256SHA1, rc4}); !slices.Equal(got, []int32{aes128SHA1, aes256SHA1}) {
			t.Errorf("%s: enctypes %v", name, got)
		}
		if got := describe(principals(es)); got != "alice@R, HTTP/h@R" {
			t.Errorf("%s: principals %s", name, got)
		}
	}
	for i := range b {
		if es, err := ParseKeytab(b[:i]); err == nil && len(es) == 3 {
			t.Errorf("cut at %d of %d: no key is missing", i, len(b))
		}
	}
	if _, err := ParseKeytab([]byte{5, 1, 0}); err == nil {
		t.Error("version 1 is accepted")
	}
}

func FuzzKeytab(f *testing.F) {
	f.Add(keytabBytes(testKey("alice@R", 1, aes128SHA1)))
	f.Add([]byte{5, 2, 0x80, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		es, err := ParseKeytab(b)
		if err != nil {
			return
		}
		for _, p := range principals(es) {
			_, _ = keysOf(es, p), p.String()
		}
	})
}

func TestCacheFile(t *testing.T) {
	dir := t.TempDir()
	env := func(v string) func(string) (string, bool) {
		return func(k string) (string, bool) { return v, k == "KRB5CCNAME" && v != "" }
	}
	if err := os.WriteFile(filepath.Join(dir, "primary"), []byte("tktABC\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{"FILE:/a/b": "/a/b", "/a/b": "/a/b", "/odd:name": "/odd:name", "DIR:" + dir: dir + "/tktABC", "DIR::" + dir + "/tkt2": dir + "/tkt2", "DIR:/none": "/none/tkt"} {
		if got, err := CacheFile("", env(in), nil); err != nil || got != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	for _, in := range []string{"KCM:", "KCM:1000", "KEYRING:persistent:0", "API:x", "MEMORY:y"} {
		_, err := CacheFile("", env(in), nil)
		var ce *CacheError
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), "export KRB5CCNAME=FILE:") {
			t.Errorf("%s: %v", in, err)
		}
	}
	if _, err := CacheFile("", env(""), &Conf{DefaultCache: "KEYRING:persistent:%{uid}"}); err == nil {
		t.Error("a keyring of krb5.conf is accepted")
	}
	if got, err := CacheFile("", env(""), &Conf{DefaultCache: "FILE:/run/%{uid}/cc_%{null}x"}); err != nil || !strings.HasSuffix(got, "/cc_x") || strings.Contains(got, "%") {
		t.Errorf("a name of krb5.conf: %s, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "primary"), []byte("../../etc/passwd"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := CacheFile("DIR:"+dir, env(""), nil); err == nil {
		t.Errorf("a primary that leads elsewhere: %s", got)
	}
}

// cacheBytes writes a cache of version 4 without tickets, or with one that is no ticket.
func cacheBytes(with bool) []byte {
	be := binary.BigEndian
	data := func(b []byte, s string) []byte { return append(be.AppendUint32(b, uint32(len(s))), s...) }
	princ := func(b []byte, realm string, parts ...string) []byte {
		b = be.AppendUint32(be.AppendUint32(b, 1), uint32(len(parts)))
		b = data(b, realm)
		for _, p := range parts {
			b = data(b, p)
		}
		return b
	}
	b := append([]byte{5, 4, 0, 12}, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0)
	b = princ(b, "R", "alice")
	if !with {
		return b
	}
	b = princ(princ(b, "R", "alice"), "X-CACHECONF:", "krb5_ccache_conf_data", "fast_avail")
	b = data(be.AppendUint16(b, 0), "")
	b = append(b, make([]byte, 16+1+4+4+4)...)
	return data(data(b, "yes"), "")
}

func TestCache(t *testing.T) {
	for _, with := range []bool{false, true} {
		b := cacheBytes(with)
		c, err := ParseCache(b)
		if err != nil || c.Client.String() != "alice@R" || len(c.Tickets) != 0 {
			t.Errorf("%+v, %v", c, err)
		}
		for i := range b {
			if i != len(cacheBytes(false)) {
				if _, err := ParseCache(b[:i]); err == nil {
					t.Errorf("cut at %d of %d: accepted", i, len(b))
				}
			}
		}
	}
	for _, bad := range []string{"", "\x05\x02", "HDTS\x00"} {
		if _, err := ParseCache([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzCache(f *testing.F) {
	f.Add(cacheBytes(true))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := ParseCache(b); err == nil {
			c.find(tgtOf("R", "R"), time.Time{})
		}
	})
}
