// Package tlsrec protects the records of TLS 1.3 (RFC 8446, section 5), one direction of a connection at a time. It goes on where
// crypto/tls, which has done the handshake, has stopped: a [Half] needs that handshake's traffic secret and the last record
// that was protected by it. What is on the wire stays TLS 1.3, whoever is at the other end.
package tlsrec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
)

// Lengths of a record.
const (
	HeaderSize = 5
	MaxPlain   = 16 << 10                    // payload
	MaxRecord  = HeaderSize + MaxPlain + 256 // with all that protects and pads it
	tagSize    = 16
	Overhead   = HeaderSize + 1 + tagSize // of a record as Finish makes it
)

// Types of content.
const (
	Alert     = 21
	Handshake = 22
	Data      = 23
)

// keyLimit is how many records a key may protect: RFC 8446 section 5.5 says 2^24.5 of full length.
const keyLimit = 1 << 24

var (
	// ErrRecord is of bytes that are no record, or none that the traffic secret protects.
	ErrRecord = errors.New("TLS record is malformed, forged or damaged")
	// ErrSuite is of a cipher suite whose records this package can't protect.
	ErrSuite = errors.New("cipher suite is none with AES-GCM of TLS 1.3")
)

// Half protects one direction. One goroutine uses it.
type Half struct {
	// Limit is how many records a key may protect. Who uses the Half asks Spent.
	Limit uint64

	newHash func() hash.Hash
	secret  []byte
	keySize int
	keys    int // how many have gone before this one

	aead  cipher.AEAD
	iv    [12]byte
	nonce [12]byte
	seq   uint64 // of the next record
}

// New returns the protection by a traffic secret, from its first record on.
func New(suite uint16, secret []byte) (*Half, error) {
	h := &Half{Limit: keyLimit, secret: secret}
	switch suite {
	case tls.TLS_AES_128_GCM_SHA256:
		h.newHash, h.keySize = sha256.New, 16
	case tls.TLS_AES_256_GCM_SHA384:
		h.newHash, h.keySize = sha512.New384, 32
	default:
		return nil, fmt.Errorf("%w: %s", ErrSuite, tls.CipherSuiteName(suite))
	}
	return h, h.derive()
}

// derive makes the key and the IV of the secret.
func (h *Half) derive() error {
	key, err := h.expand("key", h.keySize)
	if err != nil {
		return err
	}
	iv, err := h.expand("iv", len(h.iv))
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	h.aead, err = cipher.NewGCM(block)
	copy(h.iv[:], iv)
	h.seq = 0
	return err
}

// expand is HKDF-Expand-Label of section 7.1, without a context.
func (h *Half) expand(label string, n int) ([]byte, error) {
	label = "tls13 " + label
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(info, byte(len(label)))
	info = append(info, label...)
	info = append(info, 0)
	return hkdf.Expand(h.newHash, h.secret, string(info), n)
}

// Rekey goes over to the next traffic secret (section 7.2).
func (h *Half) Rekey() error {
	next, err := h.expand("traffic upd", h.newHash().Size())
	if err != nil {
		return err
	}
	h.secret = next
	h.keys++
	return h.derive()
}

// Generation is how many times Rekey was called.
func (h *Half) Generation() int { return h.keys }

// Spent reports that the key has protected as many records as it may.
func (h *Half) Spent() bool { return h.seq >= h.Limit }

// early is how many records a handshake, and what follows it before crypto/tls is done with, can have protected.
const early = 64

// After finds out which number record has, one of the first that the secret protected, so that the next one follows it. False: it
// is none of these, and h is of no use.
func (h *Half) After(record []byte) bool {
	room := make([]byte, 0, len(record))
	for h.seq = 0; h.seq < early; {
		seq := h.seq
		if _, _, err := h.Open(room, record); err == nil {
			return true
		}
		h.seq = seq + 1
	}
	return false
}

func (h *Half) next() []byte {
	h.nonce = h.iv
	n := binary.BigEndian.Uint64(h.nonce[4:]) ^ h.seq
	binary.BigEndian.PutUint64(h.nonce[4:], n)
	h.seq++
	return h.nonce[:]
}

// Begin appends the room for a record's header to b. What is appended after it, MaxPlain bytes at most, becomes its content by Finish.
func Begin(b []byte) []byte { return append(b, Data, 3, 3, 0, 0) }

// Finish protects the record that began at b[at:] and has content of a type up to b's end.
func (h *Half) Finish(b []byte, at int, typ byte) []byte {
	b = append(slices.Grow(b, 1+tagSize), typ)
	header, inner := b[at:at+HeaderSize], b[at+HeaderSize:]
	binary.BigEndian.PutUint16(header[3:], uint16(len(inner)+tagSize))
	h.aead.Seal(inner[:0], h.next(), inner, header) // in place: there is room
	return b[:len(b)+tagSize]
}

// Length is how long the record is that begins with header, of HeaderSize bytes.
func Length(header []byte) (int, error) {
	n := HeaderSize + int(binary.BigEndian.Uint16(header[3:]))
	if header[0] != Data || header[1] != 3 || n > MaxRecord || n < Overhead {
		return 0, ErrRecord
	}
	return n, nil
}

// InnerSize is how many bytes Open writes for a record of length n: content, type and padding.
func InnerSize(n int) int { return n - HeaderSize - tagSize }

// Open checks a whole record and decrypts it into dst, whose capacity is InnerSize at least, or onto itself if dst is record[HeaderSize:].
func (h *Half) Open(dst, record []byte) (plain []byte, typ byte, err error) {
	if len(record) < Overhead {
		return nil, 0, ErrRecord
	}
	inner, err := h.aead.Open(dst[:0], h.next(), record[HeaderSize:], record[:HeaderSize])
	if err != nil {
		return nil, 0, ErrRecord
	}
	end := len(inner) - 1
	for end >= 0 && inner[end] == 0 { // padding
		end--
	}
	if end < 0 || end > MaxPlain {
		return nil, 0, ErrRecord
	}
	return inner[:end], inner[end], nil
}
