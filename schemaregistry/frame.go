package schemaregistry

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A framed message begins with a byte that tells the rest of the frame:
//
//	0: Confluent: id (4 bytes); in Protobuf then the path of the message in its file, as a count and indexes, all zig-zag varints
//	2: Cloudera: id of the schema's version (8 bytes)
//	3: Cloudera: id of the schema's version (4 bytes)
//
// All numbers are big-endian. The message follows.
func parseFrame(b []byte) (id int64, payload []byte, err error) {
	if len(b) == 0 {
		return 0, nil, errNoFrame
	}
	switch kind := b[0]; {
	case (kind == 0 || kind == 3) && len(b) >= 5:
		return int64(binary.BigEndian.Uint32(b[1:])), b[5:], nil
	case kind == 2 && len(b) >= 9:
		return int64(binary.BigEndian.Uint64(b[1:])), b[9:], nil
	case kind == 1:
		return 0, nil, errors.New("the message names its schema by metadata and version (Cloudera's protocol 1), which is not supported: write it by protocol 2 or 3")
	case kind > 3:
		return 0, nil, fmt.Errorf("%w: it begins with byte %d", errNoFrame, kind)
	}
	return 0, nil, fmt.Errorf("%w: it has %d bytes", errNoFrame, len(b))
}

var errNoFrame = errors.New("the message has no schema id before it")

// appendFrame appends the frame of Confluent's registry.
func appendFrame(b []byte, id int64) []byte {
	return binary.BigEndian.AppendUint32(append(b, 0), uint32(id))
}

// maxPath bounds how deep a message may be nested in others.
const maxPath = 100

// parsePath reads which message of a Protobuf file follows. A lone 0 is short for the first.
func parsePath(b []byte) (path []int, rest []byte, err error) {
	n, k := binary.Varint(b)
	if k <= 0 || n < 0 || n > maxPath {
		return nil, nil, errors.New("bad path of the message in its schema")
	}
	if b = b[k:]; n == 0 {
		return []int{0}, b, nil
	}
	for range n {
		i, k := binary.Varint(b)
		if k <= 0 || i < 0 || i > 1<<20 {
			return nil, nil, errors.New("bad path of the message in its schema")
		}
		path, b = append(path, int(i)), b[k:]
	}
	return path, b, nil
}

func appendPath(b []byte, path []int) []byte {
	if len(path) == 1 && path[0] == 0 {
		return append(b, 0)
	}
	b = binary.AppendVarint(b, int64(len(path)))
	for _, i := range path {
		b = binary.AppendVarint(b, int64(i))
	}
	return b
}
