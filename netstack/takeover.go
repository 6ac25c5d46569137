package netstack

import (
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"

	"github.com/heddle-stream/heddle/netstack/tlsrec"
)

// trafficSecrets are what a TLS 1.3 handshake has agreed on for the data of each side. It is the KeyLogWriter of one connection.
type trafficSecrets struct{ client, server []byte }

// Write takes a line: label, client's random, secret.
func (t *trafficSecrets) Write(line []byte) (int, error) {
	if f := strings.Fields(string(line)); len(f) == 3 {
		secret, _ := hex.DecodeString(f[2]) // one that is none protects no record, and nothing is taken over
		switch f[0] {
		case "CLIENT_TRAFFIC_SECRET_0":
			t.client = secret
		case "SERVER_TRAFFIC_SECRET_0":
			t.server = secret
		}
	}
	return len(line), nil
}

// beside returns a writer to t and to w, if w is not nil.
func (t *trafficSecrets) beside(w io.Writer) io.Writer {
	if w == nil {
		return t
	}
	return io.MultiWriter(t, w)
}

// sealedConn is a TLS 1.3 connection whose handshake crypto/tls has done, and whose records are protected here: from segments and into
// them, without crypto/tls's buffers between, which cost an eighth of the time. Like any net.Conn it may be read by one goroutine
// while another writes. What it is written is gathered until flush.
type sealedConn struct {
	*cork // the socket, and what was read ahead

	// Owned by the reader.
	opener *tlsrec.Half
	plain  []byte // opened and not yet read, in cork.in
	end    error  // what the peer ended its side by

	// Owned by the writer.
	sealer *tlsrec.Half
	buf    []byte // whole records; from open on, if that is not negative, one that more is added to
	open   int

	rekey atomic.Bool // the peer asks for another key of the writer's
}

// takeOver returns the connection that goes on where crypto/tls, whose handshake over under came to st, stops. Nil: crypto/tls must
// go on, since what was agreed on is not AES-GCM in TLS 1.3, or it would not say by which secrets.
func takeOver(st tls.ConnectionState, under *cork, dialed bool) *sealedConn {
	in, out := under.secrets.client, under.secrets.server
	if st.Version != tls.VersionTLS13 || len(in) == 0 || len(out) == 0 {
		return nil
	}
	if dialed {
		in, out = out, in
	}
	s := &sealedConn{cork: under, open: -1}
	var err error
	if s.opener, err = tlsrec.New(st.CipherSuite, in); err != nil {
		return nil
	}
	if s.sealer, err = tlsrec.New(st.CipherSuite, out); err != nil {
		return nil
	}
	if under.left > 0 || !s.opener.After(under.lastIn) || !s.sealer.After(under.lastOut) {
		return nil
	}
	under.secrets = trafficSecrets{}
	return s
}

// ownRecord is from how many bytes on a piece begins a record of its own, so that it can be opened straight into its place.
const ownRecord = 4 << 10

// Write gathers b in records.
func (s *sealedConn) Write(b []byte) (int, error) {
	if len(b) >= ownRecord {
		s.finish(tlsrec.Data)
	}
	for rest := b; len(rest) > 0; {
		if s.open < 0 {
			if err := s.begin(); err != nil {
				return 0, err
			}
		}
		n := min(len(rest), tlsrec.MaxPlain-(len(s.buf)-s.open-tlsrec.HeaderSize))
		s.buf = append(s.buf, rest[:n]...)
		rest = rest[n:]
		if len(s.buf)-s.open-tlsrec.HeaderSize == tlsrec.MaxPlain {
			s.finish(tlsrec.Data)
		}
	}
	return len(b), nil
}

// begin begins a record of data, if it is time under another key.
func (s *sealedConn) begin() error {
	if s.sealer.Spent() || s.rekey.CompareAndSwap(true, false) {
		s.add(tlsrec.Handshake, keyUpdate, 0, 0, 1, 0)
		if err := s.sealer.Rekey(); err != nil {
			return err
		}
	}
	if len(s.buf) >= corkBytes-tlsrec.MaxRecord {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.open, s.buf = len(s.buf), tlsrec.Begin(s.buf)
	return nil
}

func (s *sealedConn) finish(typ byte) {
	if s.open >= 0 {
		s.buf = s.sealer.Finish(s.buf, s.open, typ)
		s.open = -1
	}
}

// add gathers a record of its own.
func (s *sealedConn) add(typ byte, content ...byte) {
	s.finish(tlsrec.Data)
	s.open, s.buf = len(s.buf), append(tlsrec.Begin(s.buf), content...)
	s.finish(typ)
}

// flush writes what was gathered.
func (s *sealedConn) flush() error {
	s.finish(tlsrec.Data)
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.Conn.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// Alerts, and messages after the handshake.
const (
	levelWarning = 1
	closeNotify  = 0
	keyUpdate    = 24
)

// CloseWrite tells the peer that nothing more comes.
func (s *sealedConn) CloseWrite() error {
	s.add(tlsrec.Alert, levelWarning, closeNotify)
	return s.flush()
}

// Read opens the next record into b, if b is long enough.
func (s *sealedConn) Read(b []byte) (int, error) {
	for len(s.plain) == 0 {
		n, err := s.openNext(b)
		if n > 0 || err != nil {
			return n, err
		}
	}
	n := copy(b, s.plain)
	s.plain = s.plain[n:]
	return n, nil
}

// openNext opens a record of data into b, or, if that is too short for all of it, into plain.
func (s *sealedConn) openNext(b []byte) (int, error) {
	record, err := s.record()
	if err != nil {
		return 0, err
	}
	onto := record[tlsrec.HeaderSize:]
	direct := tlsrec.InnerSize(len(record)) <= len(b)
	if direct {
		onto = b
	}
	plain, typ, err := s.opener.Open(onto, record)
	switch {
	case err != nil:
		s.end = err
	case typ == tlsrec.Data && direct:
		return len(plain), nil
	case typ == tlsrec.Data:
		s.plain = plain
	case typ == tlsrec.Alert:
		s.end = alert(plain)
	case typ == tlsrec.Handshake:
		s.end = s.message(plain)
	default:
		s.end = fmt.Errorf("%w: its content is of type %d", tlsrec.ErrRecord, typ)
	}
	return 0, s.end
}

// record returns the next whole record. It is valid until the next call.
func (s *sealedConn) record() ([]byte, error) {
	if s.end != nil {
		return nil, s.end
	}
	err := s.need(tlsrec.HeaderSize)
	if err == nil {
		var n int
		if n, err = tlsrec.Length(s.in[s.r:s.w]); err != nil {
			s.end = err
			return nil, err
		}
		if err = s.need(n); err == nil {
			record := s.in[s.r : s.r+n]
			s.r += n
			return record, nil
		}
	}
	if err == io.EOF { // without a goodbye
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

func alert(content []byte) error {
	switch {
	case len(content) != 2:
		return tlsrec.ErrRecord
	case content[1] == closeNotify:
		return io.EOF
	default:
		return &net.OpError{Op: "remote error", Err: tls.AlertError(content[1])}
	}
}

// newSessionTicket is a message of which crypto/tls has had what it needs.
const newSessionTicket = 4

// message handles what may come after a handshake.
func (s *sealedConn) message(content []byte) error {
	switch {
	case len(content) >= 4 && content[0] == newSessionTicket:
		return nil
	case len(content) == 5 && content[0] == keyUpdate && content[4] <= 1:
		if content[4] == 1 {
			s.rekey.Store(true)
		}
		return s.opener.Rekey()
	default:
		return fmt.Errorf("%w: unexpected message after the handshake", tlsrec.ErrRecord)
	}
}
