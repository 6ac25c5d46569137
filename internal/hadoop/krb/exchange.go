package krb

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// exchanger asks KDCs for tickets.
type exchanger struct {
	conf *Conf
	wire *wire
	now  func() time.Time
}

// nonce is what a request's answer must repeat.
func nonce() int {
	var b [4]byte
	rand.Read(b[:])
	return int(binary.BigEndian.Uint32(b[:]) & 0x3fffffff)
}

func (x *exchanger) body(client, service Principal, realm string, etypes []int32) messages.KDCReqBody {
	now := x.now().UTC()
	b := messages.KDCReqBody{KDCOptions: types.NewKrbFlags(), CName: client.wire(), Realm: realm, SName: service.wire(),
		Till: now.Add(x.conf.TicketLifetime), Nonce: nonce(), EType: etypes}
	if x.conf.Forwardable {
		types.SetFlag(&b.KDCOptions, flags.Forwardable)
	}
	return b
}

// login gets a ticket-granting ticket by the keys of a keytab.
func (x *exchanger) login(ctx context.Context, client Principal, keys []KeytabEntry) (*Ticket, error) {
	etypes := enctypesOfKeys(keys, x.conf.Enctypes)
	if len(etypes) == 0 {
		var have []int32
		for _, k := range keys {
			have = append(have, k.Enctype)
		}
		return nil, fmt.Errorf("the keytab's keys of %s are of %s, and krb5.conf allows %s", client, enctypeList(have), enctypeList(x.conf.Enctypes))
	}
	req := messages.ASReq{KDCReqFields: messages.KDCReqFields{PVNO: iana.PVNO, MsgType: msgtype.KRB_AS_REQ,
		ReqBody: x.body(client, tgtOf(client.Realm, client.Realm), client.Realm, etypes)}}
	if x.conf.RenewLifetime > 0 {
		types.SetFlag(&req.ReqBody.KDCOptions, flags.Renewable)
		req.ReqBody.RTime = x.now().UTC().Add(x.conf.RenewLifetime)
	}
	answer, from, err := x.askAS(ctx, req, client)
	if err != nil {
		return nil, err
	}
	e := asError(answer)
	if e != nil && (e.ErrorCode == codePreauthRequired || e.ErrorCode == codePreauthFailed) {
		answer, from, err = x.preauth(ctx, req, e, client, keys)
		if err != nil {
			return nil, err
		}
		e = asError(answer)
	}
	if e != nil {
		r := refusal(e, from, client.String(), req.ReqBody.SName.PrincipalNameString(), x.now())
		if e.ErrorCode == codeEtype {
			r.Hint = "the keytab has keys of " + enctypeList(etypes) + ", and the KDC none of " + client.String() + " of these types"
		}
		return nil, r
	}
	return x.loggedIn(answer, from, req, client, keys)
}

func (x *exchanger) askAS(ctx context.Context, req messages.ASReq, client Principal) ([]byte, string, error) {
	b, err := req.Marshal()
	if err != nil {
		return nil, "", err
	}
	answer, addr, err := x.wire.send(ctx, client.Realm, b)
	return answer, "the KDC " + addr, err
}

// preauth asks again with a proof that we have the key. Keys of one type are tried from the newest on, twice at most, since a KDC may lock
// accounts after several failures.
func (x *exchanger) preauth(ctx context.Context, req messages.ASReq, e *messages.KRBError, client Principal, keys []KeytabEntry) (answer []byte, from string, err error) {
	usable := keysFor(keys, preauthEnctypes(e), req.ReqBody.EType)
	if len(usable) == 0 {
		return nil, "", fmt.Errorf("the KDC wants a proof with a key of %s, and the keytab has none for %s", enctypeList(preauthEnctypes(e)), client)
	}
	for _, k := range usable[:min(len(usable), 2)] {
		pa, err := x.timestamp(k)
		if err != nil {
			return nil, "", err
		}
		req.PAData = types.PADataSequence{pa}
		if answer, from, err = x.askAS(ctx, req, client); err != nil {
			return nil, "", err
		}
		if errorCode(answer) != codePreauthFailed {
			break
		}
	}
	return answer, from, nil
}

// keysFor returns the keys of the first of the KDC's types that there are any of.
func keysFor(keys []KeytabEntry, wanted, fallback []int32) []KeytabEntry {
	if len(wanted) == 0 {
		wanted = fallback
	}
	for _, et := range wanted {
		var out []KeytabEntry
		for _, k := range keys {
			if k.Enctype == et {
				out = append(out, k)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// preauthEnctypes are those that a KDC named in its demand for a proof.
func preauthEnctypes(e *messages.KRBError) []int32 {
	var pas types.PADataSequence
	if pas.Unmarshal(e.EData) != nil {
		return nil
	}
	var out []int32
	for _, pa := range pas {
		if pa.PADataType == patype.PA_ETYPE_INFO2 {
			info, err := pa.GetETypeInfo2()
			for i := 0; err == nil && i < len(info); i++ {
				out = append(out, info[i].EType)
			}
		}
	}
	return out
}

func (x *exchanger) timestamp(k KeytabEntry) (types.PAData, error) {
	now := x.now().UTC()
	b, err := asn1.Marshal(types.PAEncTSEnc{PATimestamp: now, PAUSec: now.Nanosecond() / 1000})
	if err != nil {
		return types.PAData{}, err
	}
	sealed, err := crypto.GetEncryptedData(b, k.encryptionKey(), keyusage.AS_REQ_PA_ENC_TIMESTAMP, int(k.Version))
	if err != nil {
		return types.PAData{}, err
	}
	v, err := sealed.Marshal()
	return types.PAData{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: v}, err
}

// loggedIn opens the answer to a login. A KDC may count its keys otherwise than the keytab does, so every key of the type is tried, that of the named
// version first.
func (x *exchanger) loggedIn(answer []byte, from string, req messages.ASReq, client Principal, keys []KeytabEntry) (*Ticket, error) {
	var rep messages.ASRep
	if err := rep.Unmarshal(answer); err != nil {
		return nil, fmt.Errorf("cannot read the answer of %s: %w", from, err)
	}
	usable := keysFor(keys, []int32{rep.EncPart.EType}, nil)
	slices.SortStableFunc(usable, func(a, b KeytabEntry) int {
		return boolInt(b.Version == uint32(rep.EncPart.KVNO)) - boolInt(a.Version == uint32(rep.EncPart.KVNO))
	})
	for _, k := range usable {
		b, err := openPart(rep.EncPart, k.encryptionKey(), keyusage.AS_REP_ENCPART)
		if err != nil {
			continue
		}
		part, err := encPart(b, req.ReqBody.Nonce)
		if err != nil {
			return nil, fmt.Errorf("cannot trust the answer of %s: %w", from, err)
		}
		if rep.CRealm != client.Realm || part.SRealm != client.Realm || len(part.SName.NameString) != 2 || part.SName.NameString[0] != "krbtgt" {
			return nil, fmt.Errorf("cannot trust the answer of %s: it is for %s", from, part.SName.PrincipalNameString())
		}
		if skew := part.AuthTime.Sub(x.now()); skew > x.conf.ClockSkew || -skew > x.conf.ClockSkew {
			return nil, &KDCError{From: from, Code: codeSkew, Skew: skew, Hint: skewText(skew)}
		}
		return ticketOf(client, fromWire(part.SName, part.SRealm), part, rep.Ticket), nil
	}
	return nil, fmt.Errorf("cannot open the answer of %s: it is sealed by another key of %s (%s) than the keytab has (versions %s): its password was changed; write the keytab anew",
		from, client, EnctypeName(rep.EncPart.EType), versions(keys))
}

func versions(keys []KeytabEntry) string {
	s := ""
	for i, k := range keys {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%d of %s", k.Version, EnctypeName(k.Enctype))
	}
	return s
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func encPart(b []byte, nonce int) (messages.EncKDCRepPart, error) {
	var part messages.EncKDCRepPart
	if err := part.Unmarshal(b); err != nil {
		return part, err
	}
	if part.Nonce != nonce {
		return part, errors.New("it answers another request")
	}
	return part, nil
}

func ticketOf(client, server Principal, part messages.EncKDCRepPart, t messages.Ticket) *Ticket {
	start := part.StartTime
	if start.IsZero() {
		start = part.AuthTime
	}
	return &Ticket{Client: client, Server: server, Start: start, End: part.EndTime, RenewTill: part.RenewTill, key: part.Key, ticket: t}
}

// ticket gets a ticket for a service from a realm's KDC by that realm's ticket-granting ticket. The answer may be a ticket-granting ticket of a realm
// that is closer to the service.
func (x *exchanger) ticket(ctx context.Context, tgt *Ticket, service Principal, etypes []int32, options ...int) (*Ticket, error) {
	realm := tgt.Server.Parts[1] // whose KDC takes the ticket
	req := messages.TGSReq{KDCReqFields: messages.KDCReqFields{PVNO: iana.PVNO, MsgType: msgtype.KRB_TGS_REQ, ReqBody: x.body(tgt.Client, service, realm, etypes)}}
	for _, o := range options {
		types.SetFlag(&req.ReqBody.KDCOptions, o)
	}
	if err := x.proof(&req, tgt); err != nil {
		return nil, err
	}
	b, err := req.Marshal()
	if err != nil {
		return nil, err
	}
	answer, addr, err := x.wire.send(ctx, realm, b)
	if err != nil {
		return nil, err
	}
	from := "the KDC " + addr
	if e := asError(answer); e != nil {
		return nil, refusal(e, from, tgt.Client.String(), service.String(), x.now())
	}
	var rep messages.TGSRep
	if err := rep.Unmarshal(answer); err != nil {
		return nil, fmt.Errorf("cannot read the answer of %s: %w", from, err)
	}
	plain, err := openPart(rep.EncPart, tgt.key, keyusage.TGS_REP_ENCPART_SESSION_KEY)
	if err != nil {
		return nil, fmt.Errorf("cannot open the answer of %s: %w", from, err)
	}
	part, err := encPart(plain, req.ReqBody.Nonce)
	if err != nil {
		return nil, fmt.Errorf("cannot trust the answer of %s: %w", from, err)
	}
	got := fromWire(part.SName, part.SRealm)
	referral := len(got.Parts) == 2 && got.Parts[0] == "krbtgt"
	if !referral && !slices.Equal(got.Parts, service.Parts) {
		return nil, fmt.Errorf("cannot trust the answer of %s: it is a ticket for %s, and %s was asked for", from, got, service)
	}
	return ticketOf(tgt.Client, got, part, rep.Ticket), nil
}

// proof puts the ticket-granting ticket into a request, with a checksum of the request made with its key.
func (x *exchanger) proof(req *messages.TGSReq, tgt *Ticket) error {
	b, err := req.ReqBody.Marshal()
	if err != nil {
		return err
	}
	et, err := crypto.GetEtype(tgt.key.KeyType)
	if err != nil {
		return err
	}
	sum, err := et.GetChecksumHash(tgt.key.KeyValue, b, keyusage.TGS_REQ_PA_TGS_REQ_AP_REQ_AUTHENTICATOR_CHKSUM)
	if err != nil {
		return err
	}
	auth := x.authenticator(tgt.Client)
	auth.Cksum = types.Checksum{CksumType: et.GetHashID(), Checksum: sum}
	ap, err := messages.NewAPReq(tgt.ticket, tgt.key, auth)
	if err != nil {
		return err
	}
	v, err := ap.Marshal()
	req.PAData = types.PADataSequence{{PADataType: patype.PA_TGS_REQ, PADataValue: v}}
	return err
}

func (x *exchanger) authenticator(client Principal) types.Authenticator {
	return newAuthenticator(client, x.now())
}

func newAuthenticator(client Principal, now time.Time) types.Authenticator {
	now = now.UTC()
	// Some servers take numbers of 2^30 and more for negative ones.
	return types.Authenticator{AVNO: iana.PVNO, CRealm: client.Realm, CName: client.wire(), CTime: now.Truncate(time.Second), Cusec: now.Nanosecond() / 1000, SeqNumber: int64(nonce())}
}
