// Package collected reads the files that NodeManagers collect an application's logs in when it is over, one for each node. It knows Hadoop's usual format,
// TFile, a container of blocks of keys and values: a key is a container's id, and its value holds the container's log files one after another.
//
// It is pure: where bytes come from is its caller's.
package collected

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrFormat says that a file is in another format than TFile.
var ErrFormat = errors.New("its format is not TFile")

// Log is a log file of a container. It is to be read before the next one is asked for.
type Log struct {
	Container string
	Name      string // such as stderr
	Size      int64
	io.Reader
}

// Source is a file of logs. Open reads it from an offset on.
type Source struct {
	Size int64
	Open func(offset int64) (io.ReadCloser, error)
}

// Each calls visit for every log in a file.
func Each(src Source, visit func(Log) error) error {
	blocks, err := index(src)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if err := eachOf(src, b, visit); err != nil {
			return err
		}
	}
	return nil
}

// region is a part of the file.
type region struct {
	at, size  int64
	algorithm string
}

// Of the file's end: where its index begins, its version and its magic number.
const (
	tailSize  = 8 + 4 + 16
	dataIndex = "data:BCFile.index"
	maxIndex  = 64 << 20
	maxName   = 1 << 16
)

var magic = [16]byte{0xd1, 0x11, 0xd3, 0x68, 0x91, 0xb5, 0xd7, 0xb6, 0x39, 0xdf, 0x41, 0x40, 0x92, 0xba, 0xe1, 0x50}

// index returns the blocks of data.
func index(src Source) ([]region, error) {
	if src.Size < tailSize {
		return nil, ErrFormat
	}
	var tail [tailSize]byte
	if err := readAt(src, src.Size-tailSize, func(r *decoder) { r.full(tail[:]) }); err != nil {
		return nil, err
	}
	if [16]byte(tail[12:]) != magic {
		return nil, ErrFormat
	}
	if v := binary.BigEndian.Uint16(tail[8:]); v != 1 {
		return nil, fmt.Errorf("%w of version 1, but of %d", ErrFormat, v)
	}
	at := int64(binary.BigEndian.Uint64(tail[:]))
	if at < 0 || at > src.Size-tailSize || src.Size-at > maxIndex {
		return nil, fmt.Errorf("cannot find the file's index: it is said to be at %d of %d bytes", at, src.Size)
	}
	var of *region
	err := readAt(src, at, func(r *decoder) {
		r.list(func() {
			name, algorithm := r.text(), r.text()
			if b := r.region(src.Size); name == dataIndex {
				b.algorithm = algorithm
				of = &b
			}
		})
	})
	if err != nil || of == nil {
		return nil, errors.Join(err, errors.New("cannot find the file's index of blocks"))
	}
	return blocksOf(src, *of)
}

// blocksOf reads the index of blocks.
func blocksOf(src Source, of region) (out []region, err error) {
	in, end, err := src.inside(of)
	if err != nil {
		return nil, err
	}
	defer end()
	r := &decoder{r: bufio.NewReader(io.LimitReader(in, maxIndex))}
	algorithm := r.text()
	r.list(func() {
		b := r.region(src.Size)
		b.algorithm = algorithm
		out = append(out, b)
	})
	return out, r.err
}

// readAt decodes what is at an offset.
func readAt(src Source, at int64, read func(*decoder)) error {
	f, err := src.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	r := &decoder{r: bufio.NewReader(f)}
	read(r)
	return r.err
}

// inside opens a region, without its compression.
func (s Source) inside(b region) (io.Reader, func(), error) {
	f, err := s.Open(b.at)
	if err != nil {
		return nil, nil, err
	}
	limited := io.LimitReader(f, b.size)
	switch b.algorithm {
	case "none":
		return limited, func() { _ = f.Close() }, nil
	case "gz":
		z, err := zlib.NewReader(limited)
		if err != nil {
			_ = f.Close()
			return nil, nil, fmt.Errorf("cannot decompress a block at %d: %w", b.at, err)
		}
		return z, func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	return nil, nil, fmt.Errorf("cannot decompress the logs: they are compressed by %q, and only gz is known here", b.algorithm)
}

// eachOf visits the logs of a block.
func eachOf(src Source, b region, visit func(Log) error) error {
	in, end, err := src.inside(b)
	if err != nil {
		return err
	}
	defer end()
	r := &decoder{r: bufio.NewReaderSize(in, 1<<16)}
	for {
		if _, err := r.r.Peek(1); err == io.EOF {
			return nil
		}
		key := r.bytes(r.number())
		if r.err != nil {
			return fmt.Errorf("cannot read a block of the file: %w", r.err)
		}
		v := &chunks{d: r}
		if container := utf(key); strings.HasPrefix(container, "container_") {
			err = eachLog(container, v, visit)
		}
		if err == nil {
			_, err = io.Copy(io.Discard, v)
		}
		if err != nil {
			return err
		}
	}
}

// utf is a text as Java's DataOutput writes it: its length comes before it.
func utf(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	return string(b[2:])
}

// eachLog visits the log files of one container.
func eachLog(container string, v io.Reader, visit func(Log) error) error {
	in := bufio.NewReader(v)
	for {
		if _, err := in.Peek(1); err == io.EOF {
			return nil
		}
		name, err := readUTF(in)
		if err != nil {
			return err
		}
		length, err := readUTF(in)
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(length, 10, 64)
		if err != nil || size < 0 {
			return fmt.Errorf("cannot read the length of %s of %s: %q", name, container, length)
		}
		l := Log{container, name, size, io.LimitReader(in, size)}
		if err := visit(l); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, l); err != nil {
			return err
		}
	}
}

func readUTF(r io.Reader) (string, error) {
	var n [2]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", fmt.Errorf("cannot read the name of a log: %w", err)
	}
	b := make([]byte, binary.BigEndian.Uint16(n[:]))
	if _, err := io.ReadFull(r, b); err != nil {
		return "", fmt.Errorf("cannot read the name of a log: %w", err)
	}
	return string(b), nil
}
