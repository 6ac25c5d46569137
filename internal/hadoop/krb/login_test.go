package krb_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/internal/hadoop/krb/krbtest"
)

// world is a realm with alice, a service, and what a client needs.
type world struct {
	t     *testing.T
	realm *krbtest.Realm
	conf  *krb.Conf
	dir   string
}

const conf = `[libdefaults]
 default_realm = A.TEST
 dns_lookup_kdc = false
 renew_lifetime = 7d
 ticket_lifetime = 10h
[realms]
 A.TEST = {
  kdc = dead.test
  kdc = a.test
 }
 B.TEST = {
  kdc = tcp/b.test
 }
[domain_realm]
 .b.test = B.TEST
`

func newWorld(t *testing.T, enctypes ...int32) *world {
	t.Helper()
	if len(enctypes) == 0 {
		enctypes = []int32{18, 17}
	}
	c, err := krb.ParseConf(conf)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, krbtest.New("A.TEST"), c, t.TempDir()}
	w.realm.Preauth = true
	w.realm.Add("alice", enctypes...)
	w.realm.Add("nn/host", 18)
	return w
}

func (w *world) keytab(kvno int, principals ...string) string {
	w.t.Helper()
	name := filepath.Join(w.t.TempDir(), "keytab")
	if err := os.WriteFile(name, w.realm.Keytab(kvno, principals...), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}

func (w *world) open(cfg krb.Config, realms ...*krbtest.Realm) *krb.Login {
	w.t.Helper()
	cfg.Conf, cfg.Dial = w.conf, krbtest.Dial(append(realms, w.realm)...)
	l, err := krb.Open(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

var nameNode = krb.Principal{Parts: []string{"nn", "host"}, Realm: "A.TEST"}

func (w *world) asked() []string {
	w.realm.Lock()
	defer w.realm.Unlock()
	return slices.Clone(w.realm.Requests)
}

func TestKeytabLogin(t *testing.T) {
	for name, x := range map[string]struct {
		enctypes []int32
		kvno     int
	}{
		"aes256 alone": {[]int32{18}, 0}, "aes128 alone": {[]int32{17}, 0}, "sha2 alone": {[]int32{20}, 0}, "rc4 alone": {[]int32{23}, 0}, "another version": {[]int32{18, 17}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, x.enctypes...)
			l := w.open(krb.Config{Keytab: w.keytab(x.kvno, "alice")})
			tkt, err := l.Ticket(t.Context(), nameNode)
			if err != nil {
				t.Fatal(err)
			}
			if tkt.Client.String() != "alice@A.TEST" || tkt.Server.String() != "nn/host@A.TEST" {
				t.Errorf("the ticket is for %v to %v", tkt.Client, tkt.Server)
			}
			if _, err := l.Ticket(t.Context(), nameNode); err != nil {
				t.Error(err)
			}
			if got := w.asked(); !slices.Equal(got, []string{"login alice", "login alice", "ticket nn/host"}) {
				t.Errorf("the KDC was asked for %v", got)
			}
		})
	}
}

func TestLoginErrors(t *testing.T) {
	for name, x := range map[string]struct {
		break_ func(*world)
		want   string
	}{
		"unknown":     {func(w *world) { w.realm.Refuse = 6 }, "no principal alice@A.TEST"},
		"old key":     {func(w *world) { w.realm.Add("alice", 18, 17) }, "password was changed after the keytab"},
		"other types": {func(w *world) { w.realm.Add("alice", 20) }, "the KDC none of alice@A.TEST"},
		"locked":      {func(w *world) { w.realm.Refuse = 18 }, "locked or disabled"},
		"behind":      {func(w *world) { w.realm.Now = func() time.Time { return time.Now().Add(9 * time.Minute) } }, "9m0s behind"},
		"ahead":       {func(w *world) { w.realm.Now = func() time.Time { return time.Now().Add(-time.Hour) } }, "1h0m0s ahead"},
		"no service":  {func(w *world) { w.realm.Add("nn/host") }, "no service nn/host@A.TEST"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			l := w.open(krb.Config{Keytab: w.keytab(0, "alice")})
			x.break_(w)
			if _, err := l.Ticket(t.Context(), nameNode); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, want %q in it", err, x.want)
			}
		})
	}
}

// TestSilence has no KDC that answers.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.realm.Silent = true
		l := w.open(krb.Config{Keytab: w.keytab(0, "alice")})
		start := time.Now()
		_, err := l.Ticket(t.Context(), nameNode)
		if err == nil || !strings.Contains(err.Error(), "no KDC of A.TEST answers") || time.Since(start) > 15*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		w.realm.Wait()
	})
}

// TestKeytabLifetime uses a keytab for a week with a KDC that refuses renewals and is away for a while.
func TestKeytabLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.realm.NoRenewal = true
		l := w.open(krb.Config{Keytab: w.keytab(0, "alice")})
		for hour := range 7 * 24 {
			away := hour%50 == 20
			w.realm.Lock()
			w.realm.Silent = away
			w.realm.Unlock()
			tkt, err := l.Ticket(t.Context(), nameNode)
			if err != nil || !tkt.End.After(time.Now()) {
				t.Fatalf("hour %d (KDC away: %v): %v", hour, away, err)
			}
			time.Sleep(time.Hour)
		}
		if got := len(w.asked()); got > 100 {
			t.Errorf("the KDC was asked %d times in a week", got)
		}
		w.realm.Wait()
	})
}

// TestConcurrent asks from many goroutines at once: one login does for all, and one who gives up takes nobody with it.
func TestConcurrent(t *testing.T) {
	w := newWorld(t)
	l := w.open(krb.Config{Keytab: w.keytab(0, "alice")})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			ctx := t.Context()
			if i%10 == 0 {
				c, cancel := context.WithCancel(ctx)
				cancel()
				_, _ = l.Ticket(c, nameNode)
				return
			}
			if _, err := l.Ticket(ctx, nameNode); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, r := range w.asked() {
		if r == "ticket nn/host" {
			n++
		}
	}
	if n < 1 || n > 11 {
		t.Errorf("%d tickets were asked for", n)
	}
}

// TestOtherRealms gets tickets for services of another realm: by [domain_realm], and by referral.
func TestOtherRealms(t *testing.T) {
	w := newWorld(t)
	b := krbtest.New("B.TEST")
	b.Add("nn/x.b.test", 18)
	b.Add("HTTP/odd.test", 18)
	w.realm.Trust(b)
	w.realm.Lock()
	w.realm.Referrals["HTTP/odd.test"] = "B.TEST"
	w.realm.Unlock()
	l := w.open(krb.Config{Keytab: w.keytab(0, "alice")}, b)
	for _, p := range []krb.Principal{{Parts: []string{"nn", "x.b.test"}}, {Parts: []string{"nn", "x.b.test"}, Realm: "B.TEST"}, {Parts: []string{"HTTP", "odd.test"}}} {
		tkt, err := l.Ticket(t.Context(), p)
		if err != nil {
			t.Errorf("%v: %v", p, err)
			continue
		}
		_, token, err := tkt.Initiate(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		a, _, err := b.Accept(strings.Join(p.Parts, "/"), token, 0)
		if err != nil || a.Client != "alice@A.TEST" {
			t.Errorf("%v: %+v, %v", p, a, err)
		}
	}
	if _, err := l.Ticket(t.Context(), krb.Principal{Parts: []string{"nn", "y"}, Realm: "C.TEST"}); err == nil || !strings.Contains(err.Error(), "A.TEST does not lead to C.TEST") {
		t.Errorf("a realm that nobody trusts: %v", err)
	}
}

// context opens a GSSAPI context and its other side.
func (w *world) context(subkey int32) (*krb.Context, *krbtest.Acceptor) {
	w.t.Helper()
	l := w.open(krb.Config{Keytab: w.keytab(0, "alice")})
	tkt, err := l.Ticket(w.t.Context(), nameNode)
	if err != nil {
		w.t.Fatal(err)
	}
	c, token, err := tkt.Initiate(time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	a, answer, err := w.realm.Accept("nn/host", token, subkey)
	if err != nil {
		w.t.Fatal(err)
	}
	if a.Client != "alice@A.TEST" {
		w.t.Errorf("the service takes us for %s", a.Client)
	}
	if err := c.Accept(answer); err != nil || !c.Established() {
		w.t.Fatal(err)
	}
	return c, a
}

func TestContext(t *testing.T) {
	for _, subkey := range []int32{0, 17, 18, 19, 20} {
		for _, seal := range []bool{false, true} {
			for _, rotate := range []int{0, 28, 1000} {
				w := newWorld(t)
				c, a := w.context(subkey)
				a.Rotate = rotate
				for n := range 20 {
					msg := bytes.Repeat([]byte{byte(n)}, n*n*37)
					b, err := c.Wrap(msg, seal)
					if err != nil {
						t.Fatal(err)
					}
					if got, sealed, err := a.Unwrap(b); err != nil || sealed != seal || !bytes.Equal(got, msg) {
						t.Fatalf("key %d, seal %v: to the service: %v", subkey, seal, err)
					}
					if b, err = a.Wrap(msg, seal); err != nil {
						t.Fatal(err)
					}
					if got, sealed, err := c.Unwrap(b); err != nil || sealed != seal || !bytes.Equal(got, msg) {
						t.Fatalf("key %d, seal %v, rotated %d: to us: %v", subkey, seal, rotate, err)
					}
					if _, _, err := c.Unwrap(b); err == nil {
						t.Fatal("a repeated message is accepted")
					}
				}
			}
		}
	}
}

func TestContextRefusals(t *testing.T) {
	w := newWorld(t)
	for _, seal := range []bool{false, true} {
		c, a := w.context(18)
		b, err := a.Wrap([]byte("a message of the service's"), seal)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			bad := bytes.Clone(b)
			bad[i] ^= 0x10
			if got, _, err := c.Unwrap(bad); err == nil {
				t.Errorf("byte %d was changed (sealed: %v), and %q is accepted", i, seal, got)
			}
			if got, _, err := c.Unwrap(b[:i]); err == nil {
				t.Errorf("cut at %d (sealed: %v), and %q is accepted", i, seal, got)
			}
		}
		if _, _, err := c.Unwrap(b); err != nil {
			t.Errorf("the true message is refused: %v", err)
		}
		own, err := c.Wrap([]byte("our own"), seal)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Unwrap(own); err == nil {
			t.Error("our own message is accepted when it comes back")
		}
	}
	c, _ := w.context(18)
	if err := c.Accept(nil); err == nil {
		t.Error("a second answer is accepted")
	}
}

// TestImpostor is a service that has no key: it repeats an answer of the true one's.
func TestImpostor(t *testing.T) {
	w := newWorld(t)
	l := w.open(krb.Config{Keytab: w.keytab(0, "alice")})
	tkt, err := l.Ticket(t.Context(), nameNode)
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := tkt.Initiate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, answer, err := w.realm.Accept("nn/host", token, 18)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := tkt.Initiate(time.Now().Add(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Accept(answer); err == nil || c.Established() {
		t.Errorf("an old answer: %v", err)
	}
	if err := c.Accept(token); err == nil {
		t.Error("a request is taken for an answer")
	}
}

func FuzzAccept(f *testing.F) {
	f.Add([]byte("\x60\x0f\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x02\x00\x6f\x00"), []byte("\x05\x04\x05\xff\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x03\xe8"))
	// One context of each kind does for all inputs, since none of them may change it.
	var once sync.Once
	var fresh, good *krb.Context
	f.Fuzz(func(t *testing.T, answer, message []byte) {
		once.Do(func() {
			w := newWorld(t)
			good, _ = w.context(18)
			tkt, err := w.open(krb.Config{Keytab: w.keytab(0, "alice")}).Ticket(t.Context(), nameNode)
			if err != nil {
				t.Fatal(err)
			}
			if fresh, _, err = tkt.Initiate(time.Now()); err != nil {
				t.Fatal(err)
			}
		})
		if err := fresh.Accept(answer); err == nil {
			t.Errorf("an answer of nobody's is accepted: %x", answer)
		}
		if _, _, err := good.Unwrap(message); err == nil {
			t.Errorf("a message of nobody's is accepted: %x", message)
		}
	})
}

// FuzzKDC is a KDC that answers anything.
func FuzzKDC(f *testing.F) {
	r := krbtest.New("A.TEST")
	r.Add("alice", 18)
	r.Preauth = true
	f.Add([]byte("\x7e\x00"))
	f.Add([]byte("\x6b\x82\x00\x04aaaa"))
	f.Add(r.Answer([]byte("\x6a\x00")))
	f.Fuzz(func(t *testing.T, answer []byte) {
		w := newWorld(t)
		kt := w.keytab(0, "alice")
		l, err := krb.Open(krb.Config{Conf: w.conf, Keytab: kt, Timeout: time.Second, Dial: func(context.Context, string, string) (net.Conn, error) {
			c, s := net.Pipe()
			go func() {
				defer s.Close()
				b := make([]byte, 64<<10)
				if _, err := s.Read(b); err == nil {
					_, _ = s.Write(answer)
				}
			}()
			return c, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Ticket(t.Context(), nameNode); err == nil {
			t.Error("a KDC that knows nothing gives a ticket")
		}
	})
}
