package hrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/internal/hadoop/krb/krbtest"
)

// kerberos is a realm and a user who is logged in to it.
func kerberos(t *testing.T) (*krbtest.Realm, *krb.Login) {
	t.Helper()
	conf, err := krb.ParseConf("[libdefaults]\n default_realm = A.TEST\n[realms]\n A.TEST = {\n kdc = a.test\n }\n")
	if err != nil {
		t.Fatal(err)
	}
	r := krbtest.New("A.TEST")
	r.Add("alice", 18)
	r.Add("nn/host.a.test", 18)
	r.Add("nn/evil.a.test", 18)
	kt := filepath.Join(t.TempDir(), "keytab")
	if err := os.WriteFile(kt, r.Keytab(0, "alice"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := krb.Open(krb.Config{Conf: conf, Keytab: kt, Dial: krbtest.Dial(r)})
	if err != nil {
		t.Fatal(err)
	}
	return r, l
}

func offer(service, host string, allowed ...string) Offer {
	method, mechanism := "KERBEROS", "GSSAPI"
	return Offer{Server: "host.a.test:8020", Allowed: allowed, Auth: &pb.RpcSaslProto_SaslAuth{Method: &method, Mechanism: &mechanism, Protocol: &service, ServerId: &host}}
}

// negotiate runs SASL's GSSAPI against a server that offers layers, and returns both ends.
func negotiate(t *testing.T, layers byte, allowed ...string) (Layer, *krbtest.Acceptor, byte, error) {
	t.Helper()
	r, l := kerberos(t)
	first, ex, err := ByKerberos(l, "nn/_HOST@A.TEST").Begin(t.Context(), offer("nn", "host.a.test", allowed...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ex.Finish(nil); err == nil {
		t.Error("an end before the beginning is accepted")
	}
	a, answer, err := r.Accept("nn/host.a.test", first, 17)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := ex.Next(answer); err != nil || len(b) != 0 || b == nil {
		t.Fatalf("the answer to the proof is %v, %v", b, err)
	}
	if _, err := ex.Finish(nil); err == nil {
		t.Error("an end before protection was agreed on is accepted")
	}
	ask, err := a.Wrap([]byte{layers, 1, 0, 0}, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ex.Next(ask)
	if err != nil {
		return nil, nil, 0, err
	}
	chosen, _, err := a.Unwrap(b)
	if err != nil || len(chosen) != 4 {
		t.Fatalf("the choice is %v, %v", chosen, err)
	}
	if size := binary.BigEndian.Uint32(chosen) & 0xffffff; (size == 0) != (chosen[0] == 1) {
		t.Errorf("with layer %d, the size is %d", chosen[0], size)
	}
	layer, err := ex.Finish(nil)
	return layer, a, chosen[0], err
}

func TestKerberosLayers(t *testing.T) {
	for _, x := range []struct {
		layers  byte
		allowed []string
		want    byte
	}{
		{1, nil, 1}, {7, nil, 4}, {7, []string{"auth"}, 1}, {7, []string{"auth-int", "auth"}, 2}, {3, nil, 2}, {4, []string{"auth", "auth-conf"}, 4}, {1, []string{"auth-conf"}, 0}, {0, nil, 0},
	} {
		layer, a, chosen, err := negotiate(t, x.layers, x.allowed...)
		if x.want == 0 {
			if err == nil || !strings.Contains(err.Error(), "hadoop.rpc.protection") {
				t.Errorf("layers %d, %v allowed: %v", x.layers, x.allowed, err)
			}
			continue
		}
		if err != nil || chosen != x.want || (layer == nil) != (x.want == 1) {
			t.Errorf("layers %d, %v allowed: layer %d (%v), %v, want %d", x.layers, x.allowed, chosen, layer, err, x.want)
			continue
		}
		if layer == nil {
			continue
		}
		big := bytes.Repeat([]byte("0123456789abcdef"), 20000)
		for _, msg := range [][]byte{{}, []byte("hello"), big} {
			b, err := layer.Wrap(msg)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(b, []byte("hello")) == (x.want == 4) && len(msg) == 5 {
				t.Errorf("with layer %d, the message is in clear: %v", x.want, x.want == 4)
			}
			if got, sealed, err := a.Unwrap(b); err != nil || !bytes.Equal(got, msg) || sealed != (x.want == 4) {
				t.Errorf("to the server: %v", err)
			}
			if b, err = a.Wrap(msg, x.want == 4); err != nil {
				t.Fatal(err)
			}
			if got, err := layer.Unwrap(b); err != nil || !bytes.Equal(got, msg) {
				t.Errorf("from the server: %v", err)
			}
		}
		if x.want == 4 {
			b, err := a.Wrap([]byte("signed alone"), false)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := layer.Unwrap(b); err == nil {
				t.Error("a message that is not sealed is accepted where sealing was agreed on")
			}
		}
	}
}

func TestKerberosPrincipal(t *testing.T) {
	_, l := kerberos(t)
	for _, x := range []struct{ principal, service, host, want string }{
		{"nn/_HOST@A.TEST", "nn", "host.a.test", ""}, {"nn/host.a.test@A.TEST", "nn", "host.a.test", ""}, {"", "nn", "host.a.test", ""},
		{"nn/_HOST@A.TEST", "nn", "evil.a.test", "should be nn/host.a.test@A.TEST"}, {"nn/_HOST@A.TEST", "rm", "host.a.test", "should be nn/host.a.test"},
		{"nn/_HOST@A.TEST", "", "", "does not say"},
	} {
		_, _, err := ByKerberos(l, x.principal).Begin(t.Context(), offer(x.service, x.host))
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v", x, err)
		}
	}
	// An address or a short name is what DNS makes of it.
	a := &byKerberos{principal: "nn/_HOST@A.TEST", lookup: func(context.Context, string) ([]string, error) { return []string{"host.a.test."}, nil }}
	o := offer("nn", "host.a.test")
	o.Server = "192.0.2.7:8020"
	if p, err := a.service(t.Context(), o); err != nil || p.String() != "nn/host.a.test@A.TEST" {
		t.Errorf("by address: %v, %v", p, err)
	}
	a.lookup = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	if p, err := a.service(t.Context(), o); err == nil {
		t.Errorf("by an address that DNS does not know: %v", p)
	}
	if got := a.hosts(t.Context(), "full.name.test"); !slices.Equal(got, []string{"full.name.test"}) {
		t.Errorf("a full name is looked up: %v", got)
	}
}
