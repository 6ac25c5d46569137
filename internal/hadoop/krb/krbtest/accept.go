package krbtest

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Acceptor is a service's side of a GSSAPI context.
type Acceptor struct {
	Client string // who proved to be there
	Rotate int    // by how much sealed and signed messages are rotated, as MIT's and Windows' services do

	key      types.EncryptionKey
	subkey   bool
	sent, in uint64
}

// Accept checks a client's first token for a service of the realm, and returns the answer. subkey is the encryption type of the key that the service
// chooses; 0: it leaves the choice to the client.
func (r *Realm) Accept(service string, token []byte, subkey int32) (*Acceptor, []byte, error) {
	var kt spnego.KRB5Token
	if err := kt.Unmarshal(token); err != nil {
		return nil, nil, err
	}
	if !kt.IsAPReq() {
		return nil, nil, errors.New("it is no request")
	}
	ap := kt.APReq
	r.Lock()
	keys := r.keys[service]
	r.Unlock()
	ok := false
	for _, k := range keys {
		ok = ok || ap.Ticket.Decrypt(k) == nil
	}
	if !ok {
		return nil, nil, errors.New("the ticket is not for " + service)
	}
	enc := ap.Ticket.DecryptedEncPart
	if r.Now().After(enc.EndTime) {
		return nil, nil, errors.New("the ticket has expired")
	}
	if err := ap.DecryptAuthenticator(enc.Key); err != nil {
		return nil, nil, err
	}
	auth := ap.Authenticator
	if d := r.Now().Sub(auth.CTime); d > 5*time.Minute || d < -5*time.Minute {
		return nil, nil, errors.New("the clocks differ")
	}
	a := &Acceptor{Client: enc.CName.PrincipalNameString() + "@" + enc.CRealm, key: enc.Key, in: uint64(auth.SeqNumber), sent: 1000}
	if len(auth.SubKey.KeyValue) > 0 {
		a.key = auth.SubKey
	}
	part := messages.EncAPRepPart{CTime: auth.CTime, Cusec: auth.Cusec, SequenceNumber: int64(a.sent)}
	if subkey != 0 {
		a.key, a.subkey = newKey(subkey), true
		part.Subkey = a.key
	}
	b, err := asn1.Marshal(part)
	if err != nil {
		return nil, nil, err
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(b, asnAppTag.EncAPRepPart), enc.Key, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		return nil, nil, err
	}
	if b, err = asn1.Marshal(messages.APRep{PVNO: iana.PVNO, MsgType: msgtype.KRB_AP_REP, EncPart: sealed}); err != nil {
		return nil, nil, err
	}
	oid := []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}
	return a, asn1tools.AddASNAppTag(slices.Concat(oid, []byte{2, 0}, asn1tools.AddASNAppTag(b, asnAppTag.APREP)), 0), nil
}

// Wrap protects a message to the client.
func (a *Acceptor) Wrap(msg []byte, seal bool) ([]byte, error) {
	et, err := crypto.GetEtype(a.key.KeyType)
	if err != nil {
		return nil, err
	}
	h := make([]byte, 16)
	h[0], h[1], h[2], h[3] = 5, 4, 1, 0xff
	if a.subkey {
		h[2] |= 4
	}
	binary.BigEndian.PutUint64(h[8:], a.sent)
	a.sent++
	var body []byte
	if seal {
		h[2] |= 2
		if _, body, err = et.EncryptMessage(a.key.KeyValue, slices.Concat(msg, h), keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
			return nil, err
		}
	} else {
		sum, err := et.GetChecksumHash(a.key.KeyValue, slices.Concat(msg, h), keyusage.GSSAPI_ACCEPTOR_SEAL)
		if err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint16(h[4:], uint16(len(sum)))
		body = slices.Concat(msg, sum)
	}
	if n := a.Rotate % len(body); n > 0 {
		binary.BigEndian.PutUint16(h[6:], uint16(a.Rotate))
		body = slices.Concat(body[len(body)-n:], body[:len(body)-n])
	}
	return slices.Concat(h, body), nil
}

// Unwrap opens a message of the client's.
func (a *Acceptor) Unwrap(b []byte) (msg []byte, sealed bool, err error) {
	et, err := crypto.GetEtype(a.key.KeyType)
	if err != nil || len(b) < 16+12 {
		return nil, false, errors.New("the message is too short")
	}
	h := slices.Clone(b[:16])
	if seq := binary.BigEndian.Uint64(h[8:]); seq != a.in || h[2]&1 != 0 || (h[2]&4 != 0) != a.subkey {
		return nil, false, errors.New("the message is out of order or of the wrong side")
	}
	a.in++
	if h[2]&2 != 0 {
		plain, err := et.DecryptMessage(a.key.KeyValue, b[16:], keyusage.GSSAPI_INITIATOR_SEAL)
		if err != nil || len(plain) < 16 || !slices.Equal(plain[len(plain)-16:], h) {
			return nil, true, errors.New("the message does not open")
		}
		return plain[:len(plain)-16], true, nil
	}
	ec := int(binary.BigEndian.Uint16(h[4:]))
	if ec > len(b)-16 {
		return nil, false, errors.New("the message is too short")
	}
	msg, sum := b[16:len(b)-ec], b[len(b)-ec:]
	h[4], h[5] = 0, 0
	want, err := et.GetChecksumHash(a.key.KeyValue, slices.Concat(msg, h), keyusage.GSSAPI_INITIATOR_SEAL)
	if err != nil || !hmac.Equal(sum, want) {
		return nil, false, errors.New("the message's signature is wrong")
	}
	return msg, false, nil
}
