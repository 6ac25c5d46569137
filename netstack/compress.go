package netstack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/wire"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// takes maps Config.Compression to the feature that says so in a greeting.
var takes = map[string]uint32{"lz4": wire.TakesLZ4, "zstd": wire.TakesZstd}

// plainSize is the length of what is before a compressed block: how long it is when plain.
const plainSize = 4

// worthwhile: a block that is compressed must be at least 1/8 shorter than the plain one. shyLimit: where it is not, so many blocks
// of the subpartition are sent plain at most before the next try, twice as many each time.
const (
	worthwhile = 8
	shyLimit   = 256
)

var errPlainSize = errors.New("compressed data is not as long as it says")

// codecs lends compressors: they are large, and a producer needs one only while it puts.
var codecs = sync.Pool{New: func() any { return new(codec) }}

type codec struct {
	lz4  lz4.Compressor
	zstd *zstd.Encoder
	out  []byte
}

// zstdDecoder decodes for everybody: DecodeAll keeps no state.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(32<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // our options are wrong
	}
	return d
})

// compress returns b compressed, in memory of the codec, with the flag that says how; flag 0 where it isn't worthwhile.
func (c *codec) compress(method string, b []byte) (out []byte, flag uint8) {
	if need := plainSize + lz4.CompressBlockBound(len(b)); cap(c.out) < need {
		c.out = make([]byte, need)
	}
	c.out = binary.LittleEndian.AppendUint32(c.out[:0], uint32(len(b)))
	switch method {
	case "lz4":
		n, err := c.lz4.CompressBlock(b, c.out[plainSize:cap(c.out)])
		if err != nil || n == 0 {
			return nil, 0
		}
		out, flag = c.out[:plainSize+n], wire.FlagLZ4
	default:
		if c.zstd == nil {
			var err error
			c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
			if err != nil {
				panic(err) // our options are wrong
			}
		}
		c.out = c.zstd.EncodeAll(b, c.out)
		out, flag = c.out, wire.FlagZstd
	}
	if len(out) > len(b)-len(b)/worthwhile {
		return nil, 0
	}
	return out, flag
}

// shyness is how often compression of a subpartition was not worthwhile. Its producer owns it.
type shyness struct{ wait, next int }

// try reports whether to compress the next block.
func (s *shyness) try() bool {
	if s.wait > 0 {
		s.wait--
	}
	return s.wait == 0
}

func (s *shyness) result(good bool) {
	if good {
		s.next = 0
		return
	}
	s.next = min(max(1, 2*s.next), shyLimit)
	s.wait = s.next + 1
}

// shrink compresses the first n bytes of seg in place, if their consumer is in another process and takes that.
func (p *Partition) shrink(sub int, seg *bufpool.Segment, n int) (m int, flag uint8) {
	p.mu.Lock()
	v := p.subs[sub].view
	p.mu.Unlock()
	if v == nil || v.conn == nil || v.conn.compress == "" || !p.shy[sub].try() {
		return n, 0
	}
	c := codecs.Get().(*codec)
	out, flag := c.compress(v.conn.compress, seg.Bytes()[:n])
	m = n
	if flag != 0 {
		m = copy(seg.Bytes(), out)
	}
	codecs.Put(c)
	p.shy[sub].result(flag != 0)
	p.stack.plainBytes.Add(uint64(n))
	p.stack.packedBytes.Add(uint64(m))
	return m, flag
}

// expand decompresses b into the room of to and returns how long it is.
func expand(to, b []byte, flags uint8) (int, error) {
	if len(b) < plainSize {
		return 0, wire.ErrShort
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n > len(to) {
		return 0, fmt.Errorf("%w: %d bytes for a segment of %d", wire.ErrLength, n, len(to))
	}
	var got int
	var err error
	if flags&wire.FlagLZ4 != 0 {
		got, err = lz4.UncompressBlock(b[plainSize:], to[:n])
	} else {
		var out []byte
		out, err = zstdDecoder().DecodeAll(b[plainSize:], to[:0:n])
		got = len(out)
	}
	if err == nil && got != n {
		err = errPlainSize
	}
	if err != nil {
		return 0, fmt.Errorf("cannot decompress: %w", err)
	}
	return n, nil
}

const compressed = wire.FlagLZ4 | wire.FlagZstd

// plain exchanges the segment of in, which is compressed, for one with the plain payload: memory that was set aside with the gate's
// account. (The compressed one can't be kept to decompress the next into: who was given it by Overtaken may not have read it yet.)
func (g *Gate) plain(in *inItem) error {
	to := g.stack.pool.Get()
	n, err := expand(to.Bytes(), in.seg.Read(0, in.n), in.flags)
	if err != nil {
		g.stack.pool.Put(to)
		return err
	}
	to.Aside, in.seg.Aside = in.seg.Aside, to.Aside // the Hop goes with the payload
	g.stack.pool.Put(in.seg)
	in.seg, in.n = to, n
	return nil
}
