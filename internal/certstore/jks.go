package certstore

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
)

// checkJKS goes through the lengths in a JKS store. The library takes them as they are: a damaged one would cost 4 GiB, or all the memory there is.
//
//	magic, version, number of entries: 4 bytes each
//	entry: kind (4), name (2 + n), time (8); kind 1 a key (4 + n) and certificates (number, 4), 2 a certificate
//	certificate: from version 2 on its type (2 + n), content (4 + n)
//	SHA-1 (20)
func checkJKS(b []byte) error {
	r := jksReader{rest: b, size: len(b)}
	r.skip(4)
	version := r.u32()
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		kind := r.u32()
		r.skip(r.u16())
		r.skip(8)
		certificates := uint32(1)
		if kind == 1 {
			r.skip(r.u32())
			certificates = r.u32()
		}
		for ; certificates > 0 && r.err == nil; certificates-- {
			if version >= 2 {
				r.skip(r.u16())
			}
			r.skip(r.u32())
		}
	}
	r.skip(sha1.Size)
	return r.err
}

// jksReader stops at the first length that leads beyond the end.
type jksReader struct {
	rest []byte
	size int
	err  error
}

func (r *jksReader) take(n uint32) []byte {
	if r.err == nil && uint64(n) > uint64(len(r.rest)) {
		r.err = fmt.Errorf("it is damaged: at byte %d, %d bytes should follow, and %d do", r.size-len(r.rest), n, len(r.rest))
	}
	if r.err != nil {
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *jksReader) skip(n uint32) { r.take(n) }

func (r *jksReader) u16() uint32 {
	if b := r.take(2); b != nil {
		return uint32(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *jksReader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}
