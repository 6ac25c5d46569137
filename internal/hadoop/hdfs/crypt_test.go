package hdfs

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// info is what a NameNode says of a file in an encryption zone.
type info struct{ key, iv []byte }

func (i info) GetKey() []byte              { return i.key }
func (i info) GetIv() []byte               { return i.iv }
func (i info) GetKeyName() string          { return "k" }
func (i info) GetEzKeyVersionName() string { return "k@0" }

// turning is a key server whose keys are sealed by being turned round.
type turning struct{ err error }

func (t turning) Decrypt(_ context.Context, name, version string, iv, sealed []byte) ([]byte, error) {
	if name != "k" || version != "k@0" || len(iv) != aes.BlockSize {
		return nil, errors.New("asked for another key")
	}
	out := bytes.Clone(sealed)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, t.err
}

// file is what is stored; it takes at most so many bytes of a write.
type file struct {
	bytes.Buffer
	most   int
	broken int // writes that fail in the middle
}

func (f *file) Write(b []byte) (int, error) {
	if f.broken > 0 && len(b) > f.most {
		f.broken--
		n, _ := f.Buffer.Write(b[:f.most])
		return n, errors.New("not yet")
	}
	return f.Buffer.Write(b)
}
func (f *file) Flush() error { return nil }
func (f *file) Close() error { return nil }

// TestSeal encrypts as Java does, wherever a read begins, also where the counter is about to overflow, and however writes break off.
func TestSeal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, iv := range map[string][]byte{
		"any": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, "low half overflows": append(make([]byte, 8), bytes.Repeat([]byte{0xff}, 8)...), "all overflows": bytes.Repeat([]byte{0xff}, 16),
	} {
		text := make([]byte, 200_000)
		for i := range text {
			text[i] = byte(r.Uint32())
		}
		key := []byte("0123456789abcdef")
		block, err := aes.NewCipher(key)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, len(text))
		cipher.NewCTR(block, iv).XORKeyStream(want, text)
		s, err := open(t.Context(), turning{}, info{[]byte("fedcba9876543210"), iv})
		if err != nil {
			t.Fatal(err)
		}
		f := &file{most: 4097, broken: 3}
		w := &sealedWriter{w: f, seal: s}
		for rest := text; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(100_000))
			done, err := w.Write(rest[:n])
			if (err == nil) != (done == n) {
				t.Fatalf("%s: wrote %d of %d: %v", name, done, n, err)
			}
			rest = rest[done:]
		}
		if !bytes.Equal(f.Bytes(), want) {
			t.Errorf("%s: what was written is another than a cipher makes at once", name)
		}
		for range 200 {
			at := r.IntN(len(text))
			got := bytes.Clone(want[at:min(len(text), at+100)])
			s.at(int64(at)).XORKeyStream(got, got)
			if !bytes.Equal(got, text[at:at+len(got)]) {
				t.Fatalf("%s: misread at %d", name, at)
			}
		}
	}
	if (*seal)(nil).at(7) != nil {
		t.Error("a file in no zone has a cipher")
	}
}

func TestSealRefusals(t *testing.T) {
	iv := make([]byte, 16)
	for name, x := range map[string]struct {
		i    info
		s    KeyServer
		want string
	}{
		"iv":      {info{iv, iv[:8]}, turning{}, "has 8 bytes"},
		"key":     {info{iv[:5], iv}, turning{}, "invalid key size 5"},
		"refused": {info{iv, iv}, turning{io.ErrUnexpectedEOF}, "unexpected EOF"},
	} {
		if _, err := open(t.Context(), x.s, x.i); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
