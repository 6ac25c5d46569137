package krb

import "testing"

func FuzzNegotiate(f *testing.F) {
	f.Add([]byte("\xa1\x07\x30\x05\xa0\x03\x0a\x01\x00"))
	f.Add([]byte("\xa1\x0b\x30\x09\xa0\x03\x0a\x01\x02\xa2\x02\x04\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if token, err := negotiateAnswer(b); err == nil && len(token) > len(b) {
			t.Error("a token longer than what holds it")
		}
		_, _, _ = openToken(b)
		_ = asError(b)
	})
}
