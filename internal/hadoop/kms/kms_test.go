package kms

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/internal/hadoop/hrest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBases(t *testing.T) {
	for in, want := range map[string]string{
		"kms://http@localhost:9600/kms":   "[http://localhost:9600/kms/v1]",
		"kms://https@a;b.c;d:9494/x/kms/": "[https://a:9494/x/kms/v1 https://b.c:9494/x/kms/v1 https://d:9494/x/kms/v1]",
		"kms://http@a/kms":                "[http://a:9600/kms/v1]",
		"kms://http@[::1]:16000/kms":      "[http://[::1]:16000/kms/v1]",
		"kms://http@[::1]/kms":            "[http://[::1]:9600/kms/v1]",
		"kms://ftp@a/kms":                 "neither http nor https", "kms://a:9600/kms": "neither http nor https",
		"jceks://file/keys": "no key server", "kms://http@:9600/kms": "host or its port", "kms://http@a;;b:1/kms": "host or its port", "kms://http@a:/kms": "host or its port", "kms://http@a:x/kms": "host or its port",
	} {
		got, err := Bases(in)
		if text := fmt.Sprint(got); err == nil && text != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
}

// server is a key server that opens keys by adding one to each byte.
func server(t *testing.T) *Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		q := r.URL.Query()
		switch {
		case q.Get("op") == "GETDELEGATIONTOKEN" && r.URL.Path == "/kms/v1/":
			fmt.Fprintf(w, `{"Token":{"urlString":%q}}`, token.Token{Identifier: []byte("id"), Password: []byte("pw"), Kind: TokenKind}.URLString())
		case r.URL.EscapedPath() != "/kms/v1/keyversion/a%2Fb@0/_eek" || q.Get("eek_op") != "decrypt" || r.Header.Get("Content-Type") != "application/json":
			t.Errorf("asked %s", r.URL)
			w.WriteHeader(http.StatusNotFound)
		default:
			var j struct{ Name, IV, Material string }
			_ = json.Unmarshal(b, &j)
			key, err := base64.RawURLEncoding.DecodeString(j.Material)
			if err != nil || j.IV == "" {
				t.Errorf("asked %s: %v", b, err)
			}
			for i := range key {
				key[i]++
			}
			switch j.Name {
			case "k":
				fmt.Fprintf(w, `{"name":"EK","material":%q}`, base64.StdEncoding.EncodeToString(key))
			case "broken":
				fmt.Fprint(w, `{"material":"?"}`)
			case "shut":
				fmt.Fprintf(w, `{"material":%q}`, j.Material)
			default:
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"RemoteException":{"exception":"AuthorizationException","javaClassName":"org.apache.hadoop.security.authorize.AuthorizationException","message":"User:alice not allowed to do 'DECRYPT_EEK' on 'k'"}}`)
			}
		}
	}))
	t.Cleanup(s.Close)
	c, err := New("kms://http@"+strings.TrimPrefix(s.URL, "http://")+"/kms", hrest.Config{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestDecrypt(t *testing.T) {
	c := server(t)
	key, err := c.Decrypt(t.Context(), "k", "a/b@0", []byte{1, 2}, []byte{0xfb, 0xf0, 7})
	if err != nil || string(key) != string([]byte{0xfc, 0xf1, 8}) {
		t.Errorf("got %v, %v", key, err)
	}
	for name, want := range map[string]string{"broken": "not base64", "shut": "did not open", "other": "not allowed to do 'DECRYPT_EEK'"} {
		_, err := c.Decrypt(t.Context(), name, "a/b@0", []byte{1}, []byte{1})
		if err == nil || !strings.Contains(err.Error(), want) || (hrpc.ClassOf(err) == hrpc.ClassAuthorization) != (name == "other") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestToken(t *testing.T) {
	c := server(t)
	got, ok, err := c.Token(t.Context(), "rm")
	if err != nil || !ok || got.Kind != TokenKind || got.Service != c.provider || string(got.Password) != "pw" {
		t.Errorf("got %v, %v, %v", got, ok, err)
	}
}
