package kerberos

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

const (
	clientProtocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
	rmProtocol     = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
)

// tapped keeps what a connection carries.
type tapped struct {
	net.Conn
	mu   *sync.Mutex
	seen *bytes.Buffer
}

func (c tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Write(b[:n])
	return n, err
}

func (c tapped) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.seen.Write(b)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// rpc is a client whose bytes on the wire can be looked at.
func (x *cluster) rpc(t *testing.T, protocol, addr, qop string, auth ...hrpc.Authenticator) (*hrpc.Client, func() []byte) {
	t.Helper()
	var mu sync.Mutex
	var seen bytes.Buffer
	c := hrpc.New(hrpc.Config{Protocol: protocol, Addrs: []string{addr}, Auth: auth, Protection: []string{qop},
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			return tapped{nc, &mu, &seen}, err
		}})
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
	return c, func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Clone(seen.Bytes())
	}
}

// testRPC calls the NameNode and the ResourceManager at every protection, by ticket and then by a delegation token got so.
func (x *cluster) testRPC(t *testing.T) {
	rms, err := x.conf.RMs()
	if err != nil {
		t.Fatal(err)
	}
	alice := x.login(t, "alice")
	for _, qop := range []string{"auth", "auth-int", "auth-conf"} {
		t.Run(qop, func(t *testing.T) {
			for _, s := range []struct{ name, protocol, addr, principal string }{
				{"NameNode", clientProtocol, x.h.NameNode, x.principal(t, "dfs.namenode.kerberos.principal")},
				{"ResourceManager", rmProtocol, rms[0].Client, x.principal(t, "yarn.resourcemanager.principal")},
			} {
				c, seen := x.rpc(t, s.protocol, s.addr, qop, hrpc.ByKerberos(alice, s.principal))
				const renewer = "renewer-in-clear"
				var tok token.Token
				get := func(c *hrpc.Client) error {
					r := renewer
					resp := &hadooppb.GetDelegationTokenResponseProto{}
					err := c.Call(t.Context(), "getDelegationToken", &hadooppb.GetDelegationTokenRequestProto{Renewer: &r}, resp)
					tok = token.FromProto(resp.GetToken())
					return err
				}
				if err := get(c); err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
				if !bytes.Contains(tok.Identifier, []byte("alice")) {
					t.Errorf("%s: the token is for %q", s.name, tok.Identifier)
				}
				if clear := bytes.Contains(seen(), []byte(renewer)); clear == (qop == "auth-conf") {
					t.Errorf("%s: requests in clear: %v", s.name, clear)
				}
				// With the token: a token cannot get another, and the server says so by name.
				tc, seen := x.rpc(t, s.protocol, s.addr, qop, hrpc.ByToken(tok))
				err := get(tc)
				if err == nil || !strings.Contains(err.Error(), "only with kerberos") {
					t.Errorf("%s by token: %v", s.name, err)
				}
				if clear := bytes.Contains(seen(), []byte(renewer)); clear == (qop == "auth-conf") {
					t.Errorf("%s: requests in clear by token: %v", s.name, clear)
				}
			}
		})
	}
}

// testRPCRefusals is who does not get in, and what they are told.
func (x *cluster) testRPCRefusals(t *testing.T) {
	nn := x.principal(t, "dfs.namenode.kerberos.principal")
	call := func(auth ...hrpc.Authenticator) error {
		c, _ := x.rpc(t, clientProtocol, x.h.NameNode, "auth", auth...)
		r := "x"
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return c.Call(ctx, "getDelegationToken", &hadooppb.GetDelegationTokenRequestProto{Renewer: &r}, &hadooppb.GetDelegationTokenResponseProto{})
	}
	for name, a := range map[string]struct {
		auth hrpc.Authenticator
		want string
	}{
		"no ticket":       {hrpc.Simple("alice"), "TOKEN"},
		"other principal": {hrpc.ByKerberos(x.login(t, "alice"), "hdfs/_HOST@"+x.kdc.Realm), "it should be hdfs/127.0.0.1@"},
		"foreign ticket":  {hrpc.ByKerberos(foreign{t, x}, nn), "GSS initiate failed"},
		"forged token":    {hrpc.ByToken(x.forged(t)), "ismatched response"},
	} {
		err := call(a.auth)
		if err == nil || !strings.Contains(err.Error(), a.want) {
			t.Errorf("%s: %v, want %q in it", name, err, a.want)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// foreign gives tickets of another realm's KDC.
type foreign struct {
	t *testing.T
	x *cluster
}

func (f foreign) Ticket(ctx context.Context, _ krb.Principal) (*krb.Ticket, error) {
	return f.x.evil(f.t).Ticket(ctx, krb.Principal{Parts: []string{"nn", "localhost"}, Realm: "EVIL.LOCAL"})
}

// forged is a token whose password was guessed.
func (x *cluster) forged(t *testing.T) token.Token {
	t.Helper()
	c, _ := x.rpc(t, clientProtocol, x.h.NameNode, "auth", hrpc.ByKerberos(x.login(t, "bob"), x.principal(t, "dfs.namenode.kerberos.principal")))
	r, resp := "yarn", &hadooppb.GetDelegationTokenResponseProto{}
	if err := c.Call(t.Context(), "getDelegationToken", &hadooppb.GetDelegationTokenRequestProto{Renewer: &r}, resp); err != nil {
		t.Fatal(err)
	}
	tok := token.FromProto(resp.GetToken())
	tok.Password = []byte("guess")
	return tok
}

// breakable is a connection that a test can end from outside.
type breakable struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (b *breakable) dial(ctx context.Context, addr string) (net.Conn, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err == nil {
		b.mu.Lock()
		b.conns = append(b.conns, nc)
		b.mu.Unlock()
	}
	return nc, err
}

// cut closes all connections and returns how many there were.
func (b *breakable) cut() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		_ = c.Close()
	}
	return len(b.conns)
}

// testRPCWire sends and gets messages of hundreds of kilobytes, and logs in anew when its connection is cut, with lists of protections that begin with what
// is wanted or with something else.
func (x *cluster) testRPCWire(t *testing.T) {
	alice := x.login(t, "alice")
	for name, list := range map[string][]string{"authentication": {"auth"}, "integrity": {"auth-int"}, "privacy": {"auth-conf"}, "any": {"auth", "auth-conf", "auth-int"}, "not privacy": {"auth", "auth-int"}} {
		t.Run(name, func(t *testing.T) {
			var wire breakable
			c := hrpc.New(hrpc.Config{Protocol: clientProtocol, Addrs: []string{x.h.NameNode}, Protection: list, Dial: wire.dial,
				Auth: []hrpc.Authenticator{hrpc.ByKerberos(alice, x.principal(t, "dfs.namenode.kerberos.principal"))}, Retry: hrpc.Retry{Attempts: 5, RepeatLost: true}})
			t.Cleanup(func() { _ = c.Close() })
			for round := range 2 {
				r, resp := strings.Repeat("a", 300_000), &hadooppb.GetDelegationTokenResponseProto{}
				if err := c.Call(t.Context(), "getDelegationToken", &hadooppb.GetDelegationTokenRequestProto{Renewer: &r}, resp); err != nil {
					t.Fatal(err)
				}
				if n := len(resp.GetToken().GetIdentifier()); n < 300_000 {
					t.Errorf("the token has %d bytes", n)
				}
				if n := wire.cut(); n != round+1 {
					t.Errorf("%d connections after %d calls that were cut", n, round+1)
				}
			}
		})
	}
}
