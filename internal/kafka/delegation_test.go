package kafka

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/internal/hadoop/krb/krbtest"
)

// issuer is a broker that hands out delegation tokens to who comes by Kerberos, and lets in who shows one.
type issuer struct {
	t        *testing.T
	l        net.Listener
	realm    *krbtest.Realm
	takes    []string // mechanisms
	disabled bool     // it has no tokens
	over     bool     // and those that it has have ended
	deaf     int      // times that it does not know a token yet

	mu     sync.Mutex
	tokens map[string]string // secrets by id
	shown  []string          // mechanisms by which tokens were shown with success
	conns  sync.WaitGroup
}

// newIssuer starts a broker, and returns it with how etl reaches it.
func newIssuer(t *testing.T, takes ...string) (*issuer, Config) {
	t.Helper()
	conf, err := krb.ParseConf("[libdefaults]\n default_realm = A.TEST\n[realms]\n A.TEST = {\n kdc = a.test\n }\n")
	if err != nil {
		t.Fatal(err)
	}
	b := &issuer{t: t, realm: krbtest.New("A.TEST"), takes: append(takes, "GSSAPI"), tokens: map[string]string{}}
	b.realm.Add("etl", 18)
	b.realm.Add("kafka/127.0.0.1", 18)
	t.Cleanup(b.realm.Wait)
	login, err := krb.Open(krb.Config{Conf: conf, Keytab: "etl.keytab", KeytabData: b.realm.Keytab(0, "etl"), Dial: krbtest.Dial(b.realm)})
	if err != nil {
		t.Fatal(err)
	}
	if b.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	b.conns.Go(func() {
		for {
			c, err := b.l.Accept()
			if err != nil {
				return
			}
			b.conns.Go(func() {
				defer c.Close()
				if err := b.serve(c); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
					t.Error(err)
				}
			})
		}
	})
	t.Cleanup(func() {
		b.l.Close()
		b.conns.Wait()
	})
	return b, Config{Brokers: []string{b.l.Addr().String()}, RequestTimeout: time.Minute, DialTimeout: time.Minute,
		SASL: SASL{Mechanism: "GSSAPI", Kerberos: Kerberos{Login: login}}}
}

// serve answers on one connection until it is closed.
func (b *issuer) serve(c net.Conn) error {
	var say func([]byte) (answer []byte, refusal string, err error)
	byTicket := false
	for {
		req, corr, err := readRequest(c)
		if err != nil {
			return err
		}
		resp := req.ResponseKind()
		resp.SetVersion(req.GetVersion())
		b.mu.Lock()
		switch req := req.(type) {
		case *kmsg.SASLHandshakeRequest:
			byTicket = req.Mechanism == "GSSAPI"
			if resp := resp.(*kmsg.SASLHandshakeResponse); !slices.Contains(b.takes, req.Mechanism) {
				resp.ErrorCode, resp.SupportedMechanisms = int16(sarama.ErrUnsupportedSASLMechanism), b.takes
			}
			if say = b.scram(req.Mechanism); byTicket {
				say = b.ticket()
			}
		case *kmsg.SASLAuthenticateRequest:
			var refusal string
			resp := resp.(*kmsg.SASLAuthenticateResponse)
			if resp.SASLAuthBytes, refusal, err = say(req.SASLAuthBytes); refusal != "" {
				resp.ErrorCode, resp.ErrorMessage = 58, &refusal
			}
			if !byTicket && !b.over {
				resp.SessionLifetimeMillis = 600_000
			}
		case *kmsg.CreateDelegationTokenRequest:
			resp := resp.(*kmsg.CreateDelegationTokenResponse)
			switch {
			case b.disabled:
				resp.ErrorCode = 61
			case !byTicket:
				resp.ErrorCode = 64
			default:
				resp.TokenID, resp.HMAC, resp.PrincipalName = fmt.Sprint("id-", len(b.tokens)), []byte{1, 2, byte(len(b.tokens))}, "etl"
				resp.IssueTimestamp, resp.ExpiryTimestamp, resp.MaxTimestamp = 1000, 2000, 3000
				b.tokens[resp.TokenID] = base64.StdEncoding.EncodeToString(resp.HMAC)
			}
		case *kmsg.DescribeDelegationTokenRequest:
			if req.Owners == nil {
				err = errors.New("all tokens are asked for")
			}
			switch resp := resp.(*kmsg.DescribeDelegationTokenResponse); {
			case b.disabled:
				resp.ErrorCode = 61
			case !byTicket:
				resp.ErrorCode = 64
			}
		case *kmsg.ExpireDelegationTokenRequest:
			resp := resp.(*kmsg.ExpireDelegationTokenResponse)
			if resp.ErrorCode = 62; !byTicket {
				resp.ErrorCode = 64
			}
			for id, secret := range b.tokens {
				if byTicket && secret == base64.StdEncoding.EncodeToString(req.HMAC) && req.ExpiryPeriodMillis == -1 {
					delete(b.tokens, id)
					resp.ErrorCode = 0
				}
			}
		case *kmsg.MetadataRequest:
			if req.Topics == nil {
				err = errors.New("all topics are asked for")
			}
			broker := kmsg.NewMetadataResponseBroker()
			addr := b.l.Addr().(*net.TCPAddr)
			broker.Host, broker.Port = addr.IP.String(), int32(addr.Port)
			resp.(*kmsg.MetadataResponse).Brokers = append(resp.(*kmsg.MetadataResponse).Brokers, broker)
		case *kmsg.ApiVersionsRequest:
		default:
			err = fmt.Errorf("a request %d", req.Key())
		}
		b.mu.Unlock()
		if err != nil {
			return err
		}
		out := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(corr))
		if req.IsFlexible() && req.Key() != 18 {
			out = append(out, 0)
		}
		out = resp.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := c.Write(out); err != nil {
			return err
		}
	}
}

// readRequest reads one request.
func readRequest(c net.Conn) (kmsg.Request, int32, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, 0, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, 0, err
	}
	req := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(b)))
	if req == nil {
		return nil, 0, errors.New("an unknown request")
	}
	req.SetVersion(int16(binary.BigEndian.Uint16(b[2:])))
	body := b[10+binary.BigEndian.Uint16(b[8:]):]
	if req.IsFlexible() {
		body = body[1:]
	}
	return req, int32(binary.BigEndian.Uint32(b[4:])), req.ReadFrom(body)
}

// ticket is the broker's side of GSSAPI.
func (b *issuer) ticket() func([]byte) ([]byte, string, error) {
	var a *krbtest.Acceptor
	steps := 0
	return func(in []byte) (out []byte, refusal string, err error) {
		switch steps++; steps {
		case 1:
			a, out, err = b.realm.Accept("kafka/127.0.0.1", in, 18)
		case 2:
			out, err = a.Wrap([]byte{1, 1, 0, 0}, false)
		}
		return out, "", err
	}
}

// scram is the broker's side of SCRAM by a token.
func (b *issuer) scram(mechanism string) func([]byte) ([]byte, string, error) {
	h := func() hash.Hash { return sha256.New() }
	if mechanism == "SCRAM-SHA-512" {
		h = func() hash.Hash { return sha512.New() }
	}
	var first, ours string
	const salt = "salt"
	return func(in []byte) ([]byte, string, error) {
		if first == "" {
			var ok bool
			if first, ok = strings.CutPrefix(string(in), "n,,"); !ok || !strings.HasSuffix(first, ",tokenauth=true") {
				return nil, "", fmt.Errorf("a first message %q", in)
			}
			nonce := strings.TrimPrefix(strings.Split(first, ",")[1], "r=")
			ours = fmt.Sprintf("r=%sours,s=%s,i=4096", nonce, base64.StdEncoding.EncodeToString([]byte(salt)))
			return []byte(ours), "", nil
		}
		id := strings.TrimPrefix(strings.Split(first, ",")[0], "n=")
		secret, ok := b.tokens[id]
		if b.deaf > 0 {
			b.deaf, ok = b.deaf-1, false
		}
		without, proof, _ := strings.Cut(string(in), ",p=")
		salted, err := pbkdf2.Key(h, secret, []byte(salt), 4096, h().Size())
		if err != nil {
			return nil, "", err
		}
		mac := func(key []byte, text string) []byte {
			m := hmac.New(h, key)
			m.Write([]byte(text))
			return m.Sum(nil)
		}
		all := first + "," + ours + "," + without
		key := mac(salted, "Client Key")
		stored := h()
		stored.Write(key)
		want := mac(stored.Sum(nil), all)
		for i := range want {
			want[i] ^= key[i]
		}
		if got, err := base64.StdEncoding.DecodeString(proof); err != nil || !ok || !bytes.Equal(got, want) {
			return nil, "Authentication failed during authentication due to invalid credentials with SASL mechanism " + mechanism, nil
		}
		b.shown = append(b.shown, mechanism)
		return []byte("v=" + base64.StdEncoding.EncodeToString(mac(mac(salted, "Server Key"), all))), "", nil
	}
}

// holding has this process show tokens for the time of a test.
func holding(t *testing.T, ts ...Token) {
	UseTokens(ts)
	t.Cleanup(func() {
		delegated.Lock()
		defer delegated.Unlock()
		for _, x := range ts {
			delete(delegated.of, x.Service)
		}
	})
}

// TestToken gets a token by Kerberos, is let in by it, is told so when it has ended, and tells nobody its secret.
func TestToken(t *testing.T) {
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			b, cfg := newIssuer(t, mechanism)
			b.deaf = 2
			token, life, err := CreateToken(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if life.Owner != "etl" || life.Issued.UnixMilli() != 1000 || life.Until.UnixMilli() != 2000 || life.Max.UnixMilli() != 3000 || token.Service != cfg.Brokers[0] || token.ID != "id-0" {
				t.Errorf("the token is %+v, its life %+v", token, life)
			}
			if text := fmt.Sprintf("%v %+v %#v", token, token, token); strings.Contains(text, string(token.HMAC)) {
				t.Errorf("the secret is shown: %s", text)
			}

			// With a token nobody needs to log in.
			holding(t, token)
			without := cfg
			without.SASL.Kerberos = Kerberos{Keytab: "/does/not/exist"}
			n := len(b.shown)
			greet := func() error {
				c, err := NewClient(without)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				return c.Greet(t.Context(), cfg.Brokers[0])
			}
			if err := greet(); err != nil || len(b.shown) != n+1 || b.shown[n] != mechanism {
				t.Errorf("by the token: %v, shown by %v", err, b.shown)
			}

			for range 2 { // again is no error
				if err := ExpireToken(t.Context(), cfg, token); err != nil {
					t.Error(err)
				}
			}
			err = greet()
			if _, refused := errors.AsType[*TokenError](err); !refused || !strings.Contains(err.Error(), "heddle tokens push") || strings.Contains(err.Error(), string(token.HMAC)) {
				t.Errorf("when it has ended: %v", err)
			}
			if err := ExpireToken(t.Context(), cfg, Token{}); err == nil {
				t.Error("a token without a secret was ended")
			}
		})
	}
}

// TestTokenRefusals: what brokers lack is told, and no token is left behind that nobody can use.
func TestTokenRefusals(t *testing.T) {
	b, cfg := newIssuer(t)
	if _, _, err := CreateToken(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "sasl.enabled.mechanisms") || len(b.tokens) != 0 {
		t.Errorf("without SCRAM: %v, and %d tokens are left", err, len(b.tokens))
	}
	b.disabled = true
	if _, _, err := CreateToken(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "delegation.token.secret.key") {
		t.Errorf("without tokens: %v", err)
	}
	cfg.SASL.Kerberos = Kerberos{Keytab: "/does/not/exist"}
	if _, _, err := CreateToken(t.Context(), cfg); err == nil {
		t.Error("a token came without a login")
	}
}

func TestTokenService(t *testing.T) {
	if got := TokenService([]string{"B:9092", "a:9092", "b:9092"}); got != "a:9092,b:9092" {
		t.Errorf("it is %q", got)
	}
}
