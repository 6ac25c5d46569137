package krb

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/etype"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Context is the initiator's side of a GSSAPI context of Kerberos (RFC 4121): both sides have proven who they are, and share a key by which
// messages are signed or sealed. One goroutine may wrap while another unwraps.
type Context struct {
	// Immutable after Accept.
	et          etype.EType
	key         []byte
	subkey      bool // the acceptor chose the key
	established bool

	sent, received uint64 // sequence numbers of the next tokens

	// For Accept.
	session types.EncryptionKey
	own     types.EncryptionKey
	ctime   time.Time
	cusec   int
}

// What a context is asked to do: prove both sides, notice repeated and missing messages, seal and sign.
const contextFlags = 2 | 4 | 8 | 16 | 32

// krbOID is Kerberos's, 1.2.840.113554.1.2.2, as DER.
var krbOID = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// Kinds of context tokens.
var (
	tokenAPReq = []byte{1, 0}
	tokenAPRep = []byte{2, 0}
	tokenError = []byte{3, 0}
)

// Initiate begins a context with the service that the ticket is for, and returns the token to send. The answer goes to Accept.
func (t *Ticket) Initiate(now time.Time) (*Context, []byte, error) {
	et, err := crypto.GetEtype(t.key.KeyType)
	if err != nil || !slices.Contains(sealing, t.key.KeyType) {
		return nil, nil, fmt.Errorf("cannot open a context with %s: its key is of %s, and only AES will do", t.Server, EnctypeName(t.key.KeyType))
	}
	auth := newAuthenticator(t.Client, now)
	auth.SubKey = types.EncryptionKey{KeyType: t.key.KeyType, KeyValue: make([]byte, keySize(t.key.KeyType))}
	rand.Read(auth.SubKey.KeyValue)
	sum := make([]byte, 24)
	binary.LittleEndian.PutUint32(sum, 16)
	binary.LittleEndian.PutUint32(sum[20:], contextFlags)
	auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: sum}
	ap, err := messages.NewAPReq(t.ticket, t.key, auth)
	if err != nil {
		return nil, nil, err
	}
	types.SetFlag(&ap.APOptions, flags.APOptionMutualRequired)
	b, err := ap.Marshal()
	if err != nil {
		return nil, nil, err
	}
	c := &Context{et: et, session: t.key, own: auth.SubKey, key: auth.SubKey.KeyValue, sent: uint64(auth.SeqNumber), ctime: auth.CTime, cusec: auth.Cusec}
	return c, frameToken(tokenAPReq, b), nil
}

// frameToken puts a message into the form of context tokens (RFC 2743).
func frameToken(kind, b []byte) []byte {
	body := slices.Concat(krbOID, kind, b)
	return append(derHeader(0x60, len(body)), body...)
}

func derHeader(tag byte, n int) []byte {
	switch {
	case n < 0x80:
		return []byte{tag, byte(n)}
	case n < 0x100:
		return []byte{tag, 0x81, byte(n)}
	case n < 0x10000:
		return []byte{tag, 0x82, byte(n >> 8), byte(n)}
	}
	return []byte{tag, 0x83, byte(n >> 16), byte(n >> 8), byte(n)}
}

// openToken is the reverse of frameToken.
func openToken(b []byte) (kind, body []byte, err error) {
	var raw asn1.RawValue
	if rest, err := asn1.Unmarshal(b, &raw); err != nil || len(rest) > 0 || raw.Class != asn1.ClassApplication || raw.Tag != 0 {
		return nil, nil, errors.New("the server's token is no GSSAPI token")
	}
	if len(raw.Bytes) < len(krbOID)+2 || string(raw.Bytes[:len(krbOID)]) != string(krbOID) {
		return nil, nil, errors.New("the server's token is not of Kerberos")
	}
	at := len(krbOID)
	return raw.Bytes[at : at+2], raw.Bytes[at+2:], nil
}

// Accept checks the server's answer, by which it proves that it could read ours. It establishes the context.
func (c *Context) Accept(token []byte) error {
	if c.established {
		return errors.New("the server answers twice")
	}
	kind, body, err := openToken(token)
	if err != nil {
		return err
	}
	if string(kind) == string(tokenError) {
		if e := asError(body); e != nil {
			return refusal(e, "the server", "", "", c.ctime)
		}
	}
	if string(kind) != string(tokenAPRep) {
		return errors.New("the server's token is no answer to ours")
	}
	var rep messages.APRep
	if err := rep.Unmarshal(body); err != nil {
		return fmt.Errorf("cannot read the server's proof: %w", err)
	}
	plain, err := openPart(rep.EncPart, c.session, keyusage.AP_REP_ENCPART)
	if err != nil {
		return errors.New("cannot trust the server: its proof is not sealed by the ticket's key")
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(plain); err != nil {
		return fmt.Errorf("cannot read the server's proof: %w", err)
	}
	if !part.CTime.Equal(c.ctime) || part.Cusec != c.cusec {
		return errors.New("cannot trust the server: its proof answers another request")
	}
	if len(part.Subkey.KeyValue) > 0 {
		et, err := crypto.GetEtype(part.Subkey.KeyType)
		if err != nil || !slices.Contains(sealing, part.Subkey.KeyType) || len(part.Subkey.KeyValue) != keySize(part.Subkey.KeyType) {
			return fmt.Errorf("the server chose a key of %s, and only AES will do", EnctypeName(part.Subkey.KeyType))
		}
		c.et, c.key, c.subkey = et, part.Subkey.KeyValue, true
	}
	c.received = uint64(part.SequenceNumber) & 0xffffffff
	c.established = true
	return nil
}

// Established reports whether the server has proven itself.
func (c *Context) Established() bool { return c.established }

// Bits of a wrap token's flags.
const (
	flagAcceptor = 1
	flagSealed   = 2
	flagSubkey   = 4
)

const wrapHeader = 16

// Wrap signs a message, and seals it if asked to.
func (c *Context) Wrap(msg []byte, seal bool) ([]byte, error) {
	h := make([]byte, wrapHeader, wrapHeader+len(msg)+64)
	h[0], h[1], h[3] = 5, 4, 0xff
	if c.subkey {
		h[2] |= flagSubkey
	}
	binary.BigEndian.PutUint64(h[8:], c.sent)
	c.sent++
	if seal {
		h[2] |= flagSealed
		_, sealed, err := c.et.EncryptMessage(c.key, slices.Concat(msg, h), keyusage.GSSAPI_INITIATOR_SEAL)
		if err != nil {
			return nil, err
		}
		return append(h, sealed...), nil
	}
	sum, err := c.et.GetChecksumHash(c.key, slices.Concat(msg, h), keyusage.GSSAPI_INITIATOR_SEAL)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(h[4:], uint16(len(sum)))
	return append(append(h, msg...), sum...), nil
}

// Unwrap checks the next message of the acceptor's and reports whether it was sealed.
func (c *Context) Unwrap(token []byte) (msg []byte, sealed bool, err error) {
	if len(token) >= 2 && token[0] == 0x60 {
		return nil, false, errors.New("the server protects its messages by an old encryption type (rc4 or des3), which is not supported: give its principal AES keys")
	}
	if len(token) < wrapHeader || token[0] != 5 || token[1] != 4 || token[3] != 0xff {
		return nil, false, errors.New("the server's message is not wrapped as it should be")
	}
	h := slices.Clone(token[:wrapHeader])
	f := h[2]
	if f&flagAcceptor == 0 || (f&flagSubkey != 0) != c.subkey {
		return nil, false, errors.New("the server's message is not protected by the key that was agreed on")
	}
	ec, rrc := int(binary.BigEndian.Uint16(h[4:])), int(binary.BigEndian.Uint16(h[6:]))
	if seq := binary.BigEndian.Uint64(h[8:]); seq != c.received {
		return nil, false, fmt.Errorf("the server's message is number %d where %d is due: one was lost, repeated or put in", seq, c.received)
	}
	sealed = f&flagSealed != 0
	if sealed {
		msg, err = c.unseal(h, token[wrapHeader:], ec, rrc)
	} else {
		msg, err = c.verify(h, token[wrapHeader:], ec, rrc)
	}
	if err == nil {
		c.received++
	}
	return msg, sealed, err
}

func (c *Context) unseal(h, body []byte, ec, rrc int) ([]byte, error) {
	if len(body) == 0 || ec > len(body) {
		return nil, errors.New("the server's message is too short")
	}
	plain, err := decrypt(c.et, c.key, unrotate(body, rrc+ec), keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		return nil, errors.New("the server's message does not open: it was changed on the way")
	}
	if len(plain) < wrapHeader+ec {
		return nil, errors.New("the server's message is too short")
	}
	inner := plain[len(plain)-wrapHeader:]
	h[6], h[7] = 0, 0
	if subtle.ConstantTimeCompare(inner, h) != 1 {
		return nil, errors.New("the server's message has another header inside")
	}
	return plain[:len(plain)-wrapHeader-ec], nil
}

func (c *Context) verify(h, body []byte, ec, rrc int) ([]byte, error) {
	b := unrotate(body, rrc)
	if ec > len(b) || ec < 12 {
		return nil, errors.New("the server's message is too short")
	}
	msg, sum := b[:len(b)-ec], b[len(b)-ec:]
	h[4], h[5], h[6], h[7] = 0, 0, 0, 0
	want, err := c.et.GetChecksumHash(c.key, slices.Concat(msg, h), keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(sum, want) != 1 {
		return nil, errors.New("the server's message does not match its signature: it was changed on the way")
	}
	return msg, nil
}

// decrypt opens a message. The library's own decryption takes a length for granted.
func decrypt(et etype.EType, key, b []byte, usage uint32) ([]byte, error) {
	if len(b) < et.GetConfounderByteSize()+et.GetHMACBitLength()/8 {
		return nil, errors.New("it is too short")
	}
	return et.DecryptMessage(key, b, usage)
}

// openPart opens the sealed part of a message.
func openPart(ed types.EncryptedData, key types.EncryptionKey, usage uint32) ([]byte, error) {
	if ed.EType != key.KeyType {
		return nil, fmt.Errorf("it is sealed by a key of %s, not %s", EnctypeName(ed.EType), EnctypeName(key.KeyType))
	}
	et, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return nil, err
	}
	return decrypt(et, key.KeyValue, ed.Cipher, usage)
}

// unrotate turns b back by n to the left, as rotated tokens want.
func unrotate(b []byte, n int) []byte {
	if len(b) == 0 || n%len(b) == 0 {
		return b
	}
	n %= len(b)
	return slices.Concat(b[n:], b[:n])
}
