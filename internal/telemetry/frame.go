package telemetry

import (
	"encoding/binary"

	"go.opentelemetry.io/otel/trace"

	"github.com/heddle-stream/heddle/internal/flow"
)

// The beginning of each span is of one form: the tags and lengths of its fields are a template, and what they hold has its place.
const (
	frameRoom = 3 // tag and length of the span, as frame completes it

	traceAt  = frameRoom + 2
	idAt     = traceAt + 16 + 2
	flagsAt  = idAt + 8 + 2
	startAt  = flagsAt + 4 + 1
	endAt    = startAt + 8 + 1
	parentAt = endAt + 8 + 2
	headSize = parentAt + 8
)

var headTemplate = func() (b []byte) {
	b = make([]byte, frameRoom)
	b = appendBytes(b, spanTrace, make([]byte, 16))
	b = appendBytes(b, spanID, make([]byte, 8))
	b = appendFixed32(b, spanFlagsField, 0)
	b = appendFixed64(b, spanStart, 0)
	b = appendFixed64(b, spanEnd, 0)
	return appendBytes(b, spanParent, make([]byte, 8))
}()

// appendHead appends what a span begins with. parent may be zero.
func appendHead(b []byte, c, parent *flow.TraceContext, start int64) []byte {
	at := len(b)
	b = append(b, headTemplate...)
	h := b[at : at+headSize]
	copy(h[traceAt:], c.Trace[:])
	copy(h[idAt:], c.Span[:])
	binary.LittleEndian.PutUint64(h[startAt:], uint64(start))
	if parent.Trace == [16]byte{} {
		binary.LittleEndian.PutUint32(h[flagsAt:], spanFlags(trace.TraceFlags(c.Flags), false))
		return b[:at+parentAt-2]
	}
	binary.LittleEndian.PutUint32(h[flagsAt:], spanFlags(trace.TraceFlags(c.Flags), true))
	copy(h[parentAt:], parent.Span[:])
	return b
}

// putEnd enters the end of the span that span begins with.
func putEnd(span []byte, end int64) { binary.LittleEndian.PutUint64(span[endAt:], uint64(end)) }

// frame completes the span that begins at at and ends with b by its tag and length.
func frame(b []byte, at int) []byte {
	const tag = scopeSpans<<3 | 2
	n := len(b) - at - frameRoom
	var head [10]byte
	head[0] = tag
	k := 1 + binary.PutUvarint(head[1:], uint64(n))
	for len(b) < at+k+n { // longer than most
		b = append(b, 0)
	}
	if k != frameRoom {
		copy(b[at+k:], b[at+frameRoom:at+frameRoom+n])
	}
	copy(b[at:], head[:k])
	return b[:at+k+n]
}
