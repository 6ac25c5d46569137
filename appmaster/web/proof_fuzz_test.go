package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FuzzProof: no header that was not made with the secret lets anybody in, by whichever scheme it comes.
func FuzzProof(f *testing.F) {
	now := strconv.FormatInt(time.Now().Unix(), 10)
	for _, s := range []string{"", "x", proofScheme, proofScheme + now + " once AAAA", proofScheme + "9223372036854775807 a b", ticketScheme + "YWxpY2U " + now + " once AAAA", ticketScheme + "! " + now + " x", "Bearer " + strings.Repeat("A", 26)} {
		f.Add(s, "body")
	}
	s := &Server{token: sha256.Sum256([]byte(token))}
	s.cfg.Proxy = &Proxy{View: func(string) bool { return true }, Modify: func(string) bool { return true }}
	s.cfg.Ticket = func(identifier []byte) (Ticket, error) {
		return Ticket{User: string(identifier), Password: []byte("unknown to who asks")}, nil
	}
	f.Fuzz(func(t *testing.T, header, body string) {
		r := httptest.NewRequest("PUT", "/api/job/cancel", strings.NewReader(body))
		r.Header.Set("Authorization", header)
		c, err := s.proven(r)
		if c != nil && err == nil {
			t.Errorf("%q lets %+v in", header, c)
		}
		// The same as the hash of a proof that is well formed.
		r.Header.Set("Authorization", proofScheme+now+" once "+base64.RawURLEncoding.EncodeToString([]byte(header)))
		if c, err := s.proven(r); c != nil && err == nil {
			t.Errorf("%x as a hash lets %+v in", header, c)
		}
	})
}
