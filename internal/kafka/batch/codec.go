package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is a compression by its number in the attributes of a batch.
type Codec uint8

// The codecs of Kafka.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

func (c Codec) String() string {
	if int(c) < len(codecNames) {
		return codecNames[c]
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// ParseCodec is the inverse of Codec.String.
func ParseCodec(s string) (Codec, error) {
	for i, n := range codecNames {
		if s == n {
			return Codec(i), nil
		}
	}
	return 0, fmt.Errorf("unknown compression %q: want none, gzip, snappy, lz4 or zstd", s)
}

// DefaultMaxUnpacked bounds what a batch may unpack to: far above what brokers accept, low enough that a bomb does no harm.
const DefaultMaxUnpacked = 256 << 20

// A Decompressor unpacks batches into memory that it reuses. The zero value works.
type Decompressor struct {
	MaxUnpacked int // 0: DefaultMaxUnpacked

	out  []byte
	src  bytes.Reader
	gz   *gzip.Reader
	lz   *lz4.Reader
	zstd *zstd.Decoder
}

// Unpack returns the records of src, unpacked if need be. The result is src itself or good until the next call.
func (d *Decompressor) Unpack(codec Codec, src []byte) ([]byte, error) {
	if codec == None {
		return src, nil
	}
	var err error
	switch codec {
	case Gzip:
		err = d.gzip(src)
	case Snappy:
		err = d.snappy(src)
	case LZ4:
		err = d.lz4(src)
	case Zstd:
		err = d.zstandard(src)
	default:
		err = errors.New("unknown codec")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: cannot unpack %s: %w", ErrCorrupt, codec, err)
	}
	return d.out, nil
}

func (d *Decompressor) max() int {
	if d.MaxUnpacked > 0 {
		return d.MaxUnpacked
	}
	return DefaultMaxUnpacked
}

func (d *Decompressor) gzip(src []byte) (err error) {
	d.src.Reset(src)
	if d.gz == nil {
		d.gz, err = gzip.NewReader(&d.src)
	} else {
		err = d.gz.Reset(&d.src)
	}
	if err != nil {
		d.gz = nil
		return err
	}
	return d.readAll(d.gz)
}

func (d *Decompressor) lz4(src []byte) error {
	d.src.Reset(src)
	if d.lz == nil {
		d.lz = lz4.NewReader(&d.src)
	} else {
		d.lz.Reset(&d.src)
	}
	return d.readAll(d.lz)
}

// readAll reads r to its end into d.out, up to the bound.
func (d *Decompressor) readAll(r io.Reader) error {
	d.out = d.out[:0]
	for {
		if len(d.out) == cap(d.out) {
			d.out = append(d.out, make([]byte, max(64<<10, cap(d.out)))...)[:len(d.out)]
		}
		n, err := r.Read(d.out[len(d.out):cap(d.out)])
		d.out = d.out[:len(d.out)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if len(d.out) > d.max() {
			return d.tooLarge()
		}
	}
}

func (d *Decompressor) tooLarge() error {
	return fmt.Errorf("it unpacks to more than %d bytes", d.max())
}

func (d *Decompressor) zstandard(src []byte) (err error) {
	if d.zstd == nil {
		// Concurrency 1 and no stream: DecodeAll runs in the caller's goroutine.
		d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(d.max())))
		if err != nil {
			return err
		}
	}
	d.out, err = d.zstd.DecodeAll(src, d.out[:0])
	return err
}

// xerialMagic begins the framing that Kafka's Java client puts around snappy:
// magic, version (4), lowest compatible version (4), then blocks of length (4) and snappy.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeader = 16

func (d *Decompressor) snappy(src []byte) error {
	d.out = d.out[:0]
	if !bytes.HasPrefix(src, xerialMagic) {
		return d.snappyBlock(src)
	}
	if len(src) < xerialHeader {
		return io.ErrUnexpectedEOF
	}
	for src = src[xerialHeader:]; len(src) > 0; {
		if len(src) < 4 {
			return io.ErrUnexpectedEOF
		}
		n := int64(binary.BigEndian.Uint32(src))
		if n > int64(len(src)-4) {
			return io.ErrUnexpectedEOF
		}
		if err := d.snappyBlock(src[4 : 4+n]); err != nil {
			return err
		}
		src = src[4+n:]
	}
	return nil
}

func (d *Decompressor) snappyBlock(src []byte) error {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return err
	}
	have := len(d.out)
	if n > d.max()-have {
		return d.tooLarge()
	}
	if n > 32*len(src)+64 { // snappy can't: don't allocate for a lie
		return snappy.ErrCorrupt
	}
	if cap(d.out)-have < n {
		d.out = append(make([]byte, 0, max(have+n, 2*cap(d.out))), d.out...)
	}
	if _, err := snappy.Decode(d.out[have:have+n:have+n], src); err != nil {
		return err
	}
	d.out = d.out[:have+n]
	return nil
}
