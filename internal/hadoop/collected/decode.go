package collected

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// decoder reads what TFile is made of. After an error it reads nothing more.
type decoder struct {
	r   *bufio.Reader
	err error
}

// full fills b.
func (d *decoder) full(b []byte) {
	if d.err == nil {
		if _, d.err = io.ReadFull(d.r, b); d.err == io.EOF {
			d.err = io.ErrUnexpectedEOF
		}
	}
}

// integer is a number of n bytes, whose sign is that of the first.
func (d *decoder) integer(first int64, n int) int64 {
	var b [8]byte
	d.full(b[:n])
	for _, c := range b[:n] {
		first = first<<8 | int64(c)
	}
	return first
}

// number is a number as TFile writes it, by one to nine bytes.
func (d *decoder) number() int64 {
	var one [1]byte
	d.full(one[:])
	first := int64(int8(one[0]))
	switch group := (first + 128) / 8; {
	case first >= -32:
		return first
	case group >= 7:
		return d.integer(first+52, 1)
	case group >= 3:
		return d.integer(first+88, 2)
	case group >= 1:
		return d.integer(first+112, 3)
	}
	n := int(first) + 129
	if n < 4 {
		d.fail("a number of %d bytes", n)
		return 0
	}
	d.full(one[:])
	return d.integer(int64(int8(one[0])), n-1)
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("cannot read the file: it has "+format, args...)
	}
}

// list reads as many items as a number says that there are, and none after an error: a damaged number may say tens of millions.
func (d *decoder) list(item func()) {
	n := d.number()
	if d.err == nil && (n < 0 || n > maxIndex) {
		d.fail("a list of %d", n)
	}
	for ; n > 0 && d.err == nil; n-- {
		item()
	}
}

// bytes are n bytes.
func (d *decoder) bytes(n int64) []byte {
	if d.err == nil && (n < 0 || n > maxName) {
		d.fail("a name of %d bytes", n)
	}
	if d.err != nil {
		return nil
	}
	b := make([]byte, n)
	d.full(b)
	return b
}

func (d *decoder) text() string { return string(d.bytes(d.number())) }

// region is a part of a file of a size. How long it is without its compression does not matter.
func (d *decoder) region(size int64) region {
	b := region{at: d.number(), size: d.number()}
	d.number()
	if d.err == nil && (b.at < 0 || b.size < 0 || b.at > size || b.size > size-b.at) {
		d.fail("a block of %d bytes at %d of %d", b.size, b.at, size)
	}
	return b
}

// chunks is a value, which comes in chunks.
type chunks struct {
	d    *decoder
	left int64
	last bool
}

// Read implements io.Reader.
func (c *chunks) Read(b []byte) (int, error) {
	for c.left == 0 || c.d.err != nil {
		if c.last && c.d.err == nil {
			return 0, io.EOF
		}
		c.left = c.d.number()
		if c.d.err != nil {
			return 0, c.d.err
		}
		if c.last = c.left >= 0; !c.last {
			c.left = -c.left
		}
		if c.left < 0 {
			c.d.fail("a chunk of %d bytes", c.left)
			return 0, c.d.err
		}
	}
	n, err := c.d.r.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	if errors.Is(err, io.EOF) && (c.left > 0 || !c.last) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
