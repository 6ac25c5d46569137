package batch

import (
	"encoding/binary"
	"fmt"

	"github.com/heddle-stream/heddle/internal/flow"
)

// A record, after its length as a varint (all varints are zig-zag):
//
//	attributes (1 byte, unused), timestamp delta, offset delta,
//	key length (-1: null) and key, value length (-1: null) and value,
//	number of headers, and for each: key length, key, value length (-1: null), value
//
// The last line, with its count, is what flow.Messages.Headers spans; see Headers.

// Cursor walks the records of one batch.
type Cursor struct {
	b       []byte // unpacked records
	pos     int
	left    int32 // records not yet walked
	last    int32 // largest offset delta
	base    int64
	time    int64 // base timestamp, or the time of every record
	oneTime bool
}

// Walk begins with the unpacked records of the batch whose header is h.
func (c *Cursor) Walk(h *Header, records []byte) error {
	*c = Cursor{b: records, left: h.Count, last: h.LastDelta, base: h.BaseOffset, time: h.BaseTime}
	if h.LogAppendTime() {
		c.time, c.oneTime = h.MaxTime, true
	}
	if h.Count == 0 && len(records) > 0 {
		return fmt.Errorf("%w: %d bytes of records in a batch that says it has none", ErrCorrupt, len(records))
	}
	return nil
}

// Done reports whether every record was walked.
func (c *Cursor) Done() bool { return c.left == 0 }

// Fill resets m and fills it with the records at offsets from ≤ o < stop until they take about limit bytes or the batch
// is done. m.Buf becomes a part of the records given to Walk.
func (c *Cursor) Fill(m *flow.Messages, want flow.MessageFields, limit int, from, stop int64) error {
	m.Reset()
	var (
		b       = c.b
		pos     = c.pos
		start   = -1 // of the first record taken: what spans are relative to
		left    = c.left
		values  = m.Values
		keys    = m.Keys
		headers = m.Headers
		offsets = m.Offsets
		times   = m.Times
		stopped bool
	)
	for left > 0 && (start < 0 || pos-start < limit) {
		size, p := varint(b, pos)
		if p < 0 || size < minRecord || size > int64(len(b)-p) {
			return c.corrupt("record length", pos)
		}
		at, end := pos, p+int(size)
		dt, p := varint(b, p+1) // behind the attributes
		if p < 0 {
			return c.corrupt("timestamp", at)
		}
		do, p := varint(b, p)
		if p < 0 || uint64(do) > uint64(c.last) {
			return c.corrupt("offset", at)
		}
		kl := int64(-1)
		if p < len(b) && b[p] == 1 { // a null key, inlined
			p++
		} else if kl, p = varint(b, p); p < 0 || kl > int64(end-p) {
			return c.corrupt("key length", at)
		}
		key := p
		if kl > 0 {
			p += int(kl)
		}
		vl, p := varint(b, p)
		if p < 0 || max(vl, 0) >= int64(end-p) { // the number of headers follows
			return c.corrupt("value length", at)
		}
		offset := c.base + do
		if offset >= stop {
			stopped = true
			break
		}
		pos = end
		left--
		if offset < from {
			continue
		}
		if start < 0 {
			start = at
		}
		values = append(values, flow.Span{Off: int32(p - start), Len: int32(max(vl, -1))})
		if want != 0 {
			if want&flow.FieldOffset != 0 {
				offsets = append(offsets, offset)
			}
			if want&flow.FieldTime != 0 {
				if c.oneTime {
					dt = 0
				}
				times = append(times, c.time+dt)
			}
			if want&flow.FieldKey != 0 {
				keys = append(keys, flow.Span{Off: int32(key - start), Len: int32(max(kl, -1))})
			}
			if want&flow.FieldHeaders != 0 {
				if vl > 0 {
					p += int(vl)
				}
				headers = append(headers, flow.Span{Off: int32(p - start), Len: int32(end - p)})
			}
		}
	}
	if left == 0 && pos != len(b) && !stopped {
		return fmt.Errorf("%w: %d bytes after its last record", ErrCorrupt, len(b)-pos)
	}
	m.Values, m.Keys, m.Headers, m.Offsets, m.Times = values, keys, headers, offsets, times
	if start >= 0 {
		m.Buf = b[start:pos:pos]
	} else {
		m.Buf = nil
	}
	if stopped {
		pos, left = len(b), 0
	}
	c.pos, c.left = pos, left
	return nil
}

// minRecord is the size of a record with null key, null value and no headers.
const minRecord = 6

func (c *Cursor) corrupt(what string, at int) error {
	return fmt.Errorf("%w: bad %s in the record at byte %d of %d", ErrCorrupt, what, at, len(c.b))
}

// varint reads a zig-zag varint at b[p:] and returns it with the place after it, which is -1 if it is malformed.
func varint(b []byte, p int) (int64, int) {
	if uint(p) >= uint(len(b)) {
		return 0, -1
	}
	x := uint64(b[p])
	if x < 0x80 {
		return int64(x>>1) ^ -int64(x&1), p + 1
	}
	if p+1 < len(b) {
		if y := uint64(b[p+1]); y < 0x80 {
			x = x&0x7f | y<<7
			return int64(x>>1) ^ -int64(x&1), p + 2
		}
	}
	v, n := binary.Varint(b[p:])
	if n <= 0 {
		return 0, -1
	}
	return v, p + n
}

// RecordHeader names a value beside a record.
type RecordHeader struct {
	Key   string
	Value []byte // borrowed; nil for a null
}

// Headers appends the headers in b, a part of flow.Messages.Headers, to dst.
func Headers(dst []RecordHeader, b []byte) ([]RecordHeader, error) {
	n, p := varint(b, 0)
	if p < 0 || n < 0 || n > int64(len(b)) {
		return dst, fmt.Errorf("%w: bad number of headers", ErrCorrupt)
	}
	for range n {
		kl, at := varint(b, p)
		if at < 0 || kl < 0 || kl > int64(len(b)-at) {
			return dst, fmt.Errorf("%w: bad header key", ErrCorrupt)
		}
		p = at + int(kl)
		key := string(b[at:p])
		vl, at := varint(b, p)
		if at < 0 || vl > int64(len(b)-at) {
			return dst, fmt.Errorf("%w: bad value of header %q", ErrCorrupt, key)
		}
		h := RecordHeader{Key: key}
		if p = at; vl >= 0 {
			p += int(vl)
			h.Value = b[at:p:p]
		}
		dst = append(dst, h)
	}
	if p != len(b) {
		return dst, fmt.Errorf("%w: %d bytes after the last header", ErrCorrupt, len(b)-p)
	}
	return dst, nil
}

// CheckHeaders is the error that Headers would come to, without an allocation.
func CheckHeaders(b []byte) error {
	n, p := varint(b, 0)
	if p < 0 || n < 0 || n > int64(len(b)) {
		return fmt.Errorf("%w: bad number of headers", ErrCorrupt)
	}
	for range n {
		kl, at := varint(b, p)
		if at < 0 || kl < 0 || kl > int64(len(b)-at) {
			return fmt.Errorf("%w: bad header key", ErrCorrupt)
		}
		vl, at := varint(b, at+int(kl))
		if at < 0 || vl > int64(len(b)-at) {
			return fmt.Errorf("%w: bad value of a header", ErrCorrupt)
		}
		p = at + int(max(vl, 0))
	}
	if p != len(b) {
		return fmt.Errorf("%w: %d bytes after the last header", ErrCorrupt, len(b)-p)
	}
	return nil
}
