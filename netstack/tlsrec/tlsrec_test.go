package tlsrec

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// pair returns the same protection for each end of one direction.
func pair(t testing.TB, suite uint16) (sealer, opener *Half) {
	t.Helper()
	secret := bytes.Repeat([]byte{7}, 48)
	for _, h := range []**Half{&sealer, &opener} {
		var err error
		if *h, err = New(suite, secret); err != nil {
			t.Fatal(err)
		}
	}
	return sealer, opener
}

var suites = []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384}

func seal(h *Half, typ byte, content []byte) []byte {
	return h.Finish(append(Begin(nil), content...), 0, typ)
}

// TestRecord holds the derivation of keys and a record to RFC 8448, section 3: what the client sends as application data.
func TestRecord(t *testing.T) {
	secret := unhex(t, "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5")
	want := unhex(t, `17030300 43a23f70 54b62c94 d0affafe 8228ba55 cbefacea 42f914aa 66bcab3f 2b9819a8 a5b46b39
		5bd54a9a 20441e2b 62974e1f 5a6292a2 977014bd 1e3deae6 3aeebb21 694915e4`)
	content := make([]byte, 50)
	for i := range content {
		content[i] = byte(i)
	}
	h, err := New(tls.TLS_AES_128_GCM_SHA256, secret)
	if err != nil {
		t.Fatal(err)
	}
	if got := seal(h, Data, content); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// TestLengths goes through contents up to the longest, from key to key.
func TestLengths(t *testing.T) {
	for _, suite := range suites {
		sealer, opener := pair(t, suite)
		for i, n := range []int{0, 1, 15, 16, 17, 1000, MaxPlain - 1, MaxPlain} {
			content := make([]byte, n)
			for j := range content {
				content[j] = byte(rand.N(256))
			}
			record := seal(sealer, Data, content)
			if size, err := Length(record); err != nil || size != len(record) {
				t.Fatalf("%d bytes: Length says %d, %v of %d", n, size, err, len(record))
			}
			into := make([]byte, InnerSize(len(record)))
			if i%2 == 0 {
				into = record[HeaderSize:]
			}
			plain, typ, err := opener.Open(into, record)
			if err != nil || typ != Data || !bytes.Equal(plain, content) || n > 0 && &plain[0] != &into[0] {
				t.Fatalf("%d bytes: got %d of type %d, %v", n, len(plain), typ, err)
			}
			if err := errors.Join(sealer.Rekey(), opener.Rekey()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestForged changes each byte of a record, and cuts it anywhere.
func TestForged(t *testing.T) {
	sealer, opener := pair(t, suites[0])
	good := seal(sealer, Data, []byte("shuttle"))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		for what, record := range map[string][]byte{"changed": bad, "cut": good[:i]} {
			opener.seq = 0
			if plain, _, err := opener.Open(make([]byte, 64), bytes.Clone(record)); !errors.Is(err, ErrRecord) {
				t.Errorf("%s at %d: got %q, %v", what, i, plain, err)
			}
		}
	}
	opener.seq = 1
	if _, _, err := opener.Open(make([]byte, 64), good); !errors.Is(err, ErrRecord) {
		t.Errorf("played back: got %v", err)
	}
}

func TestPadding(t *testing.T) {
	sealer, opener := pair(t, suites[0])
	for _, c := range []struct {
		content []byte // whose last byte Finish adds
		typ     byte
		want    string
		bad     bool
	}{
		{[]byte("ab\x17\x00\x00"), 0, "ab", false},
		{[]byte("a\x00\x17"), 0, "a\x00", false},
		{[]byte("\x00\x00"), 0, "", true}, // no type at all
		{append(make([]byte, MaxPlain+1), Data), 0, "", true},
	} {
		record := seal(sealer, c.typ, c.content)
		plain, typ, err := opener.Open(make([]byte, len(record)), record)
		if string(plain) != c.want || errors.Is(err, ErrRecord) != c.bad || err == nil && typ != Data {
			t.Errorf("%.10q: got %q of type %d, %v", c.content, plain, typ, err)
		}
	}
}

func TestAfter(t *testing.T) {
	for nth := range early + 2 {
		sealer, opener := pair(t, suites[1])
		var last []byte
		for range nth + 1 {
			last = seal(sealer, Handshake, []byte("ticket"))
		}
		if got, want := opener.After(last), nth < early; got != want {
			t.Fatalf("record %d: found %v", nth, got)
		} else if !got {
			continue
		}
		if _, _, err := opener.Open(make([]byte, 64), seal(sealer, Data, nil)); err != nil {
			t.Fatalf("the record after number %d: %v", nth, err)
		}
	}
	_, opener := pair(t, suites[0])
	for _, record := range [][]byte{nil, {1, 2, 3}, make([]byte, 100)} {
		if opener.After(record) {
			t.Errorf("found %x", record)
		}
	}
}

func TestSpent(t *testing.T) {
	h, _ := pair(t, suites[0])
	h.seq = keyLimit - 1
	if h.Spent() {
		t.Error("spent before its last record")
	}
	seal(h, Data, nil)
	if !h.Spent() {
		t.Error("not spent")
	}
	if err := h.Rekey(); err != nil || h.Spent() || h.seq != 0 {
		t.Errorf("after a new key: record %d, %v", h.seq, err)
	}
}

func TestSuites(t *testing.T) {
	for _, suite := range []uint16{tls.TLS_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, 0} {
		if _, err := New(suite, make([]byte, 32)); !errors.Is(err, ErrSuite) {
			t.Errorf("%s: got %v", tls.CipherSuiteName(suite), err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	sealer, _ := pair(f, suites[0])
	f.Add(seal(sealer, Data, []byte("weft")))
	f.Add([]byte{Data, 3, 3, 0, 17})
	f.Add([]byte{Data, 3, 3, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, opener := pair(t, suites[0])
		if len(b) >= HeaderSize {
			if n, err := Length(b); err == nil && (n < Overhead || n > MaxRecord) {
				t.Errorf("length %d", n)
			}
		}
		if plain, _, err := opener.Open(make([]byte, len(b)), b); err == nil && string(plain) != "weft" {
			t.Errorf("%x: opened as %q", b, plain)
		}
	})
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
