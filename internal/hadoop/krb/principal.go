package krb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Principal is a name in Kerberos: components and a realm.
type Principal struct {
	Parts []string
	Realm string // "": not said
}

// ParsePrincipal reads a name such as alice@EXAMPLE.COM or nn/host@EXAMPLE.COM. A backslash takes away a character's meaning.
func ParsePrincipal(s string) (Principal, error) {
	var p Principal
	var part strings.Builder
	inRealm := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			if i++; i == len(s) {
				return Principal{}, fmt.Errorf("cannot use %q as a principal: it ends with a backslash", s)
			}
			part.WriteByte(s[i])
		case c == '/' && !inRealm:
			p.Parts = append(p.Parts, part.String())
			part.Reset()
		case c == '@' && !inRealm:
			p.Parts = append(p.Parts, part.String())
			part.Reset()
			inRealm = true
		case c == '@':
			return Principal{}, fmt.Errorf("cannot use %q as a principal: it has more than one realm", s)
		default:
			part.WriteByte(c)
		}
	}
	if inRealm {
		p.Realm = part.String()
	} else {
		p.Parts = append(p.Parts, part.String())
	}
	for _, x := range p.Parts {
		if x == "" {
			return Principal{}, fmt.Errorf("cannot use %q as a principal: a part of it is empty", s)
		}
	}
	if inRealm && p.Realm == "" {
		return Principal{}, fmt.Errorf("cannot use %q as a principal: its realm is empty", s)
	}
	return p, nil
}

var (
	escaper      = strings.NewReplacer(`\`, `\\`, `/`, `\/`, `@`, `\@`)
	realmEscaper = strings.NewReplacer(`\`, `\\`, `@`, `\@`)
)

// String writes the principal as ParsePrincipal reads it.
func (p Principal) String() string {
	var b strings.Builder
	for i, x := range p.Parts {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(escaper.Replace(x))
	}
	if p.Realm != "" {
		b.WriteString("@" + realmEscaper.Replace(p.Realm))
	}
	return b.String()
}

// Short is the first part, which Hadoop's default rule makes the user's name.
func (p Principal) Short() string {
	if len(p.Parts) == 0 {
		return ""
	}
	return p.Parts[0]
}

// Equal reports whether two principals are the same.
func (p Principal) Equal(q Principal) bool { return p.String() == q.String() }

func (p Principal) wire() types.PrincipalName {
	kind := int32(nametype.KRB_NT_PRINCIPAL)
	if len(p.Parts) == 2 {
		kind = nametype.KRB_NT_SRV_HST
		if p.Parts[0] == "krbtgt" {
			kind = nametype.KRB_NT_SRV_INST
		}
	}
	return types.PrincipalName{NameType: kind, NameString: p.Parts}
}

func fromWire(n types.PrincipalName, realm string) Principal {
	return Principal{Parts: n.NameString, Realm: realm}
}

// tgtOf is the principal of a realm's ticket-granting tickets, as realm's own or another's KDC issues them.
func tgtOf(realm, issuer string) Principal {
	return Principal{Parts: []string{"krbtgt", realm}, Realm: issuer}
}

// ServicePrincipal is a service of the network: its configured principal, whose _HOST stands for the host that is connected to.
func ServicePrincipal(configured, host string) (Principal, error) {
	p, err := ParsePrincipal(configured)
	if err != nil {
		return p, err
	}
	if len(p.Parts) == 2 && p.Parts[1] == "_HOST" {
		if host == "" || host == "0.0.0.0" {
			return p, errors.New("cannot replace _HOST in " + configured + ": the server's host is not known")
		}
		p.Parts[1] = strings.ToLower(strings.TrimSuffix(host, "."))
	}
	return p, nil
}
