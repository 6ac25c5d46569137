package wire

import "encoding/binary"

// NonceSize and ProofSize are the lengths of a hello's nonce and of a proof.
const (
	NonceSize = 32
	ProofSize = 32
)

const helloFixed = 2 + 2 + 4 + 4 + NonceSize + 2

// Greeting is the payload of Hello and Challenge: what each end can do.
//
//	 0  u16  oldest version
//	 2  u16  newest version; in a challenge, both are the version chosen
//	 4  u32  features; unknown ones are ignored
//	 8  u32  longest data payload the sender can receive
//	12  32   nonce
//	44  u16  length of the identity, and the identity
//
// A challenge ends with a proof of ProofSize bytes.
type Greeting struct {
	MinVersion, MaxVersion uint16
	Features               uint32
	MaxData                uint32
	Nonce                  [NonceSize]byte
	Identity               string // agent id, for people
}

// Features of a greeting.
const (
	// BigEndian: this host's memory is big endian. Payloads may be images of memory, so both ends must agree.
	BigEndian uint32 = 1 << 0
	// Checksums: frames after the handshake have checksums, if both ends say so.
	Checksums uint32 = 1 << 1
	// TakesLZ4 and TakesZstd: data frames sent to this end may be compressed so.
	TakesLZ4  uint32 = 1 << 2
	TakesZstd uint32 = 1 << 3
	// Traces: trace frames may be sent to this end, and keepalives that ask for its clock, if both ends say so.
	Traces uint32 = 1 << 4
)

// MaxIdentity is the longest identity.
const MaxIdentity = 200

// AppendGreeting appends g as a payload.
func AppendGreeting(b []byte, g Greeting) []byte {
	b = binary.LittleEndian.AppendUint16(b, g.MinVersion)
	b = binary.LittleEndian.AppendUint16(b, g.MaxVersion)
	b = binary.LittleEndian.AppendUint32(b, g.Features)
	b = binary.LittleEndian.AppendUint32(b, g.MaxData)
	b = append(b, g.Nonce[:]...)
	id := g.Identity[:min(len(g.Identity), MaxIdentity)]
	b = binary.LittleEndian.AppendUint16(b, uint16(len(id)))
	return append(b, id...)
}

// ParseGreeting reads a Greeting and returns how many bytes it takes.
// Bytes behind it are left to the caller: a later version may append fields.
func ParseGreeting(b []byte) (Greeting, int, error) {
	if len(b) < helloFixed {
		return Greeting{}, 0, ErrShort
	}
	g := Greeting{
		MinVersion: binary.LittleEndian.Uint16(b),
		MaxVersion: binary.LittleEndian.Uint16(b[2:]),
		Features:   binary.LittleEndian.Uint32(b[4:]),
		MaxData:    binary.LittleEndian.Uint32(b[8:]),
		Nonce:      [NonceSize]byte(b[12:]),
	}
	n := int(binary.LittleEndian.Uint16(b[helloFixed-2:]))
	if n > MaxIdentity || g.MinVersion > g.MaxVersion {
		return Greeting{}, 0, ErrFrame
	}
	if len(b) < helloFixed+n {
		return Greeting{}, 0, ErrShort
	}
	g.Identity = string(b[helloFixed : helloFixed+n])
	return g, helloFixed + n, nil
}
