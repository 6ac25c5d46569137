package hrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/testnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const protocol = "org.example.EchoProtocolPB"

var good = token.Token{Identifier: []byte("id"), Password: []byte("pw"), Kind: token.KindAMRM}

func password(id []byte) ([]byte, bool) { return good.Password, bytes.Equal(id, good.Identifier) }

// echo answers with the renewer of the request, which carries any text.
func echo(r *hrpctest.Request) (proto.Message, error) {
	var m pb.GetDelegationTokenRequestProto
	if err := r.Decode(&m); err != nil {
		return nil, err
	}
	return &m, nil
}

func call(ctx context.Context, c *hrpc.Client, text string) (string, error) {
	var out pb.GetDelegationTokenRequestProto
	err := c.Call(ctx, "echo", &pb.GetDelegationTokenRequestProto{Renewer: &text}, &out)
	return out.GetRenewer(), err
}

// world is a network with servers on it and a client.
type world struct {
	t   *testing.T
	net *testnet.Network
}

func newWorld(t *testing.T) *world { return &world{t, testnet.New()} }

func (w *world) serve(addr string, cfg hrpctest.Config) *hrpctest.Server {
	s := hrpctest.Serve(w.net.Listen(addr), cfg)
	w.t.Cleanup(s.Close)
	return s
}

func (w *world) client(cfg hrpc.Config) *hrpc.Client {
	cfg.Protocol = protocol
	if cfg.Dial == nil {
		cfg.Dial = w.net.Dial
	}
	if len(cfg.Addrs) == 0 {
		cfg.Addrs = []string{"a"}
	}
	c := hrpc.New(cfg)
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

func tokens() []hrpc.Authenticator { return []hrpc.Authenticator{hrpc.ByToken(good)} }

func TestProtections(t *testing.T) {
	for _, x := range []struct {
		name    string
		qop     []string
		ciphers []string
		allowed []string
		wrapped bool
	}{
		{"auth", nil, nil, nil, false},
		{"integrity", []string{"auth-int"}, nil, nil, true},
		{"privacy by rc4", []string{"auth-conf"}, []string{"rc4"}, nil, true},
		{"privacy by 3des", []string{"auth-conf"}, []string{"3des"}, nil, true},
		{"the strongest of a list", []string{"auth", "auth-conf"}, nil, nil, true},
		{"the one allowed of a list", []string{"auth-conf", "auth"}, nil, []string{"auth"}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t)
			var protected atomic.Bool
			w.serve("a", hrpctest.Config{Password: password, QOP: x.qop, Ciphers: x.ciphers, Handle: func(r *hrpctest.Request) (proto.Message, error) {
				protected.Store(r.Protected)
				if r.User != "" || r.Protocol != protocol || string(r.Identifier) != "id" {
					return nil, fmt.Errorf("unexpected request %+v", r)
				}
				return echo(r)
			}})
			var wire bytes.Buffer
			var mu sync.Mutex
			c := w.client(hrpc.Config{Auth: tokens(), Protection: x.allowed, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				nc, err := w.net.Dial(ctx, addr)
				return tap{nc, &wire, &mu}, err
			}})
			// Several at once, and one far larger than the layer's buffer size.
			var wg sync.WaitGroup
			for i := range 20 {
				text := fmt.Sprint("secret-", i)
				if i == 7 {
					text = strings.Repeat("large-", 50000)
				}
				wg.Go(func() {
					if got, err := call(t.Context(), c, text); err != nil || got != text {
						t.Errorf("call %d: %d bytes, %v", i, len(got), err)
					}
				})
			}
			wg.Wait()
			if protected.Load() != x.wrapped {
				t.Errorf("requests came wrapped: %v, want %v", protected.Load(), x.wrapped)
			}
			mu.Lock()
			defer mu.Unlock()
			sealed := x.wrapped && x.qop[len(x.qop)-1] == "auth-conf"
			if clear := bytes.Contains(wire.Bytes(), []byte("secret-")); clear == sealed {
				t.Errorf("the request's text is on the wire: %v", clear)
			}
		})
	}
}

// tap records what is written.
type tap struct {
	net.Conn
	to *bytes.Buffer
	mu *sync.Mutex
}

func (t tap) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.to.Write(b)
	t.mu.Unlock()
	return t.Conn.Write(b)
}

func TestAuthentication(t *testing.T) {
	bad := token.Token{Identifier: []byte("id"), Password: []byte("wrong")}
	for _, x := range []struct {
		name   string
		server hrpctest.Config
		auth   []hrpc.Authenticator
		allow  []string
		user   string
		class  string
		want   string // in the error
	}{
		{name: "simple", server: hrpctest.Config{Simple: true}, auth: []hrpc.Authenticator{hrpc.Simple("alice")}, user: "alice"},
		{name: "simple beside tokens", server: hrpctest.Config{Simple: true, Password: password}, auth: []hrpc.Authenticator{hrpc.Simple("alice")}, user: "alice"},
		{name: "simple by SASL", server: hrpctest.Config{Simple: true, Password: func([]byte) ([]byte, bool) { return nil, false }},
			auth: []hrpc.Authenticator{other{}, hrpc.Simple("alice")}, user: "alice"},
		{name: "server without security", server: hrpctest.Config{Simple: true}, auth: []hrpc.Authenticator{other{}, hrpc.Simple("bob")}, user: "bob"},
		{name: "no falling back", server: hrpctest.Config{Simple: true}, auth: tokens(), want: "falling back"},
		{name: "simple refused", server: hrpctest.Config{Password: password}, auth: []hrpc.Authenticator{hrpc.Simple("alice")}, class: hrpc.ClassAccessControl},
		{name: "wrong password", server: hrpctest.Config{Password: password}, auth: []hrpc.Authenticator{hrpc.ByToken(bad)}, class: hrpc.ClassInvalidToken},
		{name: "nothing in common", server: hrpctest.Config{Password: password}, auth: []hrpc.Authenticator{other{}}, want: "TOKEN (DIGEST-MD5), and we have KERBEROS"},
		{name: "protection too weak", server: hrpctest.Config{Password: password}, auth: tokens(), allow: []string{"auth-conf"}, want: "hadoop.rpc.protection"},
		{name: "nothing at all", server: hrpctest.Config{Simple: true}, want: "neither a token nor a user"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t)
			var user atomic.Value
			x.server.Handle = func(r *hrpctest.Request) (proto.Message, error) { user.Store(r.User); return echo(r) }
			w.serve("a", x.server)
			_, err := call(t.Context(), w.client(hrpc.Config{Auth: x.auth, Protection: x.allow}), "x")
			switch {
			case x.class != "":
				if hrpc.ClassOf(err) != x.class {
					t.Errorf("got %v, want %s", err, x.class)
				}
			case x.want != "":
				if err == nil || !strings.Contains(err.Error(), x.want) {
					t.Errorf("got %v, want %q in it", err, x.want)
				}
			case err != nil || user.Load() != x.user:
				t.Errorf("user %v, %v; want %s", user.Load(), err, x.user)
			}
		})
	}
}

// other is a method that no server here offers.
type other struct{}

func (other) Method() string { return "KERBEROS" }
func (other) User() string   { return "" }
func (other) Begin(context.Context, hrpc.Offer) ([]byte, hrpc.Exchange, error) {
	return nil, nil, errors.New("not to be begun")
}

func TestExceptions(t *testing.T) {
	w := newWorld(t)
	s := w.serve("a", hrpctest.Config{Password: password, Handle: func(r *hrpctest.Request) (proto.Message, error) {
		m, _ := echo(r)
		switch text := m.(*pb.GetDelegationTokenRequestProto).GetRenewer(); text {
		case "boom":
			return nil, &hrpc.RemoteError{Class: hrpc.ClassNotRegistered, Message: "not registered\nsecond line"}
		case "fatal":
			return nil, &hrpc.RemoteError{Class: hrpc.ClassAccessControl, Message: "no", Fatal: true}
		}
		return m, nil
	}})
	c := w.client(hrpc.Config{Auth: tokens(), Retry: hrpc.Retry{Attempts: 5}})
	_, err := call(t.Context(), c, "boom")
	re, ok := errors.AsType[*hrpc.RemoteError](err)
	if !ok || re.Class != hrpc.ClassNotRegistered || re.Message != "not registered\nsecond line" || re.Method != "echo" || re.Fatal {
		t.Errorf("got %+v", err)
	}
	if got, err := call(t.Context(), c, "fine"); err != nil || got != "fine" || s.Connections() != 1 {
		t.Errorf("after an exception: %q, %v, %d connections; the connection should go on", got, err, s.Connections())
	}
	if _, err := call(t.Context(), c, "fatal"); hrpc.ClassOf(err) != hrpc.ClassAccessControl {
		t.Errorf("fatal: %v", err)
	}
	if got, err := call(t.Context(), c, "again"); err != nil || got != "again" || s.Connections() != 2 {
		t.Errorf("after a fatal exception: %q, %v, %d connections, want 2", got, err, s.Connections())
	}
}

// TestOutOfOrder lets the server answer in reverse.
func TestOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.serve("a", hrpctest.Config{Password: password, Handle: func(r *hrpctest.Request) (proto.Message, error) {
			time.Sleep(time.Duration(100-r.CallID) * time.Millisecond)
			return echo(r)
		}})
		c := w.client(hrpc.Config{Auth: tokens()})
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if got, err := call(t.Context(), c, fmt.Sprint(i)); err != nil || got != fmt.Sprint(i) {
					t.Errorf("call %d: %q, %v", i, got, err)
				}
			})
		}
		wg.Wait()
		_ = c.Close()
	})
}

func TestFailover(t *testing.T) {
	for _, x := range []struct {
		name  string
		first func(*hrpctest.Request) (proto.Message, error) // nil: refuses connections
		lost  bool
		ok    bool
	}{
		{"refused", nil, false, true},
		{"standby", fails(&hrpc.RemoteError{Class: hrpc.ClassStandby}), false, true},
		{"answer lost, to be repeated", fails(hrpctest.ErrDrop), true, true},
		{"answer lost, not to be repeated", fails(hrpctest.ErrDrop), false, false},
		{"denied", fails(&hrpc.RemoteError{Class: hrpc.ClassAccessControl}), true, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if x.first != nil {
					w.serve("a", hrpctest.Config{Password: password, Handle: x.first})
				}
				w.serve("b", hrpctest.Config{Password: password, Handle: echo})
				c := w.client(hrpc.Config{Auth: tokens(), Addrs: []string{"a", "b"}, Retry: hrpc.Retry{Attempts: 4, RepeatLost: x.lost}})
				start := time.Now()
				got, err := call(t.Context(), c, "x")
				if (err == nil && got == "x") != x.ok {
					t.Errorf("got %q, %v", got, err)
				}
				if x.ok && (time.Since(start) > 0 || c.Addr() != "b") {
					t.Errorf("the first failover took %v, and the client is at %s", time.Since(start), c.Addr())
				}
				if _, err := call(t.Context(), c, "y"); x.ok && err != nil {
					t.Errorf("second call: %v", err)
				}
				_ = c.Close()
			})
		})
	}
}

func fails(err error) func(*hrpctest.Request) (proto.Message, error) {
	return func(*hrpctest.Request) (proto.Message, error) { return nil, err }
}

// TestRetriable tries the same server again, with the same call id and a counted retry.
func TestRetriable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var seen []string
		w.serve("a", hrpctest.Config{Password: password, Handle: func(r *hrpctest.Request) (proto.Message, error) {
			seen = append(seen, fmt.Sprint(r.CallID, "/", r.Retry))
			if len(seen) < 4 {
				return nil, &hrpc.RemoteError{Class: hrpc.ClassRetriable, Message: "Server too busy"}
			}
			return echo(r)
		}})
		w.serve("b", hrpctest.Config{Password: password, Handle: fails(errors.New("wrong server"))})
		c := w.client(hrpc.Config{Auth: tokens(), Addrs: []string{"a", "b"}, Retry: hrpc.Retry{Attempts: 5, Base: time.Second, Max: 3 * time.Second}})
		start := time.Now()
		if got, err := call(t.Context(), c, "x"); err != nil || got != "x" {
			t.Fatalf("got %q, %v", got, err)
		}
		if want := "[0/0 0/1 0/2 0/3]"; fmt.Sprint(seen) != want {
			t.Errorf("calls %v, want %s", seen, want)
		}
		if d := time.Since(start); d < 3*time.Second || d > 9*time.Second {
			t.Errorf("three pauses took %v", d)
		}
		_ = c.Close()
	})
}

// TestBothDown keeps trying while both servers are away, and goes on when one is back.
func TestBothDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.client(hrpc.Config{Auth: tokens(), Addrs: []string{"a", "b"}, Retry: hrpc.Retry{Attempts: 1000, Base: 100 * time.Millisecond, Max: 2 * time.Second}})
		time.AfterFunc(2*time.Minute, func() { w.serve("b", hrpctest.Config{Password: password, Handle: echo}) })
		start := time.Now()
		if got, err := call(t.Context(), c, "x"); err != nil || got != "x" {
			t.Fatalf("got %q, %v", got, err)
		}
		if d := time.Since(start); d > 2*time.Minute+10*time.Second {
			t.Errorf("went on after %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c2 := w.client(hrpc.Config{Auth: tokens(), Addrs: []string{"x"}, Retry: hrpc.Retry{Attempts: 1000}})
		if _, err := call(ctx, c2, "x"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "x") {
			t.Errorf("with a deadline: %v", err)
		}
		_ = c.Close()
		_ = c2.Close()
	})
}

func TestTimeoutsPingsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("a", hrpctest.Config{Password: password, Handle: func(r *hrpctest.Request) (proto.Message, error) {
			m, _ := echo(r)
			switch m.(*pb.GetDelegationTokenRequestProto).GetRenewer() {
			case "never":
				return nil, hrpctest.ErrSilent
			case "late":
				time.Sleep(50 * time.Second)
			}
			return m, nil
		}})
		c := w.client(hrpc.Config{Auth: tokens(), CallTimeout: time.Minute, PingInterval: 10 * time.Second, IdleTimeout: 20 * time.Second})
		if got, err := call(t.Context(), c, "late"); err != nil || got != "late" {
			t.Errorf("late: %q, %v", got, err)
		}
		if n := s.Pings(); n < 3 {
			t.Errorf("%d pings in 50 s of waiting, want 3 or more", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := call(ctx, c, "never"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("context's deadline: %v", err)
		}
		cancel()
		start := time.Now()
		_, err := call(t.Context(), c, "never")
		if ce, ok := errors.AsType[*hrpc.ConnError](err); !ok || !ce.Sent || time.Since(start) != time.Minute {
			t.Errorf("call's timeout: %v after %v", err, time.Since(start))
		}
		if got, err := call(t.Context(), c, "fine"); err != nil || got != "fine" || s.Connections() != 2 {
			t.Errorf("after a silent server: %v, %d connections, want a second", err, s.Connections())
		}
		time.Sleep(time.Minute)
		if s.Open() != 0 {
			t.Error("an idle connection is still open")
		}
		if got, err := call(t.Context(), c, "fine"); err != nil || got != "fine" {
			t.Errorf("after idling: %v", err)
		}
		s.Cut()
		synctest.Wait()
		if got, err := call(t.Context(), c, "fine"); err != nil || got != "fine" {
			t.Errorf("after the server closed an idle connection: %v", err)
		}
		_ = c.Close()
		if _, err := call(t.Context(), c, "closed"); !errors.Is(err, hrpc.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		s.Close()
	})
}

// TestBlackHole has a server that accepts and never says a word.
func TestBlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.net.Listen("a")
		go func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(io.Discard, nc); nc.Close() }()
			}
		}()
		c := w.client(hrpc.Config{Auth: tokens(), HandshakeTimeout: 3 * time.Second})
		start := time.Now()
		if _, err := call(t.Context(), c, "x"); err == nil || time.Since(start) != 3*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		done := make(chan error, 1)
		go func() { _, err := call(t.Context(), c, "x"); done <- err }()
		time.Sleep(time.Second)
		_ = c.Close()
		if err := <-done; err == nil {
			t.Error("a call survives Close")
		}
		l.Close()
	})
}

// TestSetAuth uses the new token on the next connection only.
func TestSetAuth(t *testing.T) {
	w := newWorld(t)
	s := w.serve("a", hrpctest.Config{Password: func(id []byte) ([]byte, bool) { return []byte("pw"), true }, Handle: func(r *hrpctest.Request) (proto.Message, error) {
		return &pb.GetDelegationTokenRequestProto{Renewer: proto.String(string(r.Identifier))}, nil
	}})
	c := w.client(hrpc.Config{Auth: tokens(), Retry: hrpc.Retry{Attempts: 3, RepeatLost: true}})
	for i, want := range []string{"id", "id", "new"} {
		if i == 1 {
			c.SetAuth(hrpc.ByToken(token.Token{Identifier: []byte("new"), Password: []byte("pw")}))
		}
		if i == 2 {
			s.Cut()
		}
		if got, err := call(t.Context(), c, "x"); err != nil || got != want {
			t.Errorf("call %d: token %q, %v; want %q", i, got, err, want)
		}
	}
}

// TestRealSocket uses TCP, where a write after the server's refusal may fail before its reason was read.
func TestRealSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := hrpctest.Serve(l, hrpctest.Config{Password: password, QOP: []string{"auth-conf"}, Handle: echo})
	defer s.Close()
	c := hrpc.New(hrpc.Config{Protocol: protocol, Addrs: []string{l.Addr().String()}, Auth: tokens()})
	defer c.Close()
	for i := range 100 {
		if got, err := call(t.Context(), c, fmt.Sprint(i)); err != nil || got != fmt.Sprint(i) {
			t.Fatalf("call %d: %q, %v", i, got, err)
		}
	}
	simple := hrpc.New(hrpc.Config{Protocol: protocol, Addrs: []string{l.Addr().String()}, Auth: []hrpc.Authenticator{hrpc.Simple("x")}})
	defer simple.Close()
	if _, err := call(t.Context(), simple, "x"); err == nil {
		t.Error("a simple user is accepted")
	}
}

// BenchmarkCall makes calls one after the other and many at once, over TCP.
func BenchmarkCall(b *testing.B) {
	for _, qop := range []string{"auth", "auth-conf"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := hrpctest.Serve(l, hrpctest.Config{Password: password, QOP: []string{qop}, Handle: echo})
		c := hrpc.New(hrpc.Config{Protocol: protocol, Addrs: []string{l.Addr().String()}, Auth: tokens()})
		text := strings.Repeat("x", 200)
		b.Run(qop+"/one", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(b.Context(), c, text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(qop+"/many", func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := call(b.Context(), c, text); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
		_ = c.Close()
		s.Close()
	}
}
