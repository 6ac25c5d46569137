package batch

import "encoding/binary"

// Builder fills one batch in memory given to it, without an allocation.
//
// Begin, Append until it says no, then Seal. A batch may be sealed again with another header.
type Builder struct {
	buf    []byte // header and records
	count  int32
	base   int64 // time of the first record
	max    int64
	codec  Codec // of the records in buf
	packed bool  // packing was tried: it is not done twice
}

// Room is how much of buf a record takes at most, beside the header.
func Room(key, value, headers int) int { return 5 + 1 + 10 + 5 + 5 + key + 5 + value + max(headers, 1) }

// Begin begins a batch that takes at most cap(buf) bytes.
func (b *Builder) Begin(buf []byte) { *b = Builder{buf: buf[:HeaderSize]} }

// Len is the number of records.
func (b *Builder) Len() int { return int(b.count) }

// Buf is the memory given to Begin.
func (b *Builder) Buf() []byte { return b.buf }

// Append adds a record, unless it has no room. A nil key or value is null; headers are as Headers reads them, or empty for none.
func (b *Builder) Append(time int64, key, value, headers []byte) bool {
	if b.count == 0 {
		b.base, b.max = time, time
	}
	dt, do := time-b.base, int64(b.count)
	size := 1 + varintLen(dt) + varintLen(do) + bytesLen(key) + bytesLen(value) + max(len(headers), 1)
	p := len(b.buf)
	end := p + varintLen(int64(size)) + size
	if end > cap(b.buf) {
		return false
	}
	dst := b.buf[:end]
	p = put(dst, p, int64(size))
	dst[p] = 0
	p = put(dst, p+1, dt)
	p = put(dst, p, do)
	p = putBytes(dst, p, key)
	p = putBytes(dst, p, value)
	if len(headers) == 0 {
		dst[p] = 0
	} else {
		copy(dst[p:], headers)
	}
	b.buf = dst
	b.count++
	b.max = max(b.max, time)
	return true
}

func putBytes(dst []byte, p int, b []byte) int {
	if b == nil {
		dst[p] = 1 // -1
		return p + 1
	}
	p = put(dst, p, int64(len(b)))
	return p + copy(dst[p:], b)
}

// put writes a zig-zag varint at dst[p:] and returns the place after it.
func put(dst []byte, p int, v int64) int {
	u := uint64(v<<1) ^ uint64(v>>63)
	if u < 0x80 {
		dst[p] = byte(u)
		return p + 1
	}
	return p + binary.PutUvarint(dst[p:], u)
}

// Seal packs the records, unless they take less room as they are, and writes the header. Of h it takes LeaderEpoch, ProducerID,
// Epoch, Sequence and Attributes without a codec. It returns the batch.
func (b *Builder) Seal(h Header, codec Codec, c *Compressor) ([]byte, error) {
	if !b.packed && codec != None {
		b.packed = true
		packed, err := c.Pack(codec, b.buf[HeaderSize:])
		if err != nil {
			return nil, err
		}
		if len(packed) < len(b.buf)-HeaderSize {
			b.buf = append(b.buf[:HeaderSize], packed...)
			b.codec = codec
		}
	}
	h.Attributes |= int16(b.codec)
	h.BaseTime, h.MaxTime, h.Count, h.LastDelta = b.base, b.max, b.count, b.count-1
	seal(b.buf, &h)
	return b.buf, nil
}

// Split moves the second half of a batch of two records or more to rest, which has begun with room for it.
func (b *Builder) Split(rest *Builder, d *Decompressor) error {
	records, err := d.Unpack(b.codec, b.buf[HeaderSize:])
	if err != nil {
		return err
	}
	if b.codec == None { // they are moved within the same memory
		records = append([]byte(nil), records...)
	}
	count, base := int(b.count), b.base
	first := Builder{buf: b.buf[:HeaderSize]}
	for i, pos := 0, 0; i < count; i++ {
		size, p := varint(records, pos)
		end := p + int(size)
		dt, p := varint(records, p+1)
		_, p = varint(records, p)
		to := &first
		if i >= count/2 {
			to = rest
		}
		key, p := take(records, p)
		value, p := take(records, p)
		if !to.Append(base+dt, key, value, records[p:end]) {
			return ErrShort
		}
		pos = end
	}
	*b = first
	return nil
}

// take reads bytes with their length, nil for a null.
func take(b []byte, p int) ([]byte, int) {
	n, p := varint(b, p)
	if n < 0 {
		return nil, p
	}
	return b[p : p+int(n) : p+int(n)], p + int(n)
}
