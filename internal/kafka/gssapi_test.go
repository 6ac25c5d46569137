package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/internal/hadoop/krb/krbtest"
)

// keeper is a broker's side of GSSAPI's handshake.
type keeper struct {
	realm      *krbtest.Realm
	mechanisms []string // that it takes
	layers     byte     // of protection that it offers
	refuses    string   // why it takes nobody; "": it does
	hangsUp    bool     // after the handshake
	lifetime   int64    // milliseconds

	client string // who came; written before the answer to the choice of a layer
}

// serve answers on one connection until it is closed.
func (k *keeper) serve(t *testing.T, c net.Conn) {
	var a *krbtest.Acceptor
	steps := 0
	for {
		key, corr, body, err := request(c)
		if err != nil {
			return
		}
		var resp kmsg.Response
		switch key {
		case 17:
			req, h := kmsg.NewPtrSASLHandshakeRequest(), kmsg.NewPtrSASLHandshakeResponse()
			req.Version, h.Version = 1, 1
			if err := req.ReadFrom(body); err != nil {
				t.Error(err)
			}
			if h.SupportedMechanisms = k.mechanisms; !strings.Contains(strings.Join(k.mechanisms, " "), req.Mechanism) {
				h.ErrorCode = 33
			}
			resp = h
		case 36:
			req, h := kmsg.NewPtrSASLAuthenticateRequest(), kmsg.NewPtrSASLAuthenticateResponse()
			req.Version, h.Version = 1, 1
			if err := req.ReadFrom(body); err != nil {
				t.Error(err)
			}
			resp = h
			if k.hangsUp {
				c.Close()
				return
			}
			switch steps++; {
			case k.refuses != "":
				h.ErrorCode, h.ErrorMessage = 58, &k.refuses
			case steps == 1:
				a, h.SASLAuthBytes, err = k.realm.Accept("kafka/broker.a.test", req.SASLAuthBytes, 18)
			case steps == 2:
				h.SASLAuthBytes, err = a.Wrap([]byte{k.layers, 1, 0, 0}, false)
			default:
				var choice []byte
				if choice, _, err = a.Unwrap(req.SASLAuthBytes); err == nil && string(choice) != "\x01\x00\x00\x00" {
					err = errors.New("another layer was chosen")
				}
				k.client, h.SessionLifetimeMillis = a.Client, k.lifetime
			}
			if err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("a request %d before the end of the handshake", key)
			return
		}
		out := resp.AppendTo(binary.BigEndian.AppendUint32(make([]byte, 4), uint32(corr)))
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

// request reads one request and returns what follows its header.
func request(c net.Conn) (key int16, corr int32, body []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, 0, nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return 0, 0, nil, err
	}
	return int16(binary.BigEndian.Uint16(b)), int32(binary.BigEndian.Uint32(b[4:])), b[10+binary.BigEndian.Uint16(b[8:]):], nil
}

// meet runs the handshake of etl with a broker at addr.
func meet(t *testing.T, k *keeper, kerberos Kerberos, addr string) (time.Duration, error) {
	t.Helper()
	conf, err := krb.ParseConf("[libdefaults]\n default_realm = A.TEST\n[realms]\n A.TEST = {\n kdc = a.test\n }\n")
	if err != nil {
		t.Fatal(err)
	}
	k.realm = krbtest.New("A.TEST")
	k.realm.Add("etl", 18)
	k.realm.Add("kafka/broker.a.test", 18)
	t.Cleanup(k.realm.Wait)
	l, err := krb.Open(krb.Config{Conf: conf, Keytab: "etl.keytab", KeytabData: k.realm.Keytab(0, "etl"), Dial: krbtest.Dial(k.realm)})
	if err != nil {
		t.Fatal(err)
	}
	kerberos.Keytab = t.Name()
	key := kerberos
	key.Service = ""
	logins.Lock()
	logins.of[key] = l
	logins.Unlock()
	t.Cleanup(kerberos.forget)

	cfg := Config{Brokers: []string{addr}, SASL: SASL{Mechanism: "GSSAPI", Kerberos: kerberos}, RequestTimeout: 30 * time.Second}
	o, err := newOpener(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if o.sarama.Net.SASL.Enable {
		t.Error("sarama is to authenticate too")
	}
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.serve(t, theirs)
	}()
	life, err := o.gssapi(t.Context(), ours, addr)
	ours.Close()
	<-done
	return life, err
}

func TestGSSAPI(t *testing.T) {
	k := &keeper{mechanisms: []string{"PLAIN", "GSSAPI"}, layers: 7, lifetime: 3_600_000}
	life, err := meet(t, k, Kerberos{}, "Broker.a.test:9093")
	if err != nil || life != time.Hour || k.client != "etl@A.TEST" {
		t.Errorf("%v, %v, client %q", life, err, k.client)
	}
}

func TestGSSAPIRefusals(t *testing.T) {
	gssapi := []string{"GSSAPI"}
	for name, test := range map[string]struct {
		keeper   keeper
		kerberos Kerberos
		addr     string
		says     []string
	}{
		"mechanism": {keeper: keeper{mechanisms: []string{"PLAIN", "SCRAM-SHA-512"}}, says: []string{"does not take GSSAPI", "PLAIN, SCRAM-SHA-512", OptSASLMechanism}},
		"refused":   {keeper: keeper{mechanisms: gssapi, refuses: "Bad things happened"}, says: []string{"Bad things happened"}},
		"sealing":   {keeper: keeper{mechanisms: gssapi, layers: 4}, says: []string{"layer"}},
		"hung up":   {keeper: keeper{mechanisms: gssapi, hangsUp: true}, says: []string{"EOF"}},
		"service":   {keeper: keeper{}, kerberos: Kerberos{Service: "kafak"}, says: []string{"kafak/broker.a.test there", OptKerberosService}},
		"host":      {keeper: keeper{}, addr: "10.0.0.1:9093", says: []string{"kafka/10.0.0.1", "advertised"}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.addr == "" {
				test.addr = "broker.a.test:9093"
			}
			_, err := meet(t, &test.keeper, test.kerberos, test.addr)
			for _, s := range test.says {
				if err == nil || !strings.Contains(err.Error(), s) {
					t.Errorf("want an error with %q: %v", s, err)
				}
			}
		})
	}
}

// A ticket cache that is not there, and a principal that is none, are told before anything is sent.
func TestKerberosSettings(t *testing.T) {
	k := Kerberos{Cache: t.TempDir() + "/none", Conf: t.TempDir() + "/krb5.conf"}
	_, err := k.ticket(context.Background(), "broker:9092")
	if _, ours := errors.AsType[*KerberosError](err); !ours || !strings.Contains(err.Error(), "krb5.conf") {
		t.Errorf("no krb5.conf: %v", err)
	}
	for p, ok := range map[string]bool{"": true, "etl": true, "etl@A.TEST": true, "@A.TEST": false, "etl@": false} {
		s := SASL{Mechanism: sarama.SASLTypeGSSAPI, Kerberos: Kerberos{Principal: p}}
		if err := s.validate(); (err == nil) != ok {
			t.Errorf("principal %q: %v", p, err)
		}
	}
}
