package hdfs

import (
	"bytes"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// blocks remembers for the library which block it last wrote of a file. The library says so once, when it asks for the next one; if the NameNode has not
// heard yet of the block before that, it refuses, and the library asks again as one does who knows of none, which is refused for ever.
type blocks struct {
	mu       sync.Mutex
	previous map[string][]byte // guarded by mu: of AddBlockRequestProto, by its src
}

// Fields of requests. In all that are looked at, src is the first.
const (
	fieldSrc      = 1
	fieldPrevious = 3 // of AddBlockRequestProto
)

// edit says in a request for a block which one is before it, where the library did so in an earlier one of the file.
func (b *blocks) edit(method string, request []byte) []byte {
	switch method {
	case "complete", "delete":
		b.forget(string(fieldOf(request, fieldSrc)))
		return request
	case "addBlock":
	default:
		return request
	}
	src, previous := string(fieldOf(request, fieldSrc)), fieldOf(request, fieldPrevious)
	b.mu.Lock()
	defer b.mu.Unlock()
	if previous != nil {
		if b.previous == nil {
			b.previous = map[string][]byte{}
		}
		b.previous[src] = bytes.Clone(previous)
		return request
	}
	if previous = b.previous[src]; previous == nil {
		return request
	}
	return protowire.AppendBytes(protowire.AppendTag(bytes.Clone(request), fieldPrevious, protowire.BytesType), previous)
}

// forget forgets a file, which is begun anew or ended.
func (b *blocks) forget(src string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.previous, src)
}

// fieldOf is what field num of a message holds, which is bytes; nil if it has none.
func fieldOf(b []byte, num protowire.Number) []byte {
	for len(b) > 0 {
		got, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(got, typ, b[n:])
		if size < 0 {
			return nil
		}
		if got == num && typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b[n:])
			return v
		}
		b = b[n+size:]
	}
	return nil
}
