package digest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

const uri = "/default"

var (
	user     = base64.StdEncoding.EncodeToString([]byte("identifier-bytes"))
	password = base64.StdEncoding.EncodeToString([]byte("password-bytes"))
)

func challenge(qop, cipher string) Challenge {
	c := Challenge{Realm: "default", Nonce: "SERVERNONCE", QOP: []string{qop}}
	if cipher != "" {
		c.Ciphers = []string{cipher}
	}
	return c
}

// TestVectors compares with what Java's implementation computes.
func TestVectors(t *testing.T) {
	const conf, confProof = "e4a0048845f7cba5e1f0c88c098ee2fb", "35b0fb15132d4b009661cf079c07d518"
	for _, x := range []struct{ qop, cipher, response, proof, wrap0, wrap1 string }{
		{"auth", "", "125156318d1ec20c64fb68992edf885a", "4cd5952dc32e3bcae93437f76b1a81e1", "", ""},
		{"auth-int", "", "0efeb32bc4ded5c410be3f6dc53d8383", "8e7af96e4969292fb1fedbb8eb560c40",
			"68656c6c6fad9c6171b8dbca9807b3000100000000", "68656c6c6f9a0069e388b4a6235531000100000001"},
		{"auth-conf", "rc4", conf, confProof, "ec0339623e6df930253584a87fcc2a000100000000", "186dc9938c3bdfb00875b518a16c76000100000001"},
		{"auth-conf", "3des", conf, confProof, "de9c56c8e9951ca937f84fe5e9793ad3000100000000", "1713fc41a6819dcaf86254fa52ca2cf9000100000001"},
		{"auth-conf", "des", conf, confProof, "454700c11d899b093a680a7d752b8605000100000000", "6ca2a57a50c9b63bc8f44ce504202a2e000100000001"},
		{"auth-conf", "rc4-56", conf, confProof, "733e22434e48aa98552aefe7e72a53000100000000", "540c14e7bfd1d94a41c54900baf804000100000001"},
		{"auth-conf", "rc4-40", conf, confProof, "8e14250d75a461df03a8b957bfe53b000100000000", "edebc09cb9e6cee57a8111b8e356e1000100000001"},
	} {
		c := challenge(x.qop, x.cipher)
		resp, s, err := Respond(c, user, password, uri, "CLIENTNONCE", nil)
		if err != nil {
			t.Fatalf("%s %s: %v", x.qop, x.cipher, err)
		}
		if !strings.Contains(string(resp), "response="+x.response+",") {
			t.Errorf("%s %s: got response %s, want %s in it", x.qop, x.cipher, resp, x.response)
		}
		if err := s.Verify([]byte("rspauth=" + x.proof)); err != nil {
			t.Errorf("%s %s: %v", x.qop, x.cipher, err)
		}
		if err := s.Verify([]byte("rspauth=" + x.response)); err == nil {
			t.Errorf("%s %s: a wrong proof is accepted", x.qop, x.cipher)
		}
		l, err := s.Layer()
		if err != nil {
			t.Fatal(err)
		}
		if x.wrap0 == "" {
			if l != nil {
				t.Error("auth has a layer")
			}
			continue
		}
		for _, want := range []string{x.wrap0, x.wrap1} {
			if got := hex.EncodeToString(l.Wrap([]byte("hello"))); got != want {
				t.Errorf("%s %s: wrapped %s, want %s", x.qop, x.cipher, got, want)
			}
		}
	}
}

// TestBothSides lets a client and a server of ours talk, with every protection.
func TestBothSides(t *testing.T) {
	for _, x := range [][2]string{{"auth", ""}, {"auth-int", ""}, {"auth-conf", "rc4"}, {"auth-conf", "3des"}, {"auth-conf", "des"}, {"auth-conf", "rc4-56"}} {
		c, err := ParseChallenge(challenge(x[0], x[1]).Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		resp, cs, err := Respond(c, user, password, uri, "cn", []string{x[0]})
		if err != nil {
			t.Fatal(err)
		}
		know := func(pw string) func(string) (string, bool) {
			return func(u string) (string, bool) { return pw, u == user }
		}
		if _, _, _, err := Accept(c, resp, uri, know("other")); err == nil {
			t.Error("a wrong password is accepted")
		}
		who, proof, ss, err := Accept(c, resp, uri, know(password))
		if err != nil || who != user {
			t.Fatalf("%v: %q, %v", x, who, err)
		}
		if err := cs.Verify(proof); err != nil {
			t.Errorf("%v: %v", x, err)
		}
		cl, _ := cs.Layer()
		sl, _ := ss.Layer()
		if cl == nil {
			continue
		}
		for i := range 40 {
			msg := bytes.Repeat([]byte{byte(i)}, i*3)
			if got, err := sl.Unwrap(cl.Wrap(msg)); err != nil || !bytes.Equal(got, msg) {
				t.Fatalf("%v: to the server: %x, %v", x, got, err)
			}
			if got, err := cl.Unwrap(sl.Wrap(msg)); err != nil || !bytes.Equal(got, msg) {
				t.Fatalf("%v: to the client: %x, %v", x, got, err)
			}
		}
		w := sl.Wrap([]byte("tampered with"))
		w[3] ^= 1
		if _, err := cl.Unwrap(w); err == nil {
			t.Errorf("%v: a changed message is accepted", x)
		}
	}
}

func TestChoice(t *testing.T) {
	c := Challenge{Realm: "r", Nonce: "n", QOP: []string{"auth", "auth-conf", "auth-int"}, Ciphers: []string{"des", "3des", "new"}}
	for _, x := range []struct {
		allowed []string
		want    string
	}{{nil, "auth-conf"}, {[]string{"auth"}, "auth"}, {[]string{"auth", "auth-int"}, "auth-int"}, {[]string{"other"}, ""}} {
		_, s, err := Respond(c, "u", "p", uri, "c", x.allowed)
		if (err == nil) != (x.want != "") || (err == nil && s.QOP() != x.want) {
			t.Errorf("allowed %v: %v, want %q", x.allowed, err, x.want)
		}
	}
	for _, bad := range []string{``, `nonce=""`, `nonce=x`, `nonce=x,algorithm=md5`, `nonce="x`, `nonce=x,nonce=y`, `x`, `nonce="\`} {
		if _, err := ParseChallenge([]byte(bad)); err == nil {
			t.Errorf("challenge %q is accepted", bad)
		}
	}
	real := `realm="default",nonce="a\"b",qop="auth-conf",charset=utf-8,cipher="3des,rc4,des,rc4-56,rc4-40",algorithm=md5-sess`
	ch, err := ParseChallenge([]byte(real))
	if err != nil || ch.Nonce != `a"b` || len(ch.Ciphers) != 5 {
		t.Errorf("a real challenge: %+v, %v", ch, err)
	}
	if again, err := ParseChallenge(ch.Append(nil)); err != nil || again.Nonce != ch.Nonce {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func FuzzDirectives(f *testing.F) {
	f.Add([]byte(`realm="default",nonce="x",qop="auth",algorithm=md5-sess`))
	f.Add([]byte(`rspauth=00,x="\""`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseChallenge(b)
		if err != nil {
			return
		}
		resp, s, err := Respond(c, "u", "p", uri, "c", nil)
		if err != nil {
			return
		}
		if _, proof, _, err := Accept(c, resp, uri, func(string) (string, bool) { return "p", true }); err != nil {
			t.Errorf("%q answers %q: %v", b, resp, err)
		} else if err := s.Verify(proof); err != nil {
			t.Error(err)
		}
	})
}

func FuzzUnwrap(f *testing.F) {
	f.Add([]byte("0123456789abcdef\x00\x01\x00\x00\x00\x00"), 0)
	f.Fuzz(func(t *testing.T, b []byte, which int) {
		x := [][2]string{{"auth-int", ""}, {"auth-conf", "rc4"}, {"auth-conf", "3des"}}[uint(which)%3]
		_, s, err := Respond(challenge(x[0], x[1]), user, password, uri, "c", nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Layer()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Unwrap(b); err == nil {
			t.Errorf("random bytes %x are accepted", b)
		}
	})
}
