package certstore

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
)

// The stores in testdata were made by Java's keytool; the password is changeit, that of the key in key.jks is keypass.

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStores(t *testing.T) {
	for _, file := range []string{"trust.jks", "trust.p12", "ca.pem"} {
		for _, said := range []string{"", map[string]string{".jks": "jks", ".p12": "PKCS12", ".pem": "PEM"}[filepath.Ext(file)]} {
			if certs, err := Trust(read(t, "testdata/"+file), said, "changeit"); err != nil || len(certs) != 1 {
				t.Errorf("%s: %d certificates, %v", file, len(certs), err)
			}
		}
	}
	// Java reads trusted certificates without a password, and many sites configure none.
	if certs, err := Trust(read(t, "testdata/trust.jks"), "", ""); err != nil || len(certs) != 1 {
		t.Errorf("without a password: %d certificates, %v", len(certs), err)
	}
	for file, keyPassword := range map[string]string{"key.jks": "keypass", "key.p12": ""} {
		pair, err := Key(read(t, "testdata/"+file), "", "changeit", keyPassword)
		if err != nil || pair.PrivateKey == nil || len(pair.Certificate) != 1 {
			t.Errorf("%s: %+v, %v", file, pair, err)
		}
	}
}

func TestErrors(t *testing.T) {
	encrypted := []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
	for name, test := range map[string]struct {
		store                             []byte
		said, password, keyPassword, want string
	}{
		"JCEKS":          {read(t, "testdata/key.jceks"), "", "changeit", "", "JCEKS store, which is not supported"},
		"no store":       {read(t, "certstore_test.go")[:10], "", "x", "", "neither PEM, nor a PKCS12 or JKS store"},
		"other kind":     {read(t, "testdata/key.p12"), "JKS", "changeit", "", "said to be JKS, but is PKCS12"},
		"password":       {read(t, "testdata/key.p12"), "", "wrong-secret", "", "cannot read the PKCS12 store"},
		"JKS password":   {read(t, "testdata/key.jks"), "", "wrong-secret", "", "its password is wrong"},
		"key's password": {read(t, "testdata/key.jks"), "", "changeit", "wrong-secret", "cannot read the key client of the JKS store"},
		"no key":         {read(t, "testdata/trust.jks"), "", "changeit", "", "holds 0 private keys"},
		"encrypted PEM":  {encrypted, "", "", "", "the PEM key is encrypted"},
		"empty":          {nil, "", "", "", "neither PEM, nor"},
	} {
		_, err := Key(test.store, test.said, test.password, test.keyPassword)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if _, err := Trust(read(t, "testdata/key.jks"), "", "changeit"); err == nil || !strings.Contains(err.Error(), "holds no trusted certificate") {
		t.Errorf("a store without certificates: %v", err)
	}
	if _, err := Trust([]byte("-----BEGIN RSA-----\n"), "", ""); err == nil || !strings.Contains(err.Error(), "no PEM certificate") {
		t.Errorf("PEM without certificates: %v", err)
	}
}

// TestDamagedJKS: a length that can't be right is told with its place, and no memory is set aside for it.
func TestDamagedJKS(t *testing.T) {
	for _, name := range []string{"trust.jks", "key.jks"} {
		whole := read(t, "testdata/"+name)
		told := 0
		for at := 4; at < len(whole)-4; at++ {
			b := slices.Clone(whole)
			copy(b[at:], "\xff\xff\xff\xf0")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Trust(b, "", "")
			_, kerr := Key(b, "", "", "keypass")
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 16<<20 {
				t.Fatalf("%s, damaged at %d: %d bytes were allocated", name, at, after.TotalAlloc-before.TotalAlloc)
			}
			for _, err := range []error{err, kerr} {
				if err != nil && strings.Contains(err.Error(), "it is damaged: at byte") {
					told++
				}
			}
		}
		if told < 20 {
			t.Errorf("%s: %d damages were told with their place", name, told)
		}
		if _, err := Trust(whole[:len(whole)-30], "", ""); err == nil || !strings.Contains(err.Error(), "it is damaged: at byte") {
			t.Errorf("%s cut short: %v", name, err)
		}
	}
}

// TestShortKey: a key that is shorter than what protects it is no panic.
func TestShortKey(t *testing.T) {
	ks := keystore.New()
	if err := ks.SetPrivateKeyEntry("k", keystore.PrivateKeyEntry{PrivateKey: []byte("x"), CertificateChain: []keystore.Certificate{{Type: "X509", Content: []byte("c")}}}, []byte("changeit")); err != nil {
		t.Fatal(err)
	}
	var store bytes.Buffer
	if err := ks.Store(&store, []byte("changeit")); err != nil {
		t.Fatal(err)
	}
	b := store.Bytes()
	at := bytes.Index(b, []byte{0x04, 41}) // the octets: 40 that protect, and 1
	if at < 0 {
		t.Fatal("the key is not where it was")
	}
	// The octets become 1 in number, the 40 after them a field that nobody asked for: of an integer.
	b = slices.Concat(b[:at], []byte{0x04, 1, 0, 0x04, 38}, b[at+5:])
	if _, err := Key(b, "", "", "changeit"); err == nil || !strings.Contains(err.Error(), "cannot read the key k of the JKS store") {
		t.Errorf("got %v", err)
	}
}

// FuzzTrust must not panic on any store.
func FuzzTrust(f *testing.F) {
	for _, name := range []string{"trust.jks", "trust.p12", "ca.pem", "key.jceks", "key.jks"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 0 && b[0] == 0x30 {
			return // its iteration counts may take as long as they like
		}
		_, _ = Trust(b, "", "")
		_, _ = Key(b, "", "", "keypass")
	})
}
