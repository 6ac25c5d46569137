package kafka

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestDoubts: what no connection comes of names the setting that it may be.
func TestDoubts(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	here := c.ListenAddrs()[0]
	_, port, err := net.SplitHostPort(here)
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(_ context.Context, network, addr string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	onlySeed := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !strings.HasPrefix(addr, "seed:") {
			return refuses(ctx, network, addr)
		}
		return (&net.Dialer{}).DialContext(ctx, network, here)
	}
	for name, test := range map[string]struct {
		cfg   Config
		wants []string
	}{
		"nobody is there":         {Config{Brokers: []string{here}, Dial: refuses}, []string{"check kafka.brokers"}},
		"TLS on a plain listener": {Config{Brokers: []string{here}, TLS: TLS{Enabled: true}}, []string{"leave kafka.tls.enabled out"}},
		"advertised elsewhere":    {Config{Brokers: []string{"seed:" + port}, Dial: onlySeed}, []string{"no leader of topic", here, "the cluster advertises this address to those who ask at seed:" + port}},
	} {
		err := Writable(t.Context(), test.cfg, "out")
		for _, want := range test.wants {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SASL") {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	if err := Writable(t.Context(), Config{Brokers: []string{here}}, "out"); err != nil {
		t.Error(err)
	}
}

func TestDoubt(t *testing.T) {
	o, err := newOpener(Config{Brokers: []string{"b:1"}, SASL: SASL{Mechanism: "PLAIN", User: "u", Password: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	refused := &dialError{syscall.ECONNREFUSED}
	for _, test := range []struct {
		err     error
		offered []string
		want    string
	}{
		{sarama.ErrUnsupportedSASLMechanism, []string{"SCRAM-SHA-256", "GSSAPI"}, "kafka.sasl.mechanism is PLAIN, and this listener takes SCRAM-SHA-256, GSSAPI"},
		{sarama.ErrUnsupportedSASLMechanism, nil, "kafka.sasl.mechanism is PLAIN: check it"},
		{sarama.ErrIllegalSASLState, nil, "leave kafka.sasl.mechanism out"},
		{&tlsError{tls.RecordHeaderError{}}, nil, "kafka.tls.enabled"},
		{&tlsError{context.DeadlineExceeded}, nil, "kafka.tls.enabled"},
		{refused, nil, "check kafka.brokers"},
	} {
		if got := o.doubt("b:1", test.err, test.offered); !strings.Contains(got, test.want) {
			t.Errorf("%v: %q, want %q", test.err, got, test.want)
		}
	}
	o.met.Store("b:1", true)
	if got := o.doubt("b:1", refused, nil); got != "" {
		t.Errorf("of a broker that went away: %q", got)
	}
	if got := unfit(errors.Join(sarama.ErrUnsupportedVersion)); !strings.Contains(got, "controller") {
		t.Errorf("of one that knows no metadata: %q", got)
	}
}

// TestMechanisms reads what a broker offers in the answer that refuses what was asked for.
func TestMechanisms(t *testing.T) {
	var h handshake
	ask := func(key, version int16) []byte {
		b := binary.BigEndian.AppendUint32(nil, 10)
		return append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, uint16(key)), uint16(version)), 0, 0, 0, 1, 0, 0)
	}
	resp := kmsg.SASLHandshakeResponse{Version: 1, ErrorCode: 33, SupportedMechanisms: []string{"SCRAM-SHA-512", "PLAIN"}}
	body := resp.AppendTo([]byte{0, 0, 0, 1})
	h.wrote(ask(18, 0))
	h.wrote(ask(saslHandshake, 1))
	h.read([]byte{0, 0, 0, 4, 0, 0, 0, 0})
	whole := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	h.read(whole[:7])
	if got := h.mechanisms(); got != nil {
		t.Errorf("of half an answer: %q", got)
	}
	h.read(whole[7:])
	if got := h.mechanisms(); !slices.Equal(got, resp.SupportedMechanisms) {
		t.Errorf("got %q", got)
	}
	if got := h.lifetime(); got != time.Duration(0) {
		t.Errorf("a session of %v", got)
	}
}
