package kerberos

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// env is an environment of these entries alone.
func env(entries ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, e := range entries {
			if k, v, _ := strings.Cut(e, "="); k == name {
				return v, true
			}
		}
		return "", false
	}
}

func realm(t *testing.T, opt testbed.KDCOptions) (*testbed.Bed, *testbed.KDC) {
	t.Helper()
	testbed.Group(t, "kerberos")
	b := testbed.New(t)
	opt.Principals = append(opt.Principals, "alice", "bob", "nn/localhost")
	return b, testbed.StartKDC(t, b, opt)
}

// service gets a ticket for nn/localhost and a granting ticket on the way.
func service(t *testing.T, l *krb.Login) (*krb.Ticket, error) {
	t.Helper()
	return l.Ticket(t.Context(), krb.Principal{Parts: []string{"nn", "localhost"}})
}

// TestLogin logs in by keytab and by cache, with every encryption type, by TCP and UDP, past a dead KDC.
func TestLogin(t *testing.T) {
	for name, opt := range map[string]testbed.KDCOptions{
		"sha1":   {},
		"sha2":   {Enctypes: "aes256-cts-hmac-sha384-192 aes128-cts-hmac-sha256-128"},
		"tcp":    {Extra: "  udp_preference_limit = 1\n  unknown_line = 7\n"},
		"dead":   {Kdcs: []string{deadAddr(t)}},
		"silent": {Kdcs: []string{silentAddr(t)}},
	} {
		t.Run(name, func(t *testing.T) {
			b, k := realm(t, opt)
			kt := k.Keytab("alice.keytab", false, "alice")
			var mu sync.Mutex
			asked := map[string]bool{}
			l, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: kt, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				mu.Lock()
				asked[network] = asked[network] || addr == k.Addr
				mu.Unlock()
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}})
			if err != nil {
				t.Fatal(err)
			}
			tkt, err := service(t, l)
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			if asked["udp"] == (name == "tcp") {
				t.Errorf("the KDC was asked by %v", asked)
			}
			mu.Unlock()
			t.Logf("%v: %v until %v", l.Principal(), krb.EnctypeName(tkt.Enctype()), tkt.End)
			for _, cache := range []string{"FILE:" + b.Dir("c") + "/cc", "DIR:" + b.Dir("d")} {
				k.Kinit(cache, kt, "alice")
				l, err := krb.Open(krb.Config{Env: env(append(k.Env(), "KRB5CCNAME="+cache)...)})
				if err != nil {
					t.Fatal(err)
				}
				if l.Principal().String() != "alice@"+k.Realm {
					t.Errorf("%s belongs to %v", cache, l.Principal())
				}
				if _, err := service(t, l); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// deadAddr is an address where nobody listens.
func deadAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// silentAddr is an address that takes connections and datagrams, and never answers.
func silentAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if u, err := net.ListenPacket("udp", l.Addr().String()); err == nil { // another may have it, which does not answer a KDC's clients either
		t.Cleanup(func() { u.Close() })
	}
	return l.Addr().String()
}

// TestRealms has two realms that trust each other. A user of the one gets tickets for services of the other, by keytab and by a cache of kinit's, which krb5.conf
// says by [domain_realm], and which it leaves to the KDCs to know.
func TestRealms(t *testing.T) {
	testbed.Group(t, "kerberos")
	b := testbed.New(t)
	trust := map[string]string{"krbtgt/EAST.TEST@WEST.TEST": "between-us", "krbtgt/WEST.TEST@EAST.TEST": "and-back"}
	west := testbed.StartKDC(t, b, testbed.KDCOptions{Realm: "WEST.TEST", Principals: []string{"alice"}, Passwords: trust})
	east := testbed.StartKDC(t, b, testbed.KDCOptions{Realm: "EAST.TEST", Principals: []string{"nn/host.east.test"}, Passwords: trust})
	included := b.Dir("krb5.conf.d")
	b.File("krb5.conf.d/realms", "[realms]\n WEST.TEST = {\n  kdc = "+west.Addr+"\n }\n")
	b.File("krb5.conf.d/east.conf", "[realms]\n EAST.TEST = {\n  kdc = "+east.Addr+"\n  auth_to_local = DEFAULT\n }\n[domain_realm]\n .east.test = EAST.TEST\n")
	b.File("krb5.conf.d/ignored~", "[realms]\n WEST.TEST = {\n  kdc = nowhere.invalid\n }\n")
	conf := b.File("krb5.conf", "[libdefaults]\n default_realm = WEST.TEST\n dns_lookup_kdc = false\n rdns = false\n udp_preference_limit = 1\nincludedir "+included+"\n")
	kt := west.KeytabOf("alice")
	cache := "FILE:" + filepath.Join(b.Dir("c"), "cc")
	west.Kinit(cache, kt, "alice")
	for name, cfg := range map[string]krb.Config{"keytab": {Keytab: kt}, "cache": {Cache: cache}} {
		cfg.Env = env("KRB5_CONFIG=" + conf)
		l, err := krb.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, realm := range []string{"", "EAST.TEST"} {
			tkt, err := l.Ticket(t.Context(), krb.Principal{Parts: []string{"nn", "host.east.test"}, Realm: realm})
			if err != nil || tkt.Server.Realm != "EAST.TEST" || tkt.Client.String() != "alice@WEST.TEST" {
				t.Errorf("%s, realm %q: %+v, %v", name, realm, tkt, err)
			}
		}
		if _, err := l.Ticket(t.Context(), krb.Principal{Parts: []string{"nn", "x"}, Realm: "NORTH.TEST"}); err == nil || !strings.Contains(err.Error(), "the realm WEST.TEST does not lead to NORTH.TEST") {
			t.Errorf("%s, a realm that nobody trusts: %v", name, err)
		}
	}
}

// TestKeys logs in with keytabs that do not fit the KDC in every way that happens.
func TestKeys(t *testing.T) {
	_, k := realm(t, testbed.KDCOptions{Principals: []string{"carol"}})
	one := k.Keytab("one.keytab", false, "alice")
	t.Run("one enctype", func(t *testing.T) {
		k.Admin("ktadd -k " + filepath.Join(filepath.Dir(one), "aes128.keytab") + " -e aes128-cts-hmac-sha1-96:normal bob\n")
		l, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: filepath.Join(filepath.Dir(one), "aes128.keytab")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service(t, l); err != nil {
			t.Error(err)
		}
	})
	t.Run("other version", func(t *testing.T) {
		// The KDC is made to count the same keys otherwise, as Active Directory does.
		k.Admin("modprinc -kvno 9 alice\n")
		l, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: one})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service(t, l); err != nil {
			t.Error(err)
		}
	})
	t.Run("changed", func(t *testing.T) {
		k.Keytab("two.keytab", false, "alice")
		l, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: one})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service(t, l); err == nil || !strings.Contains(err.Error(), "keytab") {
			t.Errorf("an old key: %v", err)
		} else {
			t.Log(err)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		kt := k.Keytab("carol.keytab", false, "carol")
		k.Admin("delprinc -force carol\n")
		l, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: kt})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service(t, l); err == nil || !strings.Contains(err.Error(), "no principal carol@TEST.LOCAL") {
			t.Errorf("an unknown principal: %v", err)
		}
		if _, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: kt, Principal: "dave"}); err == nil || !strings.Contains(err.Error(), "carol@TEST.LOCAL") {
			t.Errorf("a principal that the keytab lacks: %v", err)
		}
	})
	t.Run("no service", func(t *testing.T) {
		l, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: filepath.Join(filepath.Dir(one), "two.keytab")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Ticket(t.Context(), krb.Principal{Parts: []string{"nn", "elsewhere"}, Realm: k.Realm}); err == nil || !strings.Contains(err.Error(), "no service nn/elsewhere@TEST.LOCAL") {
			t.Errorf("an unknown service: %v", err)
		}
	})
}

// TestSkew has a clock that is wrong by more than the KDC bears.
func TestSkew(t *testing.T) {
	_, k := realm(t, testbed.KDCOptions{})
	k.Admin("modprinc +requires_preauth alice\n")
	kt := k.Keytab("alice.keytab", false, "alice")
	for _, preauth := range []string{"+", "-"} { // with a proof in the request the KDC sees the difference, without one we do
		k.Admin("modprinc " + preauth + "requires_preauth alice\n")
		for by, want := range map[time.Duration]string{17 * time.Minute: "ahead of the KDC's", -17 * time.Minute: "behind the KDC's"} {
			l, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: kt, Now: func() time.Time { return time.Now().Add(by) }})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := service(t, l); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "clock is 1") || !strings.Contains(err.Error(), "m") {
				t.Errorf("a clock that is wrong by %v, preauth %s: %v", by, preauth, err)
			}
		}
	}
}

// TestRenewal outlives tickets of seconds: a keytab logs in again, a cache is renewed and read again when kinit wrote it.
func TestRenewal(t *testing.T) {
	b, k := realm(t, testbed.KDCOptions{MaxLife: "15s", Renewable: "1h"})
	kt := k.Keytab("alice.keytab", false, "alice")
	cache := filepath.Join(b.Dir("c"), "cc")
	k.Kinit(cache, kt, "alice")
	keytab, err := krb.Open(krb.Config{Env: env(k.Env()...), Keytab: kt})
	if err != nil {
		t.Fatal(err)
	}
	cached, err := krb.Open(krb.Config{Env: env(k.Env()...), Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	first, err := service(t, keytab)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service(t, cached); err != nil {
		t.Fatal(err)
	}
	renewable := filepath.Join(b.Dir("c"), "renewable")
	k.Kinit(renewable, kt, "alice", "-r", "1h")
	renewed, err := krb.Open(krb.Config{Env: env(k.Env()...), Cache: renewable})
	if err != nil {
		t.Fatal(err)
	}
	b.Eventually("a ticket by keytab after the first one's end", time.Minute, func() error {
		if tkt, err := service(t, renewed); err != nil || !tkt.End.After(time.Now()) {
			t.Fatalf("a cache that can be renewed: %v", err)
		}
		if time.Now().Before(first.End) {
			return context.DeadlineExceeded
		}
		next, err := service(t, keytab)
		if err == nil && !next.End.After(first.End) {
			t.Fatal("an expired ticket was given out")
		}
		return err
	})
	if tkt, err := service(t, renewed); err != nil || !tkt.End.After(first.End) {
		t.Errorf("a cache that can be renewed: %v", err)
	}
	if _, err := service(t, cached); err == nil || !strings.Contains(err.Error(), "run kinit") {
		t.Errorf("an expired cache: %v", err)
	}
	k.Kinit(cache, kt, "alice")
	if _, err := service(t, cached); err != nil {
		t.Errorf("after kinit: %v", err)
	}
	if err := os.Remove(cache); err != nil {
		t.Fatal(err)
	}
	if _, err := service(t, cached); err != nil {
		t.Errorf("after kdestroy: %v", err)
	}
}
