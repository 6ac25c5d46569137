package batch

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// A Compressor packs batches into memory that it reuses. The zero value works.
type Compressor struct {
	out  bytes.Buffer
	raw  []byte
	gz   *gzip.Writer
	lz   *lz4.Writer
	zstd *zstd.Encoder
}

// Pack returns src packed. The result is src itself or good until the next call.
func (c *Compressor) Pack(codec Codec, src []byte) (out []byte, err error) {
	switch codec {
	case None:
		return src, nil
	case Gzip:
		out, err = c.gzip(src)
	case Snappy:
		c.raw = xerial.Encode(c.raw[:0], src)
		out = c.raw
	case LZ4:
		out, err = c.lz4(src)
	case Zstd:
		out, err = c.zstandard(src)
	default:
		err = fmt.Errorf("unknown %s", codec)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot pack record batch with %s: %w", codec, err)
	}
	return out, nil
}

func (c *Compressor) gzip(src []byte) ([]byte, error) {
	c.out.Reset()
	if c.gz == nil {
		c.gz = gzip.NewWriter(&c.out)
	} else {
		c.gz.Reset(&c.out)
	}
	if _, err := c.gz.Write(src); err != nil {
		return nil, err
	}
	if err := c.gz.Close(); err != nil {
		return nil, err
	}
	return c.out.Bytes(), nil
}

func (c *Compressor) lz4(src []byte) ([]byte, error) {
	c.out.Reset()
	if c.lz == nil {
		c.lz = lz4.NewWriter(&c.out)
		if err := c.lz.Apply(lz4.BlockSizeOption(lz4.Block64Kb)); err != nil { // what Kafka's own producer uses
			return nil, err
		}
	} else {
		c.lz.Reset(&c.out)
	}
	if _, err := c.lz.Write(src); err != nil {
		return nil, err
	}
	if err := c.lz.Close(); err != nil {
		return nil, err
	}
	return c.out.Bytes(), nil
}

func (c *Compressor) zstandard(src []byte) (_ []byte, err error) {
	if c.zstd == nil {
		// No stream and concurrency 1: EncodeAll runs in the caller's goroutine.
		if c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true)); err != nil {
			return nil, err
		}
	}
	c.raw = c.zstd.EncodeAll(src, c.raw[:0])
	return c.raw, nil
}
