package netstack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// TestManyChannels shuffles from every producer to every consumer, on several connections, locally and remotely.
func TestManyChannels(t *testing.T) {
	const producers, consumers, n = 6, 6, 40
	edit := func(c *Config) { c.MaxConnections = 3 }
	a, b := start(t, edit), start(t, edit)
	var wg sync.WaitGroup
	for i := range producers {
		s := []*Stack{a, b}[i%2]
		p := mustPartition(t, s, fmt.Sprint("p", i), consumers)
		wg.Go(func() {
			if err := produce(t.Context(), p, consumers, n); err != nil {
				t.Errorf("producer %d: %v", i, err)
			}
		})
	}
	for i := range consumers {
		s := []*Stack{a, b}[i/3]
		w := newWaker()
		cfg := GateConfig{Wake: w.wake}
		subs := make([]int, producers)
		for j := range producers {
			subs[j] = i
			cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: fmt.Sprint("p", j), Subpartition: i, Addr: []*Stack{a, b}[j%2].Addr(), ConnIndex: uint32(i)})
		}
		g, err := s.NewGate(cfg)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer g.Close()
			if err := consume(g, w, subs, n); err != nil {
				t.Errorf("consumer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// TestCancelCycles opens and cancels in mid-stream, at both ends, again and again: everything comes back.
func TestCancelCycles(t *testing.T) {
	cycles := 1000
	if testing.Short() {
		cycles = 100
	}
	a, b := start(t, nil), start(t, nil)
	descriptors := -1
	for i := range cycles {
		id := fmt.Sprint("p", i)
		p, err := a.NewPartition(PartitionConfig{ID: id, Subpartitions: 2})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- produce(ctx, p, 2, 1<<20) }()
		w := newWaker()
		g, err := b.NewGate(GateConfig{Wake: w.wake, Channels: []ChannelConfig{{Partition: id, Addr: a.Addr()}, {Partition: id, Subpartition: 1, Addr: a.Addr()}}})
		if err != nil {
			t.Fatal(err)
		}
		local, err := a.NewGate(GateConfig{Wake: w.wake, Channels: []ChannelConfig{{Partition: id, Subpartition: 1, Addr: a.Addr()}}}) // second consumer: one of the two is refused
		if err != nil {
			t.Fatal(err)
		}
		var held Item
		for range i % 5 {
			if held, err = next(g, w); err != nil {
				break
			}
			if held.Channel == 0 && i%3 != 0 {
				g.Recycle(held)
				held = Item{}
			}
			if held.Segment != nil {
				break
			}
		}
		if i%2 == 0 {
			g.Close()
			cancel()
		} else {
			cancel()
			p.Fail(errors.New("cancelled"))
		}
		local.Close()
		if err := <-done; err == nil {
			t.Fatal("the producer ended by itself")
		}
		p.Release()
		g.Close()
		g.Recycle(held)
		if i == 10 {
			descriptors = openFiles(t)
		}
	}
	for name, s := range map[string]*Stack{"producer": a, "consumer": b} {
		eventually(t, name+"'s segments, channels and partitions come back", func() bool {
			st := s.Stats()
			return st.SegmentsUsed == 0 && st.SegmentsReserved == 0 && st.SegmentsFloating == 0 && st.Channels == 0 && st.Partitions == 0 && st.Gates == 0 && st.Waiting == 0
		})
		if n := s.Stats().SegmentsEverAllocated; n > 400 {
			t.Errorf("%d segments were allocated for two producers at most", n)
		}
	}
	if n := openFiles(t); n > descriptors+1 {
		t.Errorf("%d descriptors are open, %d were after ten cycles", n, descriptors)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // no such thing here; the goroutine and pool checks remain
	}
	return len(d)
}

// TestConnectionRaces opens and closes channels on one key while its connection is cut under them.
func TestConnectionRaces(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	p := mustPartition(t, a, "p", 1)
	_ = p
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			a.mu.Lock()
			conns := a.connsLocked()
			a.mu.Unlock()
			for _, c := range conns {
				c.nc.Close()
			}
		}
	})
	var users sync.WaitGroup
	for i := range 8 {
		users.Go(func() {
			for range 50 {
				g, w := open(t, b, "nobody's"+fmt.Sprint(i), a.Addr(), 0)
				if i%2 == 0 {
					next(g, w)
				}
				g.Close()
			}
		})
	}
	users.Wait()
	close(stop)
	wg.Wait()
	eventually(t, "no channel is left", func() bool { return b.Stats().Channels == 0 && a.Stats().Channels == 0 && a.Stats().Waiting == 0 })
}

func TestStackClose(t *testing.T) {
	a, b := start(t, func(c *Config) { c.Identity = "a" }), start(t, nil)
	p := mustPartition(t, a, "p", 1)
	g, w := open(t, b, "p", a.Addr(), 0)
	eventually(t, "attached", func() bool { return a.Stats().Channels == 1 })
	a.Close()
	if _, err := next(g, w); err == nil {
		t.Error("the consumer does not know that the producer's stack was closed")
	}
	if _, err := p.Get(t.Context(), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("producer: got %v", err)
	}
	if _, err := a.NewPartition(PartitionConfig{ID: "q", Subpartitions: 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("new partition: got %v", err)
	}
	if _, err := a.NewGate(GateConfig{Channels: []ChannelConfig{{Partition: "q", Addr: b.Addr()}}}); !errors.Is(err, ErrClosed) {
		t.Errorf("new gate: got %v", err)
	}
	a.Close()
}

// TestCloseFlushes closes the consumer's stack right after it took the end: the producer hears of it.
func TestCloseFlushes(t *testing.T) {
	for range 50 {
		a, b := start(t, nil), start(t, nil)
		p := mustPartition(t, a, "p", 1)
		done := make(chan error, 1)
		go func() { done <- produce(t.Context(), p, 1, 3) }()
		g, w := open(t, b, "p", a.Addr(), 0)
		if err := consume(g, w, []int{0}, 3); err != nil {
			t.Fatal(err)
		}
		b.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		a.Close()
	}
}

func TestTLS(t *testing.T) {
	mine, other := testTLS(t), testTLS(t)
	a := start(t, func(c *Config) { c.TLS = mine; c.Auth.Key = nil })
	b := start(t, func(c *Config) { c.TLS = mine; c.Auth.Key = nil })
	p := mustPartition(t, a, "p", 2)
	done := make(chan error, 1)
	go func() { done <- produce(t.Context(), p, 2, 100) }()
	g, w := open(t, b, "p", a.Addr(), 0, 1)
	if err := consume(g, w, []int{0, 1}, 100); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Config){
		"another application's certificate": func(c *Config) { c.TLS = other; c.Auth.Key = nil },
		"no TLS":                            func(*Config) {},
	} {
		c := start(t, func(c *Config) { edit(c); c.ConnectRetries = -1; c.HandshakeTimeout = time.Second })
		g, w := open(t, c, "p", a.Addr(), 0)
		if _, err := next(g, w); err == nil || (name != "no TLS" && kindOf(err, cluster.Internal) != cluster.Denied) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := New(Config{TLS: &TLS{Server: &tls.Config{}, Client: &tls.Config{}}}); err == nil {
		t.Error("TLS that lets everybody in was accepted without a key")
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a stack that proves nothing was accepted")
	}
}

func testTLS(t *testing.T) *TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	pair := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return &TLS{
		Server: &tls.Config{Certificates: pair, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert},
		Client: &tls.Config{Certificates: pair, RootCAs: pool},
	}
}

func TestListen(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	port := first.Addr().(*net.TCPAddr).Port
	l, err := new(sockets).listenSpec(fmt.Sprintf("127.0.0.1:%d-%d,0", port, port))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := new(sockets).listenSpec(fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		t.Error("listened twice on one port")
	}
	for _, bad := range []string{"127.0.0.1:x", "127.0.0.1:9-8", "127.0.0.1:70000", "127.0.0.1:0-5", "nohost", "127.0.0.1:1,,2"} {
		if l, err := new(sockets).listenSpec(bad); err == nil {
			l.Close()
			t.Errorf("%s was accepted", bad)
		}
	}
	for _, c := range [][3]string{
		{"", "127.0.0.1:77", "127.0.0.1:77"}, {"", "0.0.0.0:77", "me:77"}, {"", "[::]:77", "me:77"}, {"", "[::1]:77", "[::1]:77"},
		{"host", "0.0.0.0:77", "host:77"}, {"[::1]", "[::]:77", "[::1]:77"}, {"fe80::1%lo", "[::]:77", "[fe80::1%lo]:77"}, {"host:5", "0.0.0.0:77", "host:5"}, {"::1", "[::]:77", "[::1]:77"}, {"", "in memory", "in memory"},
	} {
		if got := advertise(c[0], c[1], "me"); got != c[2] {
			t.Errorf("advertise %q on %q: got %q, want %q", c[0], c[1], got, c[2])
		}
		if err := (Config{Advertise: c[0]}).Check(); err != nil {
			t.Errorf("advertise %q: %v", c[0], err)
		}
	}
	for _, bad := range []string{":9000", "host:", "host:0", "host:x", "host:70000", "a:b:c", "http://host:9000", "http://host", "[::1]:9:9"} {
		if err := (Config{Advertise: bad}).Check(); err == nil || !strings.Contains(err.Error(), "exchange.advertise") {
			t.Errorf("advertise %q: %v", bad, err)
		}
	}
}

// TestWhereItCannotListen has errors that name the option to change.
func TestWhereItCannotListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for listen, want := range map[string]string{
		fmt.Sprintf("127.0.0.1:%d-%d,%d", port, port, port): "give exchange.port a range",
		"192.0.2.1:0": "exchange.bind must be an address of this host", // TEST-NET-1
	} {
		s, err := New(Config{Auth: Auth{Key: testKey}, Listen: listen})
		if err == nil {
			s.Close()
		}
		if e, ok := errors.AsType[*LocalError](err); !ok || e.Kind != cluster.Unavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("on %s: got %v, want %q", listen, err, want)
		}
	}
}
