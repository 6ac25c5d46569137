// Package jceks reads the files in which Hadoop keeps passwords out of its configuration: Java key stores of the kind JCEKS, as hadoop credential writes
// them (hadoop.security.credential.provider.path).
package jceks

import (
	"bytes"
	"crypto/cipher"
	"crypto/des"
	"crypto/md5"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/asn1"
	"errors"
	"fmt"
	"unicode/utf16"
)

// NoPassword is what Hadoop protects its stores by unless it is told otherwise, which is to say not at all.
const NoPassword = "none"

// Read returns the passwords of a store by their names. Entries of other kinds are passed over.
//
//	magic, version, number of entries: 4 bytes each
//	entry: kind (4), name (2 + n), time (8); kind 1 a key and its certificates, 2 a certificate, 3 a sealed key, which passwords pass for
//	SHA-1 of the store's password, a constant and all that was before (20)
func Read(b []byte, password string) (map[string]string, error) {
	const magic = "\xce\xce\xce\xce"
	if !bytes.HasPrefix(b, []byte(magic)) || len(b) < 12+sha1.Size {
		return nil, errors.New("it is no store of the kind JCEKS")
	}
	body, sum := b[:len(b)-sha1.Size], b[len(b)-sha1.Size:]
	h := sha1.New()
	for _, u := range utf16.Encode([]rune(password)) {
		h.Write([]byte{byte(u >> 8), byte(u)})
	}
	h.Write([]byte("Mighty Aphrodite"))
	h.Write(body)
	if subtle.ConstantTimeCompare(h.Sum(nil), sum) != 1 {
		return nil, errors.New("its password is another, or it is damaged")
	}
	r := &reader{b: body[4:]}
	version := r.u32()
	out := map[string]string{}
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		if err := entry(r, version, password, out); err != nil {
			return nil, err
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("it is damaged: %w", r.err)
	}
	return out, nil
}

func entry(r *reader, version uint32, password string, out map[string]string) error {
	kind, name := r.u32(), r.text()
	r.take(8)
	certificate := func() {
		if version >= 2 {
			r.text() // its kind
		}
		r.take(int(r.u32()))
	}
	switch kind {
	case 1:
		r.take(int(r.u32()))
		for n := r.u32(); n > 0 && r.err == nil; n-- {
			certificate()
		}
	case 2:
		certificate()
	case 3:
		key, err := sealed(r, password)
		if err != nil {
			return fmt.Errorf("cannot read its entry %s: %w", name, err)
		}
		out[name] = string(key)
	default:
		if r.err == nil {
			return fmt.Errorf("its entry %s is of the unknown kind %d", name, kind)
		}
	}
	return nil
}

// sealing is the only way that Java seals keys in these stores.
const sealing = "PBEWithMD5AndTripleDES"

// maxCount bounds how often a password is hashed, as Java does.
var maxCount = 5_000_000

// sealed reads a Java object of class javax.crypto.SealedObject, and what is in it: a javax.crypto.spec.SecretKeySpec.
func sealed(r *reader, password string) ([]byte, error) {
	o, err := readObject(r)
	if err != nil {
		return nil, err
	}
	if alg := string(o["sealAlg"]); alg != sealing {
		return nil, fmt.Errorf("it is sealed by %q, and %s is known", alg, sealing)
	}
	var params struct {
		Salt  []byte
		Count int
	}
	if rest, err := asn1.Unmarshal(o["encodedParams"], &params); err != nil || len(rest) > 0 || len(params.Salt) != 8 || params.Count < 1 || params.Count > maxCount {
		return nil, errors.New("its parameters make no sense")
	}
	plain, err := unseal(o["encryptedContent"], password, params.Salt, params.Count)
	if err != nil {
		return nil, err
	}
	key, err := readObject(&reader{b: plain})
	if err != nil {
		return nil, err
	}
	return key["key"], nil
}

// unseal opens what is sealed: triple DES in CBC mode, whose key and first block come of a password by MD5, each half of the salt for itself.
func unseal(content []byte, password string, salt []byte, count int) ([]byte, error) {
	halves := [][]byte{bytes.Clone(salt[:4]), salt[4:]}
	if bytes.Equal(halves[0], halves[1]) { // Java means to turn the half around, and does this
		a := halves[0]
		a[0], a[1], a[2] = a[3], a[0], a[1]
	}
	var derived []byte
	var sum [md5.Size]byte
	buf := make([]byte, 0, md5.Size+len(password))
	for _, h := range halves {
		buf = append(append(buf[:0], h...), password...)
		for range count {
			sum = md5.Sum(buf)
			buf = append(append(buf[:0], sum[:]...), password...)
		}
		derived = append(derived, sum[:]...)
	}
	block, err := des.NewTripleDESCipher(derived[:24])
	if err != nil {
		return nil, err
	}
	if len(content) == 0 || len(content)%block.BlockSize() != 0 {
		return nil, errors.New("it is damaged")
	}
	out := make([]byte, len(content))
	cipher.NewCBCDecrypter(block, derived[24:]).CryptBlocks(out, content)
	pad := int(out[len(out)-1])
	if pad < 1 || pad > block.BlockSize() || !bytes.Equal(out[len(out)-pad:], bytes.Repeat([]byte{byte(pad)}, pad)) {
		return nil, errors.New("its password is another, or it is damaged")
	}
	return out[:len(out)-pad], nil
}
