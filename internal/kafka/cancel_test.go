package kafka

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/twmb/franz-go/pkg/kfake"
)

// newSilent listens like a broker that never answers, and tells of each connection.
func newSilent(t *testing.T) (addr string, called <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls := make(chan struct{}, 100)
	done := make(chan struct{})
	go func() { // ends with the listener
		defer close(done)
		var conns []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range conns {
					c.Close()
				}
				return
			}
			conns = append(conns, c)
			select {
			case calls <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String(), calls
}

// TestCancelDuringLogin: whoever is cancelled does not wait until a login has come to nothing, which takes ten seconds from a token's endpoint,
// and here an hour from a broker.
func TestCancelDuringLogin(t *testing.T) {
	const bound, tokenBound = time.Minute, 9 * time.Second
	addr, called := newSilent(t)
	asked, over := make(chan struct{}, 100), make(chan struct{})
	idp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-over
	}))
	defer idp.Close()
	defer close(over)
	cfg := Config{Brokers: []string{addr}, SASL: SASL{Mechanism: "PLAIN", User: "u", Password: "p"}, DialTimeout: time.Hour, RequestTimeout: time.Hour}
	t.Run("commit", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, err := NewCommitter(ctx, cfg, CommitterConfig{Group: "g", Logger: slog.New(slog.DiscardHandler), Commit: new(flow.Counter), Failed: new(flow.Counter)})
		if err != nil {
			t.Fatal(err)
		}
		c.Commit(map[TP]int64{{"a", 0}: 7})
		<-called
		began := time.Now()
		cancel()
		c.Close()
		if d := time.Since(began); d > bound {
			t.Errorf("Close took %v", d)
		}
	})
	t.Run("read", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := NewPuller(ctx, cfg, PullerConfig{Logger: slog.New(slog.DiscardHandler), Wake: func() {}, Waiting: new(flow.Counter), Resets: new(flow.Counter)})
		if err != nil {
			t.Fatal(err)
		}
		p.Add([]*Target{NewTarget(TP{"a", 0}, 0, 10)})
		<-called
		began := time.Now()
		cancel()
		p.Close()
		if d := time.Since(began); d > bound {
			t.Errorf("Close took %v", d)
		}
	})
	t.Run("token", func(t *testing.T) {
		tok, err := newTokens(OAuth{URL: idp.URL, ClientID: "id", ClientSecret: "s"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		go func() { // ends when the endpoint is asked
			<-asked
			cancel()
		}()
		if _, err := (tokensWithin{tok, ctx}).Token(); !errors.Is(err, context.Canceled) || time.Since(began) > tokenBound {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestCancelAfterOpening: the end of the call that opened a connection is none of the connection's later users' (K-14).
func TestCancelAfterOpening(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o, err := newOpener(Config{Brokers: c.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l, err := o.open(ctx, c.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	cancel()
	for i := range 100 {
		if _, err := l.broker.ApiVersions(&sarama.ApiVersionsRequest{}); err != nil {
			t.Fatalf("request %d after the opening was cancelled: %v", i, err)
		}
	}
}
