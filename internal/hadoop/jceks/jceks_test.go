package jceks

import (
	"bytes"
	"maps"
	"os"
	"testing"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The stores were made by hadoop credential create of Hadoop 3.4.3, the second with HADOOP_CREDSTORE_PASSWORD=secret1.
func TestRead(t *testing.T) {
	for name, test := range map[string]struct {
		password string
		want     map[string]string
	}{
		"none.jceks":   {NoPassword, map[string]string{"ssl.client.truststore.password": "chängeit 1", "ssl.client.keystore.password": "other"}},
		"secret.jceks": {"secret1", map[string]string{"a.b": "c"}},
	} {
		got, err := Read(read(t, name), test.password)
		if err != nil || !maps.Equal(got, test.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.want)
		}
	}
}

func TestErrors(t *testing.T) {
	good := read(t, "secret.jceks")
	if _, err := Read(good, "guess"); err == nil {
		t.Error("a wrong password opens the store")
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		if _, err := Read(bad, "secret1"); err == nil {
			t.Fatalf("byte %d of the store may be another", i)
		}
		if _, err := Read(good[:i], "secret1"); err == nil {
			t.Fatalf("a store of %d bytes of %d is read", i, len(good))
		}
	}
}

// FuzzEntries reads what is in a store, whatever its sum says.
func FuzzEntries(f *testing.F) {
	for _, name := range []string{"none.jceks", "secret.jceks"} {
		b := read(f, name)
		f.Add(b[12:len(b)-20], uint32(2))
	}
	defer func(n int) { maxCount = n }(maxCount)
	maxCount = 1000 // the stores' own entries are refused; FuzzObject reads what is in such
	f.Fuzz(func(t *testing.T, b []byte, version uint32) {
		r := &reader{b: b}
		for r.err == nil && len(r.b) > 0 {
			if entry(r, version, "short", map[string]string{}) != nil {
				return
			}
		}
	})
}

// FuzzObject reads serialized Java objects.
func FuzzObject(f *testing.F) {
	b := read(f, "none.jceks")
	f.Add(b[bytes.Index(b, []byte{0xac, 0xed}):])
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = readObject(&reader{b: b}) })
}
