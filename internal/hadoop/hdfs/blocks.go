package hdfs

import (
	"bytes"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// blocks remembers for the library which block it last wrote of a file. The library says so once, when it asks for the next block or says that the file
// is whole. If the NameNode has not heard yet of the block before that one, it refuses both; and the library says nothing when it tries again, as if the
// block had become known. So it never becomes known, and the library is refused for ever.
type blocks struct {
	mu   sync.Mutex
	last map[string][]byte // guarded by mu: ExtendedBlockProto, by the file's src
}

// Fields of AddBlockRequestProto and CompleteRequestProto.
const (
	fieldSrc  = 1
	fieldLast = 3 // previous, and last
)

// edit says in a request which block is the last, where the library did so in an earlier one of the file.
func (b *blocks) edit(method string, request []byte) []byte {
	if method != "addBlock" && method != "complete" {
		return request
	}
	src, last := string(fieldOf(request, fieldSrc)), fieldOf(request, fieldLast)
	b.mu.Lock()
	defer b.mu.Unlock()
	if last != nil {
		if b.last == nil {
			b.last = map[string][]byte{}
		}
		b.last[src] = bytes.Clone(last)
		return request
	}
	if last = b.last[src]; last == nil {
		return request
	}
	return protowire.AppendBytes(protowire.AppendTag(bytes.Clone(request), fieldLast, protowire.BytesType), last)
}

// forget forgets a file, which is begun anew or ended.
func (b *blocks) forget(src string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, src)
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
