// Package digest is SASL's DIGEST-MD5 (RFC 2831) as Hadoop uses it for tokens: one realm, session keys of
// algorithm md5-sess, and the security layers auth-int and auth-conf without RFC 2831's length prefix, since Hadoop frames tokens by itself.
//
// The mechanism is old and weak. Hadoop's ApplicationMaster and container protocols offer nothing else.
package digest

import (
	"crypto/md5"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Qualities of protection, weakest first.
const (
	Auth     = "auth"      // authentication alone
	AuthInt  = "auth-int"  // every message is signed
	AuthConf = "auth-conf" // every message is signed and sealed
)

var strength = []string{Auth, AuthInt, AuthConf}

// ciphers that auth-conf may use, best first.
var ciphers = []string{"rc4", "3des", "des", "rc4-56", "rc4-40"}

// Challenge is what a server offers.
type Challenge struct {
	Realm   string
	Nonce   string
	QOP     []string
	Ciphers []string
}

// Session is an exchange whose response was computed.
type Session struct {
	qop, cipher string
	key         [16]byte // H(A1)
	rspauth     string
	server      bool
}

// ParseChallenge reads a digest-challenge.
func ParseChallenge(b []byte) (Challenge, error) {
	if len(b) >= 2048 {
		return Challenge{}, errors.New("cannot read the digest challenge: it is 2048 bytes or longer")
	}
	d, err := directives(b)
	if err != nil {
		return Challenge{}, fmt.Errorf("cannot read the digest challenge: %w", err)
	}
	c := Challenge{Realm: d["realm"], Nonce: d["nonce"], QOP: list(d["qop"]), Ciphers: list(d["cipher"])}
	if len(c.QOP) == 0 {
		c.QOP = []string{Auth}
	}
	switch {
	case c.Nonce == "":
		return c, errors.New("cannot use the digest challenge: it has no nonce")
	case d["algorithm"] != "md5-sess":
		return c, fmt.Errorf("cannot use the digest challenge: its algorithm is %q, not md5-sess", d["algorithm"])
	}
	return c, nil
}

// Append writes c as a digest-challenge.
func (c Challenge) Append(b []byte) []byte {
	b = fmt.Appendf(b, `realm=%s,nonce=%s,qop=%s,charset=utf-8,`, quote(c.Realm), quote(c.Nonce), quote(strings.Join(c.QOP, ",")))
	if len(c.Ciphers) > 0 {
		b = fmt.Appendf(b, `cipher=%s,`, quote(strings.Join(c.Ciphers, ",")))
	}
	return append(b, "algorithm=md5-sess"...)
}

// Respond answers a challenge for a user. allowed lists the qualities of protection that will do, any if empty; the
// strongest that both sides allow is taken. cnonce must be fresh and random.
func Respond(c Challenge, user, password, uri, cnonce string, allowed []string) ([]byte, *Session, error) {
	s := &Session{}
	for _, q := range strength {
		if slices.Contains(c.QOP, q) && (len(allowed) == 0 || slices.Contains(allowed, q)) {
			s.qop = q
		}
	}
	if s.qop == "" {
		return nil, nil, fmt.Errorf("cannot agree on a protection: the server offers %s, and %s is allowed; compare hadoop.rpc.protection on both sides",
			strings.Join(c.QOP, ", "), strings.Join(allowed, ", "))
	}
	if s.qop == AuthConf {
		for _, x := range ciphers {
			if slices.Contains(c.Ciphers, x) {
				s.cipher = x
				break
			}
		}
		if s.cipher == "" {
			return nil, nil, fmt.Errorf("cannot agree on a cipher: the server offers %s", strings.Join(c.Ciphers, ", "))
		}
	}
	resp := s.compute(user, password, c.Realm, c.Nonce, cnonce, uri)
	b := fmt.Appendf(nil, `charset=utf-8,username=%s,realm=%s,nonce=%s,nc=00000001,cnonce=%s,digest-uri=%s,maxbuf=65536,response=%s,qop=%s`,
		quote(user), quote(c.Realm), quote(c.Nonce), quote(cnonce), quote(uri), resp, s.qop)
	if s.cipher != "" {
		b = fmt.Appendf(b, `,cipher=%s`, quote(s.cipher))
	}
	if len(b) >= 4096 {
		return nil, nil, errors.New("cannot authenticate by token: its identifier is too long for DIGEST-MD5")
	}
	return b, s, nil
}

// Verify checks the server's last message, which proves that it knows the password too.
func (s *Session) Verify(b []byte) error {
	d, err := directives(b)
	if err != nil {
		return fmt.Errorf("cannot read the server's proof: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(d["rspauth"]), []byte(s.rspauth)) != 1 {
		return errors.New("cannot trust the server: its proof that it knows the token is wrong")
	}
	return nil
}

// Accept is the server's side: it checks a response to c and returns the user and its own proof.
func Accept(c Challenge, response []byte, uri string, password func(user string) (string, bool)) (user string, proof []byte, s *Session, err error) {
	d, err := directives(response)
	if err != nil {
		return "", nil, nil, fmt.Errorf("cannot read the digest response: %w", err)
	}
	s = &Session{qop: d["qop"], cipher: d["cipher"], server: true}
	user = d["username"]
	switch {
	case d["nonce"] != c.Nonce || d["realm"] != c.Realm || d["nc"] != "00000001" || d["digest-uri"] != uri:
		return user, nil, nil, errors.New("the digest response is not for this challenge")
	case !slices.Contains(c.QOP, s.qop):
		return user, nil, nil, fmt.Errorf("protection %q was not offered", s.qop)
	case s.qop == AuthConf && !slices.Contains(c.Ciphers, s.cipher):
		return user, nil, nil, fmt.Errorf("cipher %q was not offered", s.cipher)
	}
	pw, ok := password(user)
	if !ok {
		return user, nil, nil, errors.New("the user is not known")
	}
	want := s.compute(user, pw, c.Realm, c.Nonce, d["cnonce"], uri)
	if subtle.ConstantTimeCompare([]byte(want), []byte(d["response"])) != 1 {
		return user, nil, nil, errors.New("the digest response is wrong: mismatched response")
	}
	return user, []byte("rspauth=" + s.rspauth), s, nil
}

// QOP is the quality of protection that was agreed on.
func (s *Session) QOP() string { return s.qop }

// compute sets the session's keys and returns the client's response.
func (s *Session) compute(user, password, realm, nonce, cnonce, uri string) string {
	secret := md5.Sum([]byte(user + ":" + realm + ":" + password))
	a1 := append(secret[:], ":"+nonce+":"+cnonce...)
	s.key = md5.Sum(a1)
	tail := ""
	if s.qop != Auth {
		tail = ":00000000000000000000000000000000"
	}
	sum := func(a2 string) string {
		return hexMD5(hex.EncodeToString(s.key[:]) + ":" + nonce + ":00000001:" + cnonce + ":" + s.qop + ":" + hexMD5(a2+tail))
	}
	s.rspauth = sum(":" + uri)
	return sum("AUTHENTICATE:" + uri)
}

func hexMD5(s string) string {
	h := md5.Sum([]byte(s))
	return hex.EncodeToString(h[:])
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// list splits a value at commas and blanks.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// directives reads a comma-separated list of name=value or name="value".
func directives(b []byte) (map[string]string, error) {
	d := map[string]string{}
	s := string(b)
	for {
		s = strings.TrimLeft(s, ", \t\r\n")
		if s == "" {
			return d, nil
		}
		name, rest, ok := strings.Cut(s, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || name == "" || strings.ContainsAny(name, "\", \t") {
			return nil, errors.New("a directive is not name=value")
		}
		value, rest, err := valueOf(strings.TrimLeft(rest, " \t"))
		if err != nil {
			return nil, fmt.Errorf("directive %s: %w", name, err)
		}
		if _, twice := d[name]; twice {
			return nil, fmt.Errorf("directive %s occurs twice", name)
		}
		d[name] = value
		s = rest
	}
}

func valueOf(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, ", \t\r\n")
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], nil
	}
	var v strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			if i == len(s) {
				return "", "", errors.New("it ends within a quoted value")
			}
			v.WriteByte(s[i])
		case '"':
			return v.String(), s[i+1:], nil
		default:
			v.WriteByte(s[i])
		}
	}
	return "", "", errors.New("it ends within a quoted value")
}
