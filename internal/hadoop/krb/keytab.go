package krb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/types"
)

// KeytabEntry is one key of a keytab.
type KeytabEntry struct {
	Principal Principal
	Time      time.Time
	Version   uint32 // kvno
	Enctype   int32
	key       []byte
}

// ParseKeytab reads a keytab file.
func ParseKeytab(b []byte) ([]KeytabEntry, error) {
	if len(b) < 2 || b[0] != 5 {
		return nil, errors.New("it is not a keytab")
	}
	if b[1] != 2 {
		return nil, fmt.Errorf("it is a keytab of the old version %d; write it anew with ktutil", b[1])
	}
	var out []KeytabEntry
	r := &cursor{b: b[2:]}
	for len(r.b) >= 4 {
		size := int32(r.u32())
		if size == 0 {
			break
		}
		if size < 0 { // a hole, where a key was removed
			if size == -1<<31 {
				return nil, errors.New("the keytab is damaged")
			}
			r.bytes(int(-size))
			if r.err != nil {
				break // a hole at the end may be cut
			}
			continue
		}
		rec := &cursor{b: r.bytes(int(size))}
		if r.err != nil {
			return nil, errors.New("the keytab ends within a key")
		}
		e := keytabEntry(rec)
		if rec.err != nil {
			return nil, fmt.Errorf("the keytab is damaged: %w", rec.err)
		}
		out = append(out, e)
	}
	return out, nil
}

func keytabEntry(r *cursor) KeytabEntry {
	var e KeytabEntry
	n := int(r.u16())
	e.Principal.Realm = r.counted16()
	for range n {
		e.Principal.Parts = append(e.Principal.Parts, r.counted16())
		if r.err != nil {
			return e
		}
	}
	r.u32() // the kind of name, which says nothing
	e.Time = time.Unix(int64(r.u32()), 0)
	e.Version = uint32(r.u8())
	e.Enctype = int32(int16(r.u16()))
	e.key = []byte(r.counted16())
	if len(r.b) >= 4 {
		if v := r.u32(); v != 0 {
			e.Version = v
		}
	}
	return e
}

// principals lists those a keytab has keys of, in its order.
func principals(es []KeytabEntry) []Principal {
	var out []Principal
	for _, e := range es {
		if !slices.ContainsFunc(out, e.Principal.Equal) {
			out = append(out, e.Principal)
		}
	}
	return out
}

// keysOf returns a principal's usable keys, the newest first.
func keysOf(es []KeytabEntry, p Principal) []KeytabEntry {
	var out []KeytabEntry
	for _, e := range es {
		if e.Principal.Equal(p) && slices.Contains(enctypes, e.Enctype) && len(e.key) == keySize(e.Enctype) {
			out = append(out, e)
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].Version != out[j].Version {
			return out[i].Version > out[j].Version
		}
		return out[i].Time.After(out[j].Time)
	})
	return out
}

func keySize(enctype int32) int {
	switch enctype {
	case aes128SHA1, aes128SHA2, rc4:
		return 16
	case des3:
		return 24
	}
	return 32
}

// enctypesOfKeys lists the types that a principal's keys have, in the configuration's order of preference.
func enctypesOfKeys(keys []KeytabEntry, allowed []int32) []int32 {
	var have []int32
	for _, k := range keys {
		have = append(have, k.Enctype)
	}
	return both(allowed, have)
}

func (e KeytabEntry) encryptionKey() types.EncryptionKey {
	return types.EncryptionKey{KeyType: e.Enctype, KeyValue: e.key}
}

// describe lists principals for an error.
func describe(ps []Principal) string {
	var names []string
	for i, p := range ps {
		if i == 8 {
			names = append(names, fmt.Sprintf("and %d more", len(ps)-i))
			break
		}
		names = append(names, p.String())
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// cursor reads big-endian fields. After an error it returns zero values.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) bytes(n int) []byte {
	if c.err == nil && (n < 0 || n > len(c.b)) {
		c.err = fmt.Errorf("a field of %d bytes, where %d are left", n, len(c.b))
	}
	if c.err != nil {
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) u8() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) counted16() string { return string(c.bytes(int(c.u16()))) }

func (c *cursor) counted32() []byte {
	n := c.u32()
	if n > 1<<30 {
		c.err = errors.New("a field is too long")
		return nil
	}
	return c.bytes(int(n))
}
