// Package krbtest is a Kerberos realm in the process, for tests: a KDC on the real wire format, which can misbehave, and the accepting side of GSSAPI. It asks nobody
// for proof beyond what Kerberos itself proves, and its keys are no secret.
package krbtest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Realm is a KDC and its principals. Its exported fields may be changed under Lock.
type Realm struct {
	Name string
	Now  func() time.Time // the KDC's clock

	sync.Mutex
	Life, Renewable time.Duration     // of tickets; 10 h, 7 d
	Preauth         bool              // a login must prove that it has the key first
	NoRenewal       bool              // renewals are refused
	Silent          bool              // no answer at all
	Refuse          int32             // every request is refused with this code; 0: none
	Referrals       map[string]string // services whose tickets another realm gives, by their name
	Requests        []string          // what was asked for

	keys   map[string][]types.EncryptionKey // by principal, without the realm
	kvno   map[string]int
	others map[string]types.EncryptionKey // keys shared with other realms, by their name
	wg     sync.WaitGroup
}

// New makes a realm. Principals are added with the encryption types of their keys.
func New(name string) *Realm {
	r := &Realm{Name: name, Now: time.Now, Life: 10 * time.Hour, Renewable: 7 * 24 * time.Hour, keys: map[string][]types.EncryptionKey{}, kvno: map[string]int{},
		others: map[string]types.EncryptionKey{}, Referrals: map[string]string{}}
	r.Add("krbtgt/"+name, 18)
	return r
}

// Add makes a principal with random keys, or gives it new ones.
func (r *Realm) Add(principal string, enctypes ...int32) {
	r.Lock()
	defer r.Unlock()
	r.keys[principal] = nil
	r.kvno[principal]++
	for _, id := range enctypes {
		r.keys[principal] = append(r.keys[principal], newKey(id))
	}
}

func newKey(id int32) types.EncryptionKey {
	size := 32
	switch id {
	case 17, 19, 23:
		size = 16
	}
	k := types.EncryptionKey{KeyType: id, KeyValue: make([]byte, size)}
	rand.Read(k.KeyValue)
	return k
}

// Trust lets users of r get tickets for services of the other realm.
func (r *Realm) Trust(other *Realm) {
	k := newKey(18)
	r.Lock()
	r.others[other.Name] = k
	r.Unlock()
	other.Lock()
	other.keys["krbtgt/"+other.Name+"@"+r.Name] = []types.EncryptionKey{k}
	other.Unlock()
}

// Keytab writes the present keys of principals as a keytab of key version kvno, 0: the KDC's.
func (r *Realm) Keytab(kvno int, principals ...string) []byte {
	r.Lock()
	defer r.Unlock()
	be := binary.BigEndian
	str := func(b []byte, s string) []byte { return append(be.AppendUint16(b, uint16(len(s))), s...) }
	out := []byte{5, 2}
	for _, p := range principals {
		v := kvno
		if v == 0 {
			v = r.kvno[p]
		}
		for _, k := range r.keys[p] {
			parts := strings.Split(p, "/")
			e := str(be.AppendUint16(nil, uint16(len(parts))), r.Name)
			for _, x := range parts {
				e = str(e, x)
			}
			e = be.AppendUint32(be.AppendUint32(e, 1), uint32(r.Now().Unix()))
			e = be.AppendUint16(append(e, byte(v)), uint16(k.KeyType))
			e = be.AppendUint32(str(e, string(k.KeyValue)), uint32(v))
			out = append(be.AppendUint32(out, uint32(len(e))), e...)
		}
	}
	return out
}

// Dial connects to the KDC of the realm whose name the address begins with, in the process. Both networks work.
func Dial(realms ...*Realm) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(_ context.Context, network, addr string) (net.Conn, error) {
		for _, r := range realms {
			if host, _, _ := net.SplitHostPort(addr); host == strings.ToLower(r.Name) {
				client, server := net.Pipe()
				r.wg.Go(func() { r.serve(network, server) })
				return client, nil
			}
		}
		return nil, errors.New("connection refused")
	}
}

// Wait waits for the KDC's goroutines, which end with their connections.
func (r *Realm) Wait() { r.wg.Wait() }

func (r *Realm) serve(network string, c net.Conn) {
	defer c.Close()
	msg := make([]byte, 64<<10)
	if network == "udp" {
		n, err := c.Read(msg)
		if err != nil {
			return
		}
		msg = msg[:n]
	} else {
		var head [4]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		msg = msg[:min(binary.BigEndian.Uint32(head[:]), uint32(len(msg)))]
		if _, err := io.ReadFull(c, msg); err != nil {
			return
		}
	}
	answer := r.Answer(msg)
	if answer == nil {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	if network != "udp" {
		answer = append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)
	}
	_, _ = c.Write(answer)
}

// Answer is the KDC's answer to a request, nil for none.
func (r *Realm) Answer(msg []byte) []byte {
	r.Lock()
	defer r.Unlock()
	if r.Silent {
		return nil
	}
	var b []byte
	var err error
	switch {
	case r.Refuse != 0:
		err = refusal(r.Refuse)
	case len(msg) > 0 && msg[0] == 0x6a:
		b, err = r.login(msg)
	default:
		b, err = r.ticket(msg)
	}
	if err == nil {
		return b
	}
	code := refusal(errorcode.KRB_ERR_GENERIC)
	_ = errors.As(err, &code)
	e := messages.NewKRBError(types.PrincipalName{NameType: 2, NameString: []string{"krbtgt", r.Name}}, r.Name, int32(code), err.Error())
	e.STime = r.Now().UTC()
	if int32(code) == errorcode.KDC_ERR_PREAUTH_REQUIRED {
		e.EData = r.wanted(msg)
	}
	b, err = e.Marshal()
	if err != nil {
		return nil
	}
	return b
}

type refusal int32

func (c refusal) Error() string { return fmt.Sprintf("refused (%d)", int32(c)) }

// wanted names the encryption types of a client's keys.
func (r *Realm) wanted(msg []byte) []byte {
	var req messages.ASReq
	if req.Unmarshal(msg) != nil {
		return nil
	}
	var info types.ETypeInfo2
	for _, k := range r.usable(req.ReqBody.CName.PrincipalNameString(), req.ReqBody.EType) {
		info = append(info, types.ETypeInfo2Entry{EType: k.KeyType})
	}
	v, err := asn1.Marshal(info)
	if err != nil {
		return nil
	}
	b, err := asn1.Marshal(types.PADataSequence{{PADataType: patype.PA_ETYPE_INFO2, PADataValue: v}})
	if err != nil {
		return nil
	}
	return b
}

// usable are a principal's keys of the types asked for, in the asker's order.
func (r *Realm) usable(principal string, etypes []int32) []types.EncryptionKey {
	var out []types.EncryptionKey
	for _, id := range etypes {
		for _, k := range r.keys[principal] {
			if k.KeyType == id {
				out = append(out, k)
			}
		}
	}
	return out
}

func (r *Realm) login(msg []byte) ([]byte, error) {
	var req messages.ASReq
	if err := req.Unmarshal(msg); err != nil {
		return nil, err
	}
	name := req.ReqBody.CName.PrincipalNameString()
	r.Requests = append(r.Requests, "login "+name)
	if _, ok := r.keys[name]; !ok {
		return nil, refusal(errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN)
	}
	keys := r.usable(name, req.ReqBody.EType)
	if len(keys) == 0 {
		return nil, refusal(errorcode.KDC_ERR_ETYPE_NOSUPP)
	}
	if r.Preauth {
		if err := r.proven(req.PAData, keys); err != nil {
			return nil, err
		}
	}
	renewable := time.Duration(0)
	if types.IsFlagSet(&req.ReqBody.KDCOptions, flags.Renewable) {
		renewable = r.Renewable
	}
	t, part, err := r.issue(req.ReqBody, req.ReqBody.CName, r.Name, req.ReqBody.SName, r.Now().UTC(), renewable)
	if err != nil {
		return nil, err
	}
	sealed, err := r.seal(part, keys[0], keyusage.AS_REP_ENCPART, r.kvno[name])
	if err != nil {
		return nil, err
	}
	rep := messages.ASRep{KDCRepFields: messages.KDCRepFields{PVNO: iana.PVNO, MsgType: msgtype.KRB_AS_REP, CRealm: r.Name, CName: req.ReqBody.CName, Ticket: t, EncPart: sealed}}
	return rep.Marshal()
}

// proven checks a proof of having the key.
func (r *Realm) proven(pas []types.PAData, keys []types.EncryptionKey) error {
	for _, pa := range pas {
		if pa.PADataType != patype.PA_ENC_TIMESTAMP {
			continue
		}
		var ed types.EncryptedData
		if err := ed.Unmarshal(pa.PADataValue); err != nil {
			return err
		}
		for _, k := range keys {
			b, err := crypto.DecryptEncPart(ed, k, keyusage.AS_REQ_PA_ENC_TIMESTAMP)
			if err != nil {
				continue
			}
			var ts types.PAEncTSEnc
			if err := ts.Unmarshal(b); err != nil {
				return err
			}
			if d := r.Now().Sub(ts.PATimestamp); d > 5*time.Minute || d < -5*time.Minute {
				return refusal(errorcode.KRB_AP_ERR_SKEW)
			}
			return nil
		}
		return refusal(errorcode.KDC_ERR_PREAUTH_FAILED)
	}
	return refusal(errorcode.KDC_ERR_PREAUTH_REQUIRED)
}

// issue makes a ticket for a service and what is told to the client.
func (r *Realm) issue(req messages.KDCReqBody, client types.PrincipalName, crealm string, service types.PrincipalName, auth time.Time, renewable time.Duration) (messages.Ticket, messages.EncKDCRepPart, error) {
	name := service.PrincipalNameString()
	keys := r.keys[name]
	if k, ok := r.others[service.NameString[len(service.NameString)-1]]; ok && service.NameString[0] == "krbtgt" {
		keys = []types.EncryptionKey{k}
	}
	if len(keys) == 0 {
		return messages.Ticket{}, messages.EncKDCRepPart{}, refusal(errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN)
	}
	now := r.Now().UTC()
	end := now.Add(r.Life)
	session := newKey(req.EType[0])
	enc := messages.EncTicketPart{Flags: types.NewKrbFlags(), Key: session, CRealm: crealm, CName: client, AuthTime: auth, StartTime: now, EndTime: end}
	if renewable > 0 {
		enc.RenewTill = auth.Add(renewable)
	}
	b, err := asn1.Marshal(enc)
	if err != nil {
		return messages.Ticket{}, messages.EncKDCRepPart{}, err
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(b, asnAppTag.EncTicketPart), keys[0], keyusage.KDC_REP_TICKET, r.kvno[name])
	t := messages.Ticket{TktVNO: iana.PVNO, Realm: r.Name, SName: service, EncPart: sealed}
	part := messages.EncKDCRepPart{Key: session, LastReqs: []messages.LastReq{{LRValue: now}}, Nonce: req.Nonce, Flags: types.NewKrbFlags(), AuthTime: auth, StartTime: now, EndTime: end,
		RenewTill: enc.RenewTill, SRealm: r.Name, SName: service}
	return t, part, err
}

func (r *Realm) seal(part messages.EncKDCRepPart, key types.EncryptionKey, usage uint32, kvno int) (types.EncryptedData, error) {
	b, err := part.Marshal()
	if err != nil {
		return types.EncryptedData{}, err
	}
	return crypto.GetEncryptedData(b, key, usage, kvno)
}

func (r *Realm) ticket(msg []byte) ([]byte, error) {
	var req messages.TGSReq
	if err := req.Unmarshal(msg); err != nil {
		return nil, err
	}
	name := req.ReqBody.SName.PrincipalNameString()
	r.Requests = append(r.Requests, "ticket "+name)
	tgt, err := r.granting(req)
	if err != nil {
		return nil, err
	}
	enc := tgt.DecryptedEncPart
	if r.Now().After(enc.EndTime) {
		return nil, refusal(errorcode.KRB_AP_ERR_TKT_EXPIRED)
	}
	renewable := time.Duration(0)
	if types.IsFlagSet(&req.ReqBody.KDCOptions, flags.Renew) {
		if r.NoRenewal || enc.RenewTill.Before(r.Now()) {
			return nil, refusal(errorcode.KDC_ERR_BADOPTION)
		}
		renewable = enc.RenewTill.Sub(enc.AuthTime)
	}
	service := req.ReqBody.SName
	if to := r.Referrals[name]; to != "" {
		service = types.PrincipalName{NameType: 2, NameString: []string{"krbtgt", to}}
	}
	t, part, err := r.issue(req.ReqBody, enc.CName, enc.CRealm, service, enc.AuthTime, renewable)
	if err != nil {
		return nil, err
	}
	sealed, err := r.seal(part, enc.Key, keyusage.TGS_REP_ENCPART_SESSION_KEY, 0)
	if err != nil {
		return nil, err
	}
	rep := messages.TGSRep{KDCRepFields: messages.KDCRepFields{PVNO: iana.PVNO, MsgType: msgtype.KRB_TGS_REP, CRealm: enc.CRealm, CName: enc.CName, Ticket: t, EncPart: sealed}}
	return rep.Marshal()
}

// granting opens the ticket-granting ticket of a request and checks its proof.
func (r *Realm) granting(req messages.TGSReq) (*messages.Ticket, error) {
	for _, pa := range req.PAData {
		if pa.PADataType != patype.PA_TGS_REQ {
			continue
		}
		var ap messages.APReq
		if err := ap.Unmarshal(pa.PADataValue); err != nil {
			return nil, err
		}
		keys := slices.Clone(r.keys["krbtgt/"+r.Name])
		if ap.Ticket.Realm != r.Name {
			keys = r.keys["krbtgt/"+r.Name+"@"+ap.Ticket.Realm]
		}
		for _, k := range keys {
			if ap.Ticket.Decrypt(k) != nil {
				continue
			}
			if err := ap.DecryptAuthenticator(ap.Ticket.DecryptedEncPart.Key); err != nil {
				return nil, err
			}
			return &ap.Ticket, nil
		}
		return nil, refusal(errorcode.KRB_AP_ERR_MODIFIED)
	}
	return nil, refusal(errorcode.KDC_ERR_PADATA_TYPE_NOSUPP)
}
