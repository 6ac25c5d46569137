package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// tlsError says that TLS could not be negotiated.
type tlsError struct{ err error }

func (e *tlsError) Error() string { return "cannot negotiate TLS: " + e.err.Error() }
func (e *tlsError) Unwrap() error { return e.err }

// doubt says which setting it may be when no connection to addr comes about; offered are the mechanisms of SASL that the broker named, if it did.
func (o *opener) doubt(addr string, err error, offered []string) string {
	if _, told := errors.AsType[*TokenError](err); told {
		return ""
	}
	if t, ok := errors.AsType[*tlsError](err); ok {
		return doubtTLS(t)
	}
	if _, dialled := errors.AsType[*dialError](err); dialled {
		return o.doubtAddress(addr)
	}
	switch {
	case errors.Is(err, sarama.ErrUnsupportedSASLMechanism) && len(offered) > 0:
		return fmt.Sprintf(" (%s is %s, and this listener takes %s)", OptSASLMechanism, o.cfg.SASL.Mechanism, strings.Join(offered, ", "))
	case errors.Is(err, sarama.ErrUnsupportedSASLMechanism):
		return fmt.Sprintf(" (%s is %s: check it)", OptSASLMechanism, o.cfg.SASL.Mechanism)
	case errors.Is(err, sarama.ErrIllegalSASLState):
		return fmt.Sprintf(" (this listener takes no login: leave %s out, or name in %s one that does)", OptSASLMechanism, OptBrokers)
	}
	return o.hint(err)
}

// doubtTLS tells a listener without TLS, which hangs up or waits for more, from one whose certificate is not trusted.
func doubtTLS(t *tlsError) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](t); ok || errors.Is(t, io.EOF) || errors.Is(t, io.ErrUnexpectedEOF) || errors.Is(t, syscall.ECONNRESET) || errors.Is(t, context.DeadlineExceeded) {
		return fmt.Sprintf(" (if this listener is one without TLS, leave %s out, or name in %s one that has it)", OptTLSEnabled, OptBrokers)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](t); ok {
		return fmt.Sprintf(" (check %s or %s)", OptTLSCA, OptTLSTruststore)
	}
	return ""
}

// dialError says that nobody could be connected to.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// doubtAddress tells whose fault an address is that nobody answers at: the configuration's or the cluster's. One that was connected to before is right.
func (o *opener) doubtAddress(addr string) string {
	if _, met := o.met.Load(addr); met {
		return ""
	}
	if slices.Contains(o.cfg.Brokers, addr) {
		return fmt.Sprintf(" (check %s)", OptBrokers)
	}
	return fmt.Sprintf(" (the cluster advertises this address to those who ask at %s: it has to be reachable from here, or %s has to name a listener that advertises one which is)",
		strings.Join(o.cfg.Brokers, ", "), OptBrokers)
}

// saslHandshake is the number of the request that chooses a mechanism.
const saslHandshake = 17

// mechanisms are what the broker named as the mechanisms of SASL that it takes.
func (h *handshake) mechanisms() (offered []string) {
	h.answers(func(r apiVersion, answer []byte) {
		resp := kmsg.SASLHandshakeResponse{Version: r.version}
		if r.key == saslHandshake && r.version >= 0 && r.version <= resp.MaxVersion() && len(answer) > 4 && resp.ReadFrom(answer[4:]) == nil {
			offered = resp.SupportedMechanisms
		}
	})
	return offered
}

// answers calls f with each request that was sent and its answer, as far as they are there.
func (h *handshake) answers(f func(r apiVersion, answer []byte)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.in
	for _, r := range h.requests {
		if len(in) < 4 {
			return
		}
		size := uint64(binary.BigEndian.Uint32(in))
		if size > uint64(len(in)-4) {
			return
		}
		f(r, in[4:4+size])
		in = in[4+size:]
	}
}

// unfit says what a broker may be that does not know what it is asked.
func unfit(err error) string {
	if errors.Is(err, sarama.ErrUnsupportedVersion) {
		return fmt.Sprintf(" (is it a controller? %s wants brokers)", OptBrokers)
	}
	return ""
}

// noLeaderAnswers says of a topic that is there that nobody answers who has it, which is so where brokers advertise addresses that can't be reached from here.
// A topic without leaders, as while they are elected, is no trouble yet.
func (c *Client) noLeaderAnswers(ctx context.Context, topic string) error {
	md, err := c.Metadata(ctx, topic)
	if err != nil {
		return err
	}
	var asked []string
	for _, p := range md.Topics[topic].Partitions {
		addr, ok := md.Brokers[p.Leader]
		if !ok || slices.Contains(asked, addr) {
			continue
		}
		asked = append(asked, addr)
		each, cancel := context.WithTimeout(ctx, c.o.cfg.RequestTimeout/2)
		why := c.Greet(each, addr)
		cancel()
		if why == nil {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("no leader of topic %q answers: %w", topic, why)
		}
	}
	return err
}
