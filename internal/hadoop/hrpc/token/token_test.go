package token

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

var sample = Credentials{
	Tokens: []Named{
		{"", Token{bytes.Repeat([]byte{1}, 21), bytes.Repeat([]byte{2}, 20), KindAMRM, ""}},
		{"nn", Token{[]byte{}, []byte{9}, KindHDFS, "ha-hdfs:ns1"}},
	},
	Secrets: []Secret{{"sek", bytes.Repeat([]byte{3}, 200)}},
}

func TestFile(t *testing.T) {
	b := sample.Append(nil)
	want := "4844545300" + "02" + "00" + "15"
	if got := hex.EncodeToString(b[:8]); got != want {
		t.Errorf("begins %s, want %s", got, want)
	}
	if i := bytes.Index(b, []byte("\x03sek\x8f\xc8")); i < 0 {
		t.Error("the secret's length is not written as Hadoop writes it")
	}
	for name, in := range map[string][]byte{"writable": b, "with zeros behind": append(bytes.Clone(b), make([]byte, 50)...), "protobuf": asProto(t, sample)} {
		got, err := Parse(in)
		if err != nil || !reflect.DeepEqual(got, sample) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	for i := range b {
		if _, err := Parse(b[:i]); err == nil {
			t.Errorf("cut at %d of %d: no error", i, len(b))
		}
	}
	if got, err := Parse([]byte("HDTS\x00\x00\x00")); err != nil || len(got.Tokens)+len(got.Secrets) != 0 {
		t.Errorf("empty file: %+v, %v", got, err)
	}
	if _, err := Parse([]byte("HDTS\x02")); err == nil {
		t.Error("an unknown format is accepted")
	}
}

func asProto(t *testing.T, c Credentials) []byte {
	t.Helper()
	m := &pb.CredentialsProto{}
	for _, n := range c.Tokens {
		m.Tokens = append(m.Tokens, &pb.CredentialsKVProto{Alias: &n.Alias, Token: n.Token.Proto()})
	}
	for _, s := range c.Secrets {
		m.Secrets = append(m.Secrets, &pb.CredentialsKVProto{Alias: &s.Name, Secret: s.Value})
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return protowire.AppendBytes([]byte("HDTS\x01"), b)
}

func TestSelection(t *testing.T) {
	if got := sample.Of(KindAMRM); len(got) != 1 {
		t.Errorf("AMRM tokens: %v", got)
	}
	rest := sample.Without(KindAMRM)
	if len(rest.Tokens) != 1 || rest.Tokens[0].Alias != "nn" || rest.Secret("sek") == nil || rest.Secret("other") != nil {
		t.Errorf("without: %+v", rest)
	}
}

func TestURLString(t *testing.T) {
	for _, n := range sample.Tokens {
		got, err := ParseURLString(n.Token.URLString())
		if err != nil || !reflect.DeepEqual(got, n.Token) {
			t.Errorf("%v: got %+v, %v", n.Token, got, err)
		}
	}
	for _, bad := range []string{"", "!", "AAAA%", "_w"} {
		if _, err := ParseURLString(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestVint(t *testing.T) {
	for v, want := range map[int64]string{
		0: "00", 127: "7f", -112: "90", 128: "8f80", 200: "8fc8", 300: "8e012c", -113: "8770", -256: "87ff", math.MaxInt64: "887fffffffffffffff", math.MinInt64: "807fffffffffffffff",
	} {
		b := appendVint(nil, v)
		if got := hex.EncodeToString(b); got != want {
			t.Errorf("%d: got %s, want %s", v, got, want)
		}
		r := &reader{b: b}
		if got := r.vint(); got != v || r.err != nil || len(r.b) != 0 {
			t.Errorf("%d: read back %d, %v", v, got, r.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample.Append(nil))
	f.Add([]byte("HDTS\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(c.Append(nil))
		if err != nil || len(again.Tokens) != len(c.Tokens) || len(again.Secrets) != len(c.Secrets) {
			t.Errorf("cannot read back: %v", err)
		}
		for _, n := range c.Tokens {
			if _, err := ParseURLString(n.Token.URLString()); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzDelegation reads identifiers, which are a server's.
func FuzzDelegation(f *testing.F) {
	f.Add([]byte("\x00\x05alice\x04yarn\x00\x01\x02\x03"), false)
	f.Add([]byte("\x0a\x05alice"), true)
	f.Add([]byte("\x07\x0a\x05alice"), true)
	f.Fuzz(func(t *testing.T, id []byte, yarn bool) {
		kind := KindHDFS
		if yarn {
			kind = KindRM
		}
		d, err := Token{Kind: kind, Identifier: id}.Delegation()
		if err == nil && len(d.Owner)+len(d.Renewer)+len(d.RealUser) > len(id) {
			t.Errorf("%x: %+v", id, d)
		}
		_ = Token{Kind: kind, Identifier: id}.String()
	})
}
