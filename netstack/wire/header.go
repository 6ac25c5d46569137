// Package wire appends and parses the frames of the exchange. It does no I/O.
//
// Every frame is a header of HeaderSize bytes, little endian, and a payload:
//
//	 0  u16  magic, "HL"
//	 2  u8   type
//	 3  u8   flags
//	 4  u32  length of the payload
//	 8  u32  channel; 0 is the connection itself
//	12  u32  sequence number of the channel (data, event), from 0; wraps
//	16  u32  backlog: data frames the sender has waiting behind this one (data, event, backlog)
//	20  u32  checksum, if agreed on; else sent as 0 and ignored
//
// SPEC.md in the parent directory tells who sends what when.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HeaderSize is the length of every frame's header.
const HeaderSize = 24

// Version is the newest protocol version this package speaks, MinVersion the oldest.
const (
	Version    = 1
	MinVersion = 1
)

// MaxControl is the longest payload of any frame but data, whatever was negotiated.
const MaxControl = 4096

// MaxHandshake is the longest payload before a peer has proved itself.
const MaxHandshake = 512

const magic = uint16('H') | uint16('L')<<8

// Type tells frames apart.
type Type uint8

// The frame types. C is the consumer's end, which dialed; P the producer's.
const (
	Hello     Type = 1  // C→P  versions, limits, nonce
	Challenge Type = 2  // P→C  the same, and P's proof
	Proof     Type = 3  // C→P  C's proof
	Accept    Type = 4  // P→C  the connection is open
	Request   Type = 8  // C→P  partition, subpartition, initial credit
	Credit    Type = 9  // C→P  credits for any number of channels
	Cancel    Type = 10 // C→P  the consumer wants no more of the channel
	Done      Type = 11 // C→P  the consumer has taken the channel's end
	Data      Type = 12 // P→C  one segment; costs one credit
	Event     Type = 13 // P→C  costs none
	Backlog   Type = 14 // P→C  data waits and there is no credit
	Error     Type = 15 // both: the channel, or for channel 0 the connection, has failed
	Keepalive Type = 16 // both: nothing else was to be sent
	Goodbye   Type = 17 // both: the sender closes in order
	Resize    Type = 18 // C→P  how long the consumer wants data frames to be; a producer need not heed it
	Trace     Type = 19 // P→C  a note and the times of the data frame that follows directly
)

var typeNames = [...]string{
	Hello: "hello", Challenge: "challenge", Proof: "proof", Accept: "accept", Request: "request", Credit: "credit", Cancel: "cancel",
	Done: "done", Data: "data", Event: "event", Backlog: "backlog", Error: "error", Keepalive: "keepalive", Goodbye: "goodbye", Resize: "resize", Trace: "trace",
}

func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// Known reports whether t is a type of this version. Frames of others are skipped and counted.
func (t Type) Known() bool { return int(t) < len(typeNames) && typeNames[t] != "" }

// Flags of event frames.
const (
	FlagPriority uint8 = 1 << 0 // overtakes what the channel has queued
	FlagCoalesce uint8 = 1 << 1 // the next event with this flag may replace it while neither is read
	FlagEnd      uint8 = 1 << 2 // nothing follows on the channel
	eventFlags         = FlagPriority | FlagCoalesce | FlagEnd
)

// Flags of data frames: how the payload is compressed. It then begins with its plain length, u32. They are only sent to who
// said that it takes them. No other frame has flags.
const (
	FlagLZ4   uint8 = 1 << 4
	FlagZstd  uint8 = 1 << 5
	dataFlags       = FlagLZ4 | FlagZstd
)

// Header is a parsed frame header.
type Header struct {
	Type    Type
	Flags   uint8
	Length  uint32
	Channel uint32
	Seq     uint32
	Backlog uint32
	Sum     uint32 // checksum as read, or to write
}

// Errors of Parse functions. All of them mean that the connection can't be read on.
var (
	ErrShort  = errors.New("frame is cut short")
	ErrMagic  = errors.New("not a frame: wrong magic")
	ErrLength = errors.New("frame length out of bounds")
	ErrFlags  = errors.New("frame has unknown flags")
	ErrFrame  = errors.New("malformed frame")
	ErrSum    = errors.New("frame was altered on its way: wrong checksum")
)

// PutHeader writes h to the first HeaderSize bytes of b.
func PutHeader(b []byte, h Header) {
	_ = b[HeaderSize-1]
	binary.LittleEndian.PutUint16(b[0:], magic)
	b[2] = byte(h.Type)
	b[3] = h.Flags
	binary.LittleEndian.PutUint32(b[4:], h.Length)
	binary.LittleEndian.PutUint32(b[8:], h.Channel)
	binary.LittleEndian.PutUint32(b[12:], h.Seq)
	binary.LittleEndian.PutUint32(b[16:], h.Backlog)
	binary.LittleEndian.PutUint32(b[20:], h.Sum)
}

// AppendHeader appends h. Its Length must be that of the payload that follows.
func AppendHeader(b []byte, h Header) []byte {
	var a [HeaderSize]byte
	PutHeader(a[:], h)
	return append(b, a[:]...)
}

// ParseHeader reads a header. maxData is the longest data payload agreed on; all other frames are bound by
// MaxControl. Nothing needs to be allocated before it has returned without error.
func ParseHeader(b []byte, maxData uint32) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, ErrShort
	}
	if binary.LittleEndian.Uint16(b) != magic {
		return Header{}, ErrMagic
	}
	h := Header{
		Type:    Type(b[2]),
		Flags:   b[3],
		Length:  binary.LittleEndian.Uint32(b[4:]),
		Channel: binary.LittleEndian.Uint32(b[8:]),
		Seq:     binary.LittleEndian.Uint32(b[12:]),
		Backlog: binary.LittleEndian.Uint32(b[16:]),
		Sum:     binary.LittleEndian.Uint32(b[20:]),
	}
	if err := h.check(maxData); err != nil {
		return Header{}, fmt.Errorf("%w: %s frame, %d bytes, flags %#x, channel %d", err, h.Type, h.Length, h.Flags, h.Channel)
	}
	return h, nil
}

// check holds a header against the bounds. A type that this version doesn't know is bound by MaxControl.
func (h Header) check(maxData uint32) error {
	limit, flags := uint32(MaxControl), uint8(0)
	switch h.Type {
	case Data:
		limit, flags = maxData, dataFlags
		if h.Length == 0 || h.Flags&dataFlags == dataFlags {
			return ErrLength
		}
	case Event:
		flags = eventFlags
	case Hello, Challenge, Proof, Accept:
		limit = MaxHandshake
	}
	if h.Length > limit {
		return ErrLength
	}
	if h.Type.Known() && h.Flags&^flags != 0 {
		return ErrFlags
	}
	return nil
}
