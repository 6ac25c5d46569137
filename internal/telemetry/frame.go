package telemetry

import "encoding/binary"

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

// putHead enters what a span begins with into a copy of the template.
func putHead(h []byte, r *record) {
	h = h[:headSize]
	copy(h[traceAt:], r.trace[:])
	copy(h[idAt:], r.span[:])
	binary.LittleEndian.PutUint32(h[flagsAt:], r.flagsOf())
	binary.LittleEndian.PutUint64(h[startAt:], uint64(r.start))
	binary.LittleEndian.PutUint64(h[endAt:], uint64(r.end))
	copy(h[parentAt:], r.parent[:])
}

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
