package wire

import "encoding/binary"

// MaxPartition is the longest partition id.
const MaxPartition = 1024

// MaxMessage is the longest message of an error frame; longer ones are cut.
const MaxMessage = 2048

// PartitionRequest is the payload of Request. The frame's channel is the number that the consumer gave it.
//
//	0  u32  subpartition
//	4  u32  initial credit
//	8  u16  length of the partition id, and the id
type PartitionRequest struct {
	Subpartition uint32
	Credit       uint32
	Partition    string
}

// AppendRequest appends a whole Request frame.
func AppendRequest(b []byte, channel uint32, r PartitionRequest) []byte {
	b = AppendHeader(b, Header{Type: Request, Channel: channel, Length: uint32(10 + len(r.Partition))})
	b = binary.LittleEndian.AppendUint32(b, r.Subpartition)
	b = binary.LittleEndian.AppendUint32(b, r.Credit)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.Partition)))
	return append(b, r.Partition...)
}

// ParseRequest reads the payload of a Request frame.
func ParseRequest(b []byte) (PartitionRequest, error) {
	if len(b) < 10 {
		return PartitionRequest{}, ErrShort
	}
	n := int(binary.LittleEndian.Uint16(b[8:]))
	switch {
	case n > MaxPartition || n == 0:
		return PartitionRequest{}, ErrFrame
	case len(b) < 10+n:
		return PartitionRequest{}, ErrShort
	case len(b) > 10+n:
		return PartitionRequest{}, ErrFrame
	}
	return PartitionRequest{
		Subpartition: binary.LittleEndian.Uint32(b),
		Credit:       binary.LittleEndian.Uint32(b[4:]),
		Partition:    string(b[10:]),
	}, nil
}

// Grant is one entry of a Credit frame.
//
//	0  u32  channel
//	4  u32  credits, at least 1
type Grant struct {
	Channel uint32
	Credit  uint32
}

// GrantSize is the length of a Grant, MaxGrants how many fit a frame.
const (
	GrantSize = 8
	MaxGrants = MaxControl / GrantSize
)

// AppendCredit appends a whole Credit frame; grants must be 1 to MaxGrants.
func AppendCredit(b []byte, grants []Grant) []byte {
	b = AppendHeader(b, Header{Type: Credit, Length: uint32(GrantSize * len(grants))})
	for _, g := range grants {
		b = binary.LittleEndian.AppendUint32(b, g.Channel)
		b = binary.LittleEndian.AppendUint32(b, g.Credit)
	}
	return b
}

// ParseGrant reads the first grant of a Credit frame's payload and returns the rest.
func ParseGrant(b []byte) (Grant, []byte, error) {
	if len(b) < GrantSize {
		return Grant{}, nil, ErrShort
	}
	g := Grant{Channel: binary.LittleEndian.Uint32(b), Credit: binary.LittleEndian.Uint32(b[4:])}
	if g.Channel == 0 || g.Credit == 0 {
		return Grant{}, nil, ErrFrame
	}
	return g, b[GrantSize:], nil
}

// AppendResize appends a whole Resize frame. Its payload is u32, the bytes of payload wanted in a data frame at most.
func AppendResize(b []byte, channel, size uint32) []byte {
	b = AppendHeader(b, Header{Type: Resize, Channel: channel, Length: 4})
	return binary.LittleEndian.AppendUint32(b, size)
}

// ParseResize reads the payload of a Resize frame.
func ParseResize(b []byte) (uint32, error) {
	if len(b) < 4 {
		return 0, ErrShort
	}
	return binary.LittleEndian.Uint32(b), nil
}

// Code says what a Fault is about. It is not an error: the stack wraps it by who is to blame.
type Code uint8

// The codes. Unknown ones are treated as Failed.
const (
	Failed   Code = 1 // the producer failed
	NotFound Code = 2 // no such partition appeared in time
	Gone     Code = 3 // the partition was there and has been released
	Protocol Code = 4 // the other end broke the protocol
	Refused  Code = 5 // the hello is not acceptable: version, limits or proof
	Invalid  Code = 6 // the request can't be served: no such subpartition, or it has a consumer
)

// Fault is the payload of Error.
//
//	0  u8   code
//	1  u8   kind of error (internal/cluster's numbers)
//	2  u16  length of the message, and the message
type Fault struct {
	Code    Code
	Kind    uint8
	Message string
}

// AppendError appends a whole Error frame.
func AppendError(b []byte, channel uint32, f Fault) []byte {
	msg := f.Message[:min(len(f.Message), MaxMessage)]
	if channel == 0 {
		msg = msg[:min(len(msg), MaxHandshake-4)]
	}
	b = AppendHeader(b, Header{Type: Error, Channel: channel, Length: uint32(4 + len(msg))})
	b = append(b, byte(f.Code), f.Kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(msg)))
	return append(b, msg...)
}

// ParseError reads the payload of an Error frame.
func ParseError(b []byte) (Fault, error) {
	if len(b) < 4 {
		return Fault{}, ErrShort
	}
	n := int(binary.LittleEndian.Uint16(b[2:]))
	switch {
	case n > MaxMessage:
		return Fault{}, ErrFrame
	case len(b) < 4+n:
		return Fault{}, ErrShort
	case len(b) > 4+n:
		return Fault{}, ErrFrame
	}
	return Fault{Code: Code(b[0]), Kind: b[1], Message: string(b[4:])}, nil
}
