package digest

import (
	"crypto/cipher"
	"crypto/des"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

const (
	macLen  = 10
	tailLen = macLen + 2 + 4 // MAC, message type 1, sequence number
)

// Layer signs or seals the messages of one connection, each direction in order. It is not for concurrent use in one direction; Wrap
// and Unwrap may run beside each other.
type Layer struct {
	out, in direction
}

// direction is one way of a layer.
type direction struct {
	sign   []byte // Ki
	seq    uint32
	stream *rc4.Cipher      // rc4 ciphers: one stream over all messages
	block  cipher.BlockMode // des and 3des: chained over all messages
}

// Layer returns the security layer of the agreed protection, nil for auth.
func (s *Session) Layer() (*Layer, error) {
	if s.qop == Auth {
		return nil, nil
	}
	toServer, err := s.direction("client-to-server", true)
	if err != nil {
		return nil, err
	}
	toClient, err := s.direction("server-to-client", false)
	if err != nil {
		return nil, err
	}
	l := &Layer{out: toServer, in: toClient}
	if s.server {
		l.out, l.in = toClient, toServer
	}
	return l, nil
}

func (s *Session) direction(name string, toServer bool) (direction, error) {
	d := direction{sign: sum(s.key[:], "Digest session key to "+name+" signing key magic constant")}
	if s.qop != AuthConf {
		return d, nil
	}
	n := 16
	switch s.cipher {
	case "rc4-40":
		n = 5
	case "rc4-56":
		n = 7
	}
	key := sum(s.key[:n], "Digest H(A1) to "+name+" sealing key magic constant")
	var err error
	switch s.cipher {
	case "rc4", "rc4-56", "rc4-40":
		d.stream, err = rc4.NewCipher(key)
	case "3des", "des":
		d.block, err = chain(s.cipher, key, toServer != s.server)
	default:
		err = fmt.Errorf("cannot use cipher %q", s.cipher)
	}
	return d, err
}

// chain returns the DES mode for a sealing key, of which the second half is the initialization vector.
func chain(name string, key []byte, encrypt bool) (cipher.BlockMode, error) {
	var (
		b   cipher.Block
		err error
	)
	if name == "des" {
		b, err = des.NewCipher(desKey(key[:7]))
	} else {
		k1, k2 := desKey(key[:7]), desKey(key[7:14])
		b, err = des.NewTripleDESCipher(append(append(append([]byte{}, k1...), k2...), k1...))
	}
	if err != nil {
		return nil, err
	}
	if encrypt {
		return cipher.NewCBCEncrypter(b, key[8:]), nil
	}
	return cipher.NewCBCDecrypter(b, key[8:]), nil
}

// desKey spreads 56 bits over eight bytes, whose low bits make their parity odd.
func desKey(k []byte) []byte {
	var v uint64
	for _, b := range k {
		v = v<<8 | uint64(b)
	}
	out := make([]byte, 8)
	for i := range out {
		b := byte(v>>(49-7*i)) << 1
		if bits.OnesCount8(b)%2 == 0 {
			b |= 1
		}
		out[i] = b
	}
	return out
}

func sum(key []byte, magic string) []byte {
	h := md5.Sum(append(append([]byte{}, key...), magic...))
	return h[:]
}

func (d *direction) mac(msg []byte) []byte {
	h := hmac.New(md5.New, d.sign)
	var seq [4]byte
	binary.BigEndian.PutUint32(seq[:], d.seq)
	h.Write(seq[:])
	h.Write(msg)
	return h.Sum(nil)[:macLen]
}

// Wrap returns msg protected for the peer.
func (l *Layer) Wrap(msg []byte) []byte {
	d := &l.out
	out := make([]byte, 0, len(msg)+8+tailLen)
	out = append(out, msg...)
	if d.block != nil {
		pad := 8 - (len(msg)+macLen)%8
		for range pad {
			out = append(out, byte(pad))
		}
	}
	out = append(out, d.mac(msg)...)
	switch {
	case d.stream != nil:
		d.stream.XORKeyStream(out, out)
	case d.block != nil:
		d.block.CryptBlocks(out, out)
	}
	out = append(out, 0, 1)
	out = binary.BigEndian.AppendUint32(out, d.seq)
	d.seq++
	return out
}

// Unwrap returns the message that the peer protected. After an error the connection is of no use.
func (l *Layer) Unwrap(b []byte) ([]byte, error) {
	d := &l.in
	if len(b) < tailLen {
		return nil, errors.New("cannot unwrap a message: it is too short")
	}
	body, tail := b[:len(b)-6], b[len(b)-6:]
	if tail[0] != 0 || tail[1] != 1 {
		return nil, errors.New("cannot unwrap a message: its type is not 1")
	}
	if n := binary.BigEndian.Uint32(tail[2:]); n != d.seq {
		return nil, fmt.Errorf("cannot unwrap a message: its number is %d, want %d", n, d.seq)
	}
	out := append([]byte{}, body...)
	switch {
	case d.stream != nil:
		d.stream.XORKeyStream(out, out)
	case d.block != nil:
		if len(out)%8 != 0 {
			return nil, errors.New("cannot unwrap a message: it is not whole blocks")
		}
		d.block.CryptBlocks(out, out)
	}
	msg, mac := out[:len(out)-macLen], out[len(out)-macLen:]
	bad := false
	if d.block != nil {
		// A wrong padding is told no earlier than a wrong signature.
		pad := 0
		if len(msg) > 0 {
			pad = int(msg[len(msg)-1])
		}
		if bad = pad < 1 || pad > 8 || pad > len(msg); !bad {
			msg = msg[:len(msg)-pad]
		}
	}
	if !hmac.Equal(mac, d.mac(msg)) || bad {
		return nil, errors.New("cannot unwrap a message: its signature is wrong")
	}
	d.seq++
	return msg, nil
}
