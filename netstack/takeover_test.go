package netstack

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/tlsrec"
)

// secured is one end of a TLS connection in a test.
type secured interface {
	io.ReadWriter
	CloseWrite() error
}

// shake has crypto/tls do a handshake over loopback, and a first exchange of data as the exchange's own handshake is one. It
// returns both ends, for those that are to be taken over as such.
func shake(t *testing.T, takeServer, takeClient bool) (server, client secured) {
	t.Helper()
	own := tlsConfigs(testTLS(t))
	serverCfg, clientCfg := own.Server, own.Client
	clientCfg.ServerName = "127.0.0.1"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	underServer, underClient := newCork(accepted), newCork(dialed)
	clientCfg.KeyLogWriter = &underClient.secrets
	s, c := tls.Server(underServer, serverCfg), tls.Client(underClient, clientCfg)
	served := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(s, make([]byte, 5))
		if err == nil {
			_, err = s.Write([]byte("accept"))
		}
		served <- err
	}()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	server, client = s, c
	if takeServer {
		if server = takeOver(s.ConnectionState(), underServer, false); server == (*sealedConn)(nil) {
			t.Fatal("the server's end was not taken over")
		}
		underServer.tighten()
	}
	if takeClient {
		if client = takeOver(c.ConnectionState(), underClient, true); client == (*sealedConn)(nil) {
			t.Fatal("the client's end was not taken over")
		}
		underClient.tighten()
	}
	return server, client
}

// pour writes pieces of all lengths to w, goes over to other keys now and then, and says goodbye.
func pour(w secured, rnd *rand.Rand, pieces [][]byte) error {
	for _, b := range pieces {
		s, own := w.(*sealedConn)
		if own && rnd.IntN(8) == 0 {
			s.rekey.Store(true)
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if own && rnd.IntN(4) == 0 {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return w.CloseWrite()
}

// drink reads with room of all lengths until the end.
func drink(r io.Reader, rnd *rand.Rand) ([]byte, error) {
	var all []byte
	for {
		b := make([]byte, 1+rnd.IntN(1<<(1+rnd.IntN(17))))
		n, err := r.Read(b)
		all = append(all, b[:n]...)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// TestTakeOver lets each end be taken over or not, with the other as judge: crypto/tls understands what is written here, and the other way round.
func TestTakeOver(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprintf("server=%v,client=%v", i&1 == 1, i&2 == 2), func(t *testing.T) {
			server, client := shake(t, i&1 == 1, i&2 == 2)
			errs := make(chan error, 4)
			for j, ends := range [][2]secured{{server, client}, {client, server}} {
				rnd := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				pieces := make([][]byte, 200)
				for k := range pieces {
					pieces[k] = make([]byte, rnd.IntN(1<<(1+rnd.IntN(17))))
					for m := range pieces[k] {
						pieces[k][m] = byte(rnd.Uint32())
					}
				}
				go func() { errs <- pour(ends[0], rand.New(rand.NewPCG(1, uint64(j))), pieces) }()
				go func() {
					got, err := drink(ends[1], rand.New(rand.NewPCG(2, uint64(j))))
					if err == nil && !bytes.Equal(got, bytes.Join(pieces, nil)) {
						err = fmt.Errorf("%d bytes came, others than the %d sent", len(got), len(bytes.Join(pieces, nil)))
					}
					errs <- err
				}()
			}
			for range 4 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestAskedForKeys has one end ask the other for a new key, which comes before that one's next data.
func TestAskedForKeys(t *testing.T) {
	server, client := shake(t, true, true)
	s, c := server.(*sealedConn), client.(*sealedConn)
	b := make([]byte, 10)
	for range 3 {
		generation := s.sealer.Generation()
		c.add(tlsrec.Handshake, keyUpdate, 0, 0, 1, 1)
		if err := errors.Join(c.sealer.Rekey(), write(c, "warp")); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Read(b); err != nil || string(b[:n]) != "warp" {
			t.Fatalf("got %q, %v", b[:n], err)
		}
		if err := write(s, "weft"); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(b); err != nil || string(b[:n]) != "weft" {
			t.Fatalf("got %q, %v", b[:n], err)
		}
		if got := s.sealer.Generation(); got != generation+1 {
			t.Errorf("key %d follows key %d", got, generation)
		}
	}
}

// TestKeysWearOut has an end change its key once that has protected as many records as it may; crypto/tls follows.
func TestKeysWearOut(t *testing.T) {
	server, client := shake(t, true, false)
	s := server.(*sealedConn)
	s.sealer.Limit = 3
	for range 10 {
		if err := write(s, "warp"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.sealer.Generation(); got < 3 {
		t.Errorf("%d keys after 10 records of which each key may protect 3", got+1)
	}
}

func TestLastRecord(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "abc": "abc", "\x17\x03\x03\x00\x01a": "\x17\x03\x03\x00\x01a", "\x16\x03\x03\x00\x02ab\x17\x03\x03\x00\x01c": "\x17\x03\x03\x00\x01c",
	} {
		if got := lastRecord([]byte(in)); string(got) != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func write(s *sealedConn, text string) error {
	if _, err := s.Write([]byte(text)); err != nil {
		return err
	}
	return s.flush()
}

// TestTakenOverEnds gives an end what is no record, and what ends a connection.
func TestTakenOverEnds(t *testing.T) {
	for name, c := range map[string]struct {
		send func(s *sealedConn)
		want error
	}{
		"goodbye":          {func(s *sealedConn) { s.CloseWrite() }, io.EOF},
		"end alone":        {func(s *sealedConn) {}, io.ErrUnexpectedEOF},
		"end in a header":  {func(s *sealedConn) { s.Conn.Write([]byte{tlsrec.Data, 3, 3}) }, io.ErrUnexpectedEOF},
		"end in a record":  {func(s *sealedConn) { s.Conn.Write([]byte{tlsrec.Data, 3, 3, 1, 0, 9, 9}) }, io.ErrUnexpectedEOF},
		"alert":            {func(s *sealedConn) { s.add(tlsrec.Alert, 2, 20); s.flush() }, tls.AlertError(20)},
		"long alert":       {func(s *sealedConn) { s.add(tlsrec.Alert, 2, 20, 0); s.flush() }, tlsrec.ErrRecord},
		"plain text":       {func(s *sealedConn) { s.Conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }, tlsrec.ErrRecord},
		"too long":         {func(s *sealedConn) { s.Conn.Write([]byte{tlsrec.Data, 3, 3, 255, 255}) }, tlsrec.ErrRecord},
		"too short":        {func(s *sealedConn) { s.Conn.Write([]byte{tlsrec.Data, 3, 3, 0, 16}) }, tlsrec.ErrRecord},
		"of another key":   {func(s *sealedConn) { s.sealer.Rekey(); write(s, "x") }, tlsrec.ErrRecord},
		"left out":         {func(s *sealedConn) { s.sealer.Finish(tlsrec.Begin(nil), 0, tlsrec.Data); write(s, "x") }, tlsrec.ErrRecord},
		"unknown content":  {func(s *sealedConn) { s.add(99, 1); s.flush() }, tlsrec.ErrRecord},
		"strange message":  {func(s *sealedConn) { s.add(tlsrec.Handshake, 1, 0, 0, 0); s.flush() }, tlsrec.ErrRecord},
		"empty message":    {func(s *sealedConn) { s.add(tlsrec.Handshake); s.flush() }, tlsrec.ErrRecord},
		"ticket, then end": {func(s *sealedConn) { s.add(tlsrec.Handshake, newSessionTicket, 0, 0, 1, 9); s.CloseWrite() }, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := shake(t, true, true)
			c.send(server.(*sealedConn))
			server.(*sealedConn).Close()
			for range 2 { // and stays so
				if n, err := client.Read(make([]byte, 100)); n != 0 || !errors.Is(err, c.want) {
					t.Errorf("got %d bytes, %v, want %v", n, err, c.want)
				}
			}
		})
	}
}

// TestNotTakenOver leaves to crypto/tls what it must do itself.
func TestNotTakenOver(t *testing.T) {
	good := tls.ConnectionState{Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256}
	secrets := trafficSecrets{client: make([]byte, 32), server: make([]byte, 32)}
	for name, c := range map[string]struct {
		version, suite uint16
		secrets        trafficSecrets
	}{
		"TLS 1.2":            {tls.VersionTLS12, good.CipherSuite, secrets},
		"ChaCha20":           {good.Version, tls.TLS_CHACHA20_POLY1305_SHA256, secrets},
		"no secrets":         {good.Version, good.CipherSuite, trafficSecrets{}},
		"records of another": {good.Version, good.CipherSuite, secrets},
	} {
		under := &cork{secrets: c.secrets, lastIn: make([]byte, 100), lastOut: make([]byte, 100)}
		if takeOver(tls.ConnectionState{Version: c.version, CipherSuite: c.suite}, under, true) != nil {
			t.Error(name, "was taken over")
		}
	}
}

// TestOldAndNewTLS has stacks speak that protect their records themselves, with crypto/tls, and by TLS 1.2, in all pairs.
func TestOldAndNewTLS(t *testing.T) {
	mine := testTLS(t)
	newOne := func(kind int) *Stack {
		s := start(t, func(c *Config) {
			pair := &TLS{Server: mine.Server.Clone(), Client: mine.Client.Clone()}
			if kind == 2 {
				pair.Server.MaxVersion, pair.Client.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
			}
			c.TLS = pair
		})
		s.ownRecords = kind != 1
		return s
	}
	for i := range 9 {
		a, b := newOne(i/3), newOne(i%3)
		p := mustPartition(t, a, "p", 1)
		done := make(chan error, 1)
		go func() { done <- produce(t.Context(), p, 1, 50) }()
		g, w := open(t, b, "p", a.Addr(), 0)
		if err := consume(g, w, []int{0}, 50); err != nil {
			t.Fatal(i, err)
		}
		if err := <-done; err != nil {
			t.Fatal(i, err)
		}
		for j, s := range []*Stack{a, b} {
			s.mu.Lock()
			conns := s.connsLocked()
			s.mu.Unlock()
			_, own := conns[0].nc.(*sealedConn)
			kinds := []int{i / 3, i % 3}
			if want := kinds[j] == 0 && kinds[1-j] != 2; own != want {
				t.Errorf("stack of kind %d with one of kind %d: protects records itself: %v", kinds[j], kinds[1-j], own)
			}
		}
		g.Close()
	}
}

// TestForgedRecord damages one on its way: the connection is lost, as the peer's fault.
func TestForgedRecord(t *testing.T) {
	mine := testTLS(t)
	edit := func(c *Config) { c.TLS = mine }
	a, b := start(t, edit), start(t, edit)
	p := mustPartition(t, a, "p", 1)
	g, w := open(t, b, "p", a.Addr(), 0)
	eventually(t, "attached", func() bool { return a.Stats().Channels == 1 })
	a.mu.Lock()
	c := a.connsLocked()[0]
	a.mu.Unlock()
	if _, err := c.socket.Write([]byte{tlsrec.Data, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}); err != nil {
		t.Fatal(err)
	}
	_, err := next(g, w)
	wantRemote(t, "forged record", err, cluster.Lost)
	if !errors.Is(err, tlsrec.ErrRecord) {
		t.Errorf("got %v", err)
	}
	p.Release()
}
