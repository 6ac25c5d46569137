package kafka

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	tok, err := newTokens(OAuth{TokenFile: file})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Token(); err == nil {
		t.Error("a file that is not there gives a token")
	}
	for _, want := range []string{"one", "two"} { // it is read anew
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := tok.Token(); err != nil || got.Token != want {
			t.Errorf("got %+v, %v, want %s", got, err, want)
		}
	}
}

func TestClientCredentials(t *testing.T) {
	asked, answer, status := 0, `{"access_token":"t%d","expires_in":3600}`, http.StatusOK
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		user, password, _ := r.BasicAuth()
		if r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "a b" || user != "id" || password != "hush%2F" {
			http.Error(w, `{"error":"invalid_client","error_description":"no"}`, http.StatusUnauthorized)
			return
		}
		w.WriteHeader(status)
		text := answer
		if strings.Contains(text, "%d") {
			text = fmt.Sprintf(text, asked)
		}
		_, _ = w.Write([]byte(text))
	}))
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	o := OAuth{URL: srv.URL, ClientID: "id", ClientSecret: "hush/", Scope: "a b", CAFile: ca}
	tok, err := newTokens(o)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, err := tok.Token(); err != nil || got.Token != "t1" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if asked != 1 {
		t.Errorf("the endpoint was asked %d times for one token", asked)
	}
	for text, want := range map[string]string{`{}`: "holds no access_token", `<html>`: "holds no access_token"} {
		answer = text
		tok, _ = newTokens(o)
		if _, err := tok.Token(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	answer, status = "busy", http.StatusServiceUnavailable
	tok, _ = newTokens(o)
	if _, err := tok.Token(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v", err)
	}
	o.ClientSecret = "hushed"
	tok, _ = newTokens(o)
	if _, err := tok.Token(); err == nil || !strings.Contains(err.Error(), "invalid_client") || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
	o.CAFile = ""
	tok, _ = newTokens(o)
	if _, err := tok.Token(); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an endpoint that nobody vouches for: %v", err)
	}
}

func TestOAuthSettings(t *testing.T) {
	for _, test := range []struct {
		o    OAuth
		want string
	}{
		{OAuth{}, "nothing says where tokens come from"},
		{OAuth{TokenFile: "f", URL: "https://x"}, "one of them"},
		{OAuth{URL: "https://x"}, "needs kafka.sasl.oauth.client-id"},
		{OAuth{URL: "http://x/t", ClientID: "i", ClientSecret: "s"}, "must be https"},
		{OAuth{URL: "ftp://x/t", ClientID: "i", ClientSecret: "s"}, "want the https URL"},
		{OAuth{URL: "http://localhost:1/t", ClientID: "i", ClientSecret: "s"}, ""},
		{OAuth{TokenFile: "f"}, ""},
	} {
		err := test.o.validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.o, err, test.want)
		}
	}
}
