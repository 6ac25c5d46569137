package krb

import (
	"fmt"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
)

// Codes of a KDC's errors that are acted on.
const (
	codeClientUnknown   = errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN
	codeServerUnknown   = errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN
	codeBadOption       = errorcode.KDC_ERR_BADOPTION
	codeEtype           = errorcode.KDC_ERR_ETYPE_NOSUPP
	codeRevoked         = errorcode.KDC_ERR_CLIENT_REVOKED
	codeKeyExpired      = errorcode.KDC_ERR_KEY_EXPIRED
	codePreauthFailed   = errorcode.KDC_ERR_PREAUTH_FAILED
	codePreauthRequired = errorcode.KDC_ERR_PREAUTH_REQUIRED
	codeUnavailable     = errorcode.KDC_ERR_SVC_UNAVAILABLE
	codeExpired         = errorcode.KRB_AP_ERR_TKT_EXPIRED
	codeNotYet          = errorcode.KRB_AP_ERR_TKT_NYV
	codeSkew            = errorcode.KRB_AP_ERR_SKEW
	codeNeverValid      = errorcode.KDC_ERR_NEVER_VALID
	codeTooBig          = errorcode.KRB_ERR_RESPONSE_TOO_BIG
)

// KDCError is a refusal of a KDC's, or of a service that speaks like one.
type KDCError struct {
	From string        // who refused
	Code int32         // of RFC 4120
	Text string        // what it added
	Skew time.Duration // how far its clock is ahead of ours
	Hint string        // what it means here, and what to do
}

func (e *KDCError) Error() string {
	s := fmt.Sprintf("%s refused: %s", e.From, errorcode.Lookup(e.Code))
	if e.Text != "" && e.Text != "NULL" {
		s += " (" + e.Text + ")"
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// asError reads an error message, nil if b is none.
func asError(b []byte) *messages.KRBError {
	// The application tag of KRB-ERROR; anything else is not worth trying.
	if len(b) == 0 || b[0] != 0x7e {
		return nil
	}
	var e messages.KRBError
	if err := e.Unmarshal(b); err != nil {
		return nil
	}
	return &e
}

func errorCode(b []byte) int32 {
	if e := asError(b); e != nil {
		return e.ErrorCode
	}
	return -1
}

// ExpiredError is of a ticket of ours that has ended and that nobody can renew but who it is of.
type ExpiredError struct {
	Cache, Client string
	End           time.Time // zero: not known
}

func (e *ExpiredError) Error() string {
	when := ""
	if !e.End.IsZero() {
		when = " at " + e.End.Format(time.RFC3339)
	}
	return fmt.Sprintf("cannot use the ticket cache %s: the ticket of %s expired%s; run kinit", e.Cache, e.Client, when)
}

// refusal makes an error of a KDC's message. who is the client's principal, what the service asked for.
func refusal(e *messages.KRBError, from, who, what string, now time.Time) *KDCError {
	k := &KDCError{From: from, Code: e.ErrorCode, Text: e.EText}
	if !e.STime.IsZero() {
		k.Skew = e.STime.Add(time.Duration(e.Susec) * time.Microsecond).Sub(now)
	}
	switch e.ErrorCode {
	case codeClientUnknown:
		k.Hint = "there is no principal " + who + " there"
	case codeServerUnknown:
		k.Hint = "there is no service " + what + " there: the principal in Hadoop's configuration, its _HOST or the server's name in DNS is wrong"
		if strings.HasPrefix(what, "krbtgt/") {
			k.Hint = "it has no key for " + what + ", which makes the one realm trust the other: log in to the cluster's own realm, or see to [capaths] of krb5.conf"
		}
	case codeEtype:
		k.Hint = "it has no key of an encryption type that both can use for " + what
	case codeRevoked:
		k.Hint = "the account " + who + " is locked or disabled"
	case codeKeyExpired:
		k.Hint = "the password of " + who + " has expired"
	case codePreauthFailed:
		k.Hint = "the key of " + who + " is not the one there: its password was changed after the keytab was written"
	case codeExpired:
		k.Hint = "the ticket has expired; run kinit"
	case codeSkew, codeNotYet, codeNeverValid:
		k.Hint = skewText(k.Skew)
	}
	return k
}

// skewText names a difference of clocks.
func skewText(skew time.Duration) string {
	d := skew.Round(time.Second)
	if d >= 0 {
		return fmt.Sprintf("this machine's clock is %v behind the KDC's; set it right (NTP)", d)
	}
	return fmt.Sprintf("this machine's clock is %v ahead of the KDC's; set it right (NTP)", -d)
}
