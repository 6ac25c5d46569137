package krb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/messages"
)

// Probe is a look at one KDC, by which nobody is logged in.
type Probe struct {
	Conf *Conf
	Who  Principal // in whose name the KDC is asked
	Now  func() time.Time
	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil: net.Dialer
}

// Seen is what a KDC answered.
type Seen struct {
	Code int32 // of RFC 4120, -1: it gave a ticket, which was thrown away
	// Skew is how far its clock is ahead of ours, if it told its time.
	Skew   time.Duration
	Timed  bool
	Within time.Duration // how long the answer took
}

// Ask asks a KDC, by network "tcp" or "udp", for a ticket to a service that it does not have: its refusal tells that it is there, and its time.
func (p Probe) Ask(ctx context.Context, network, addr string) (Seen, error) {
	x := &exchanger{conf: p.Conf, now: p.Now}
	none := Principal{Parts: []string{"heddle-doctor", "none"}, Realm: p.Who.Realm}
	req := messages.ASReq{KDCReqFields: messages.KDCReqFields{PVNO: iana.PVNO, MsgType: msgtype.KRB_AS_REQ, ReqBody: x.body(p.Who, none, p.Who.Realm, p.Conf.Enctypes)}}
	msg, err := req.Marshal()
	if err != nil {
		return Seen{}, err
	}
	dial := p.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	start := p.Now()
	w := &wire{dial: dial}
	answer, err := w.ask(ctx, attempt{network, addr}, msg)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("no answer in time")
		}
		return Seen{}, err
	}
	end := p.Now()
	seen := Seen{Code: -1, Within: end.Sub(start)}
	switch e := asError(answer); {
	case e != nil:
		seen.Code = e.ErrorCode
		if !e.STime.IsZero() {
			at := e.STime.Add(time.Duration(e.Susec) * time.Microsecond)
			seen.Skew, seen.Timed = at.Sub(start.Add(seen.Within/2)), true
		}
	case len(answer) == 0 || answer[0] != 0x6b: // AS-REP
		return Seen{}, errors.New("the answer is not that of a KDC")
	}
	return seen, nil
}

// KeySummary describes what a keytab has of a principal, as far as it can be used, newest first: "version 3: aes256-cts-hmac-sha1-96".
func KeySummary(entries []KeytabEntry, p Principal) []string {
	var out []string
	for _, e := range keysOf(entries, p) {
		out = append(out, fmt.Sprintf("version %d: %s", e.Version, EnctypeName(e.Enctype)))
	}
	return slices.Compact(out)
}

// Principals lists those that a keytab has keys of, in its order.
func Principals(entries []KeytabEntry) []Principal { return principals(entries) }

// GrantingTicket is the ticket-granting ticket of a cache's owner that is good for longest, whether or not it is over; nil: there is none.
func (c *Cache) GrantingTicket() *Ticket {
	return c.find(tgtOf(c.Client.Realm, c.Client.Realm), time.Time{})
}
