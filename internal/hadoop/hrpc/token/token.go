// Package token reads and writes Hadoop's tokens: the credentials files that HADOOP_TOKEN_FILE_LOCATION names and containers are
// started with, in both of their formats, and the text form that REST carries.
package token

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// Kinds of tokens.
const (
	KindAMRM      = "YARN_AM_RM_TOKEN"
	KindNM        = "NMToken"
	KindContainer = "ContainerToken"
	KindRM        = "RM_DELEGATION_TOKEN"
	KindHDFS      = "HDFS_DELEGATION_TOKEN"
	KindKMS       = "kms-dt"
	KindKafka     = "KAFKA_DELEGATION_TOKEN"
)

// Token proves a right to a service: who has it knows the password that the service derives from the identifier.
type Token struct {
	Identifier, Password []byte
	Kind, Service        string
}

// String describes a token without its password.
func (t Token) String() string { return fmt.Sprintf("%s for %q", t.Kind, t.Service) }

// Proto returns the token as RPC messages carry it.
func (t Token) Proto() *pb.TokenProto {
	return &pb.TokenProto{Identifier: nonNil(t.Identifier), Password: nonNil(t.Password), Kind: &t.Kind, Service: &t.Service}
}

// FromProto is the reverse of Proto.
func FromProto(p *pb.TokenProto) Token {
	return Token{Identifier: p.GetIdentifier(), Password: p.GetPassword(), Kind: p.GetKind(), Service: p.GetService()}
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Named is a token and its alias in a credentials file.
type Named struct {
	Alias string
	Token Token
}

// Secret is a named value of a credentials file.
type Secret struct {
	Name  string
	Value []byte
}

// Credentials is the content of a credentials file, in its order.
type Credentials struct {
	Tokens  []Named
	Secrets []Secret
}

// Of returns the tokens of a kind.
func (c Credentials) Of(kind string) []Token {
	var ts []Token
	for _, n := range c.Tokens {
		if n.Token.Kind == kind {
			ts = append(ts, n.Token)
		}
	}
	return ts
}

// Without returns the credentials without the tokens of a kind. A task's container must not get its master's YARN_AM_RM_TOKEN.
func (c Credentials) Without(kind string) Credentials {
	out := Credentials{Secrets: c.Secrets}
	for _, n := range c.Tokens {
		if n.Token.Kind != kind {
			out.Tokens = append(out.Tokens, n)
		}
	}
	return out
}

// Secret returns a named value, nil if there is none.
func (c Credentials) Secret(name string) []byte {
	for _, s := range c.Secrets {
		if s.Name == name {
			return s.Value
		}
	}
	return nil
}

var magic = []byte("HDTS")

// Append writes c in the format that every Hadoop reads.
func (c Credentials) Append(b []byte) []byte {
	b = append(append(b, magic...), 0)
	b = appendVint(b, int64(len(c.Tokens)))
	for _, n := range c.Tokens {
		b = appendBytes(b, []byte(n.Alias))
		b = n.Token.append(b)
	}
	b = appendVint(b, int64(len(c.Secrets)))
	for _, s := range c.Secrets {
		b = appendBytes(b, []byte(s.Name))
		b = appendBytes(b, s.Value)
	}
	return b
}

func (t Token) append(b []byte) []byte {
	for _, part := range [][]byte{t.Identifier, t.Password, []byte(t.Kind), []byte(t.Service)} {
		b = appendBytes(b, part)
	}
	return b
}

// Parse reads a credentials file. What follows the credentials is ignored, since Java may write a whole buffer.
func Parse(b []byte) (Credentials, error) {
	var c Credentials
	if len(b) < 5 || !bytes.Equal(b[:4], magic) {
		return c, errors.New("cannot read credentials: they do not begin with HDTS")
	}
	var err error
	switch b[4] {
	case 0:
		c, err = parseWritable(b[5:])
	case 1:
		c, err = parseProto(b[5:])
	default:
		return c, fmt.Errorf("cannot read credentials: their format %d is not known", b[4])
	}
	if err != nil {
		return Credentials{}, fmt.Errorf("cannot read credentials: %w", err)
	}
	return c, nil
}

func parseWritable(b []byte) (Credentials, error) {
	var c Credentials
	r := &reader{b: b}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		alias := r.bytes()
		c.Tokens = append(c.Tokens, Named{string(alias), r.token()})
	}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		name := r.bytes()
		c.Secrets = append(c.Secrets, Secret{string(name), r.bytes()})
	}
	return c, r.err
}

func parseProto(b []byte) (Credentials, error) {
	var c Credentials
	body, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return c, protowire.ParseError(n)
	}
	var m pb.CredentialsProto
	if err := proto.Unmarshal(body, &m); err != nil {
		return c, err
	}
	for _, t := range m.Tokens {
		c.Tokens = append(c.Tokens, Named{t.GetAlias(), FromProto(t.GetToken())})
	}
	for _, s := range m.Secrets {
		c.Secrets = append(c.Secrets, Secret{s.GetAlias(), s.GetSecret()})
	}
	return c, nil
}

// URLString is the form in which REST carries a token.
func (t Token) URLString() string { return base64.RawURLEncoding.EncodeToString(t.append(nil)) }

// ParseURLString reads what URLString or Hadoop wrote, in either alphabet of base64.
func ParseURLString(s string) (Token, error) {
	s = strings.TrimRight(strings.NewReplacer("+", "-", "/", "_", "\n", "", "\r", "").Replace(s), "=")
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return Token{}, fmt.Errorf("cannot read a token: %w", err)
	}
	r := &reader{b: b}
	t := r.token()
	if r.err != nil {
		return Token{}, fmt.Errorf("cannot read a token: %w", r.err)
	}
	return t, nil
}

// reader reads Java's Writables. After an error it returns zero values.
type reader struct {
	b   []byte
	err error
}

func (r *reader) token() Token {
	return Token{Identifier: r.bytes(), Password: r.bytes(), Kind: string(r.bytes()), Service: string(r.bytes())}
}

func (r *reader) bytes() []byte {
	n := r.vint()
	if r.err != nil {
		return nil
	}
	if n < 0 || n > int64(len(r.b)) {
		r.err = fmt.Errorf("a field is said to have %d bytes, and %d are left", n, len(r.b))
		return nil
	}
	out := bytes.Clone(r.b[:n:n])
	r.b = r.b[n:]
	return nonNil(out)
}

// count reads how many elements follow, of at least one byte each.
func (r *reader) count() int64 {
	n := r.vint()
	if r.err == nil && (n < 0 || n > int64(len(r.b))) {
		r.err = fmt.Errorf("there are said to be %d elements in %d bytes", n, len(r.b))
	}
	if r.err != nil {
		return 0
	}
	return n
}

// vint reads a number as Hadoop's WritableUtils writes it; it is not protobuf's varint.
func (r *reader) vint() int64 {
	if r.err != nil {
		return 0
	}
	if len(r.b) == 0 {
		r.err = errors.New("they end early")
		return 0
	}
	first := int8(r.b[0])
	r.b = r.b[1:]
	if first >= -112 {
		return int64(first)
	}
	size, negative := int(-(int(first) + 112)), false
	if first < -120 {
		size, negative = int(-(int(first) + 120)), true
	}
	if size > len(r.b) {
		r.err = errors.New("they end early")
		return 0
	}
	var v int64
	for _, b := range r.b[:size] {
		v = v<<8 | int64(b)
	}
	r.b = r.b[size:]
	if negative {
		return ^v
	}
	return v
}

func appendBytes(b, data []byte) []byte { return append(appendVint(b, int64(len(data))), data...) }

// appendVint writes a number as Hadoop's WritableUtils does.
func appendVint(b []byte, v int64) []byte {
	if v >= -112 && v <= 127 {
		return append(b, byte(v))
	}
	first := -112
	if v < 0 {
		v, first = ^v, -120
	}
	size := 0
	for x := v; x != 0; x >>= 8 {
		size++
	}
	b = append(b, byte(first-size))
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}
