package schemaregistry

import (
	"context"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/internal/hadoop/krb/krbtest"
)

// guarded is a registry that demands SPNEGO, and a realm in which etl may ask it.
type guarded struct {
	*fake
	realm  *krbtest.Realm
	login  *krb.Login
	proofs atomic.Int64
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{fake: newFake(t), realm: krbtest.New("A.TEST")}
	g.realm.Add("etl", 18)
	g.realm.Add("HTTP/127.0.0.1", 18)
	conf, err := krb.ParseConf("[libdefaults]\n default_realm = A.TEST\n[realms]\n A.TEST = {\n kdc = a.test\n }\n")
	if err != nil {
		t.Fatal(err)
	}
	if g.login, err = krb.Open(krb.Config{Conf: conf, Keytab: "etl.keytab", KeytabData: g.realm.Keytab(0, "etl"), Dial: krbtest.Dial(g.realm)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.realm.Wait)
	behind := g.srv.Config.Handler
	g.srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, proof, err := g.prove(r.Header.Get("Authorization"))
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Negotiate")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"message":%q}`, err)
			return
		}
		if client != "etl@A.TEST" {
			t.Errorf("%s comes in the place of etl", client)
		}
		w.Header().Set("WWW-Authenticate", "Negotiate "+proof)
		behind.ServeHTTP(w, r)
	})
	return g
}

// prove checks a ticket and returns whose it is, and our own proof.
func (g *guarded) prove(header string) (client, proof string, err error) {
	token, ok := strings.CutPrefix(header, "Negotiate ")
	raw, err := base64.StdEncoding.DecodeString(token)
	if !ok || err != nil {
		return "", "", errors.New("no ticket")
	}
	// The token of Kerberos's is the last part of SPNEGO's.
	inner := raw[max(0, strings.LastIndex(string(raw), "\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\x00")):]
	n := len(inner)
	a, answer, err := g.realm.Accept("HTTP/127.0.0.1", append([]byte{0x60, 0x82, byte(n >> 8), byte(n)}, inner...), 18)
	if err != nil {
		return "", "", err
	}
	g.proofs.Add(1)
	resp, err := asn1.MarshalWithParams(struct {
		State asn1.Enumerated `asn1:"explicit,tag:0"`
		Token []byte          `asn1:"explicit,tag:2"`
	}{0, answer}, "explicit,tag:1")
	return a.Client, base64.StdEncoding.EncodeToString(resp), err
}

func (g *guarded) client(t *testing.T, who tickets) *client {
	c, err := newClient(g.options(t))
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = negotiating(c.http.Transport, who)
	return c
}

// A registry that demands Kerberos is read from and written to by tickets.
func TestKerberos(t *testing.T) {
	g := newGuarded(t)
	c := g.client(t, g.login)
	f := Avro[click]().Schema("clicks-value", clickSchema)
	f.registry.client = c
	want := []click{{"a", 1, nil, time.UnixMilli(1000).UTC()}}
	w := open(t, flow.Opener[click](f), g.options(t))
	var m flow.Messages
	if err := w.Encode(&m, want); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Decode(nil, &m, 0); err != nil || len(got) != 1 || got[0].User != "a" {
		t.Errorf("got %+v, %v", got, err)
	}
	if g.proofs.Load() == 0 {
		t.Error("no ticket was shown")
	}
	// Without one, the registry refuses.
	plain, err := newClient(g.options(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.schema(t.Context(), 77); err == nil || !strings.Contains(err.Error(), "no ticket") {
		t.Errorf("without a ticket: %v", err)
	}
}

// away is a KDC that does not answer for a while, or has nothing for us.
type away struct {
	tickets
	times atomic.Int64
	err   error
}

func (a *away) Ticket(ctx context.Context, service krb.Principal) (*krb.Ticket, error) {
	if a.times.Add(-1) >= 0 {
		return nil, a.err
	}
	return a.tickets.Ticket(ctx, service)
}

func TestKerberosErrors(t *testing.T) {
	g := newGuarded(t)
	g.schemas["/schemas/ids/3"] = confluentSchema{Schema: `"string"`}
	a := &away{tickets: g.login, err: errors.New("no KDC answers")}
	c := g.client(t, a)
	a.times.Store(3)
	if _, err := c.schema(t.Context(), 3); err != nil {
		t.Errorf("after a while without a KDC: %v", err)
	}
	g.schemas["/schemas/ids/4"] = g.schemas["/schemas/ids/3"]
	a.times.Store(1 << 40)
	c.patience = 500 * time.Millisecond
	_, err := c.schema(t.Context(), 4)
	if err == nil || !strings.Contains(err.Error(), "no KDC answers") || strings.Contains(err.Error(), "registry does not answer") {
		t.Errorf("without a KDC: %v", err)
	}
	if u, ok := errors.AsType[*UnavailableError](err); !ok || !u.Fatal() {
		t.Errorf("without a KDC, the record is at fault: %v", err)
	}
	a.err, c.patience = &krb.KDCError{From: "the KDC", Code: 7}, time.Hour
	if _, err := c.schema(t.Context(), 4); err == nil || !strings.Contains(err.Error(), "the KDC refused") {
		t.Errorf("a refusal: %v", err)
	}

	krb5 := filepath.Join(t.TempDir(), "krb5.conf")
	if err := os.WriteFile(krb5, []byte("[libdefaults]\n default_realm = A.TEST\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, more := range map[string][]string{
		"want true or false":          {optKerberos, "maybe"},
		"cannot read the keytab":      {optKerberos, "true", "kafka.sasl.kerberos.conf", krb5, "kafka.sasl.kerberos.keytab", "/does/not/exist"},
		"there is no ticket cache /x": {optKerberos, "true", optKerberosConf, krb5, optKerberosCache, "/x"},
	} {
		if _, err := newClient(g.options(t, more...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", more, err, want)
		}
	}
	keytab := filepath.Join(t.TempDir(), "keytab")
	if err := os.WriteFile(keytab, g.realm.Keytab(0, "etl"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newClient(g.options(t, optKerberos, "true", optKerberosConf, krb5, optKerberosKeytab, keytab, optToken, "hush")); err == nil || !strings.Contains(err.Error(), "want one of them") {
		t.Errorf("Kerberos and a token: %v", err)
	}
}
