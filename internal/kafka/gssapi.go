package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// gssapi proves to the broker at the other end of conn, which was dialled as addr, who we are, before sarama speaks on it. It returns how long the broker will
// believe that; 0: for ever. The end of ctx, or of the timeout, breaks it off.
func (o *opener) gssapi(ctx context.Context, conn net.Conn, addr string) (time.Duration, error) {
	t, err := o.cfg.SASL.Kerberos.ticket(ctx, addr)
	if err != nil {
		return 0, err
	}
	gss, token, err := t.Initiate(time.Now())
	if err != nil {
		return 0, &KerberosError{err}
	}
	if err := conn.SetDeadline(time.Now().Add(o.cfg.RequestTimeout)); err != nil {
		return 0, err
	}
	d := newDialogue(conn, o.cfg.ClientID)
	if err := d.handshake("GSSAPI"); err != nil {
		return 0, err
	}
	// RFC 4752: the broker answers our proof by its own, then offers layers of protection, of which Kafka's connections use none.
	proof, err := d.authenticate(token)
	if err != nil {
		return 0, err
	}
	if err := gss.Accept(proof); err != nil {
		return 0, &KerberosError{err}
	}
	sealed, err := d.authenticate(nil)
	if err != nil {
		return 0, err
	}
	offer, _, err := gss.Unwrap(sealed)
	if err != nil {
		return 0, &KerberosError{err}
	}
	if len(offer) != 4 || offer[0]&noLayer == 0 {
		return 0, fmt.Errorf("the broker's offer of protection is %x: it wants a layer that Kafka's protocol does not have", offer)
	}
	choice, err := gss.Wrap([]byte{noLayer, 0, 0, 0}, false)
	if err != nil {
		return 0, err
	}
	if _, err := d.authenticate(choice); err != nil {
		return 0, err
	}
	return d.life, conn.SetDeadline(time.Time{})
}

// noLayer is the bit that stands for no protection of what follows.
const noLayer = 1

// dialogue is what is said before a broker knows who we are.
type dialogue struct {
	conn   net.Conn
	format *kmsg.RequestFormatter
	corr   int32
	life   time.Duration // as the broker's last answer told
}

func newDialogue(conn net.Conn, client string) *dialogue {
	return &dialogue{conn: conn, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(client))}
}

// handshake agrees on a mechanism.
func (d *dialogue) handshake(mechanism string) error {
	req, resp := kmsg.NewPtrSASLHandshakeRequest(), kmsg.NewPtrSASLHandshakeResponse()
	req.Version, resp.Version, req.Mechanism = 1, 1, mechanism
	if err := d.ask(req, resp); err != nil {
		return err
	}
	if resp.ErrorCode != 0 {
		return fmt.Errorf("the broker does not take %s, but %s: check %s and the listener's port: %w", mechanism, strings.Join(resp.SupportedMechanisms, ", "), OptSASLMechanism, sarama.KError(resp.ErrorCode))
	}
	return nil
}

// authenticate sends a token and returns the answer.
func (d *dialogue) authenticate(token []byte) ([]byte, error) {
	req, resp := kmsg.NewPtrSASLAuthenticateRequest(), kmsg.NewPtrSASLAuthenticateResponse()
	req.Version, resp.Version, req.SASLAuthBytes = 1, 1, token
	if err := d.ask(req, resp); err != nil {
		return nil, err
	}
	if resp.ErrorCode != 0 {
		err := error(sarama.KError(resp.ErrorCode))
		if resp.ErrorMessage != nil && *resp.ErrorMessage != "" {
			err = fmt.Errorf("%w: %s", err, *resp.ErrorMessage)
		}
		return nil, err
	}
	d.life = time.Duration(min(max(resp.SessionLifetimeMillis, 0), maxLifetime.Milliseconds())) * time.Millisecond
	return resp.SASLAuthBytes, nil
}

// maxToken bounds an answer. No ticket's is near it.
const maxToken = 1 << 20

func (d *dialogue) ask(req kmsg.Request, resp kmsg.Response) error {
	d.corr++
	if _, err := d.conn.Write(d.format.AppendRequest(nil, req, d.corr)); err != nil {
		return err
	}
	var head [8]byte // size and correlation id
	if _, err := io.ReadFull(d.conn, head[:]); err != nil {
		return err
	}
	size, corr := binary.BigEndian.Uint32(head[:]), int32(binary.BigEndian.Uint32(head[4:]))
	if size < 4 || size > maxToken || corr != d.corr {
		return errors.New("the answer is not that of a Kafka broker")
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(d.conn, body); err != nil {
		return err
	}
	return resp.ReadFrom(body)
}
