package telemetry

import "go.opentelemetry.io/otel/trace"

// record is a span as a Trail notes it. To write its message is left to the goroutine that exports it, which does so for a whole batch: a task
// that follows a record now and then would find the code and data for it in no cache.
type record struct {
	trace        [16]byte
	span, parent [8]byte
	flags        byte
	root         bool  // no parent
	whole        bool  // the SDK made it: its bytes are the field of a scope
	start, end   int64 // ns since the Unix epoch
	fixed        *fixed
	numbers      [maxNumbers]int64 // those that fixed has the keys of
	parts        *Parts            // nil: it has none
	cuts         [Phases - 1]int64 // where its parts but the first begin
	more         uint32            // bytes of its message beside those
}

// Parts are what the spans have in common into which a span is cut, in order of time.
type Parts [Phases]Fixed

// maxNumbers is how many numbers a span may have: see Fixed.With.
const maxNumbers = 7

// spans is how many spans it comes to.
func (r *record) spans() int {
	n := 1
	if r.parts != nil {
		for p := range Phases {
			if from, to := r.part(p); from != to {
				n++
			}
		}
	}
	return n
}

// part is from when to when part p lasts.
func (r *record) part(p int) (from, to int64) {
	from, to = r.start, r.end
	if p > 0 {
		from = r.cuts[p-1]
	}
	if p < Phases-1 {
		to = r.cuts[p]
	}
	return from, to
}

// append appends the fields of a scope that it comes to; more are its bytes.
func (r *record) append(b, more []byte) []byte {
	if r.whole {
		return append(b, more...)
	}
	at := len(b)
	b = r.appendHead(b)
	if r.fixed != nil {
		b = append(b, r.fixed.made...)
		for i, n := range r.fixed.numbers {
			b = n.append(b, r.numbers[i])
		}
	}
	b = frame(append(b, more...), at)
	if r.parts == nil {
		return b
	}
	part := record{trace: r.trace, parent: r.span, flags: r.flags}
	for p := range Phases {
		from, to := r.part(p)
		if from == to {
			continue // there was no such wait
		}
		part.span, part.start, part.end, part.fixed = newSpanID(), from, max(from, to), r.parts[p].fixed
		b = part.append(b, nil)
	}
	return b
}

// appendHead appends what a span begins with.
func (r *record) appendHead(b []byte) []byte {
	at := len(b)
	b = append(b, headTemplate...)
	putHead(b[at:], r)
	if r.root {
		return b[:at+parentAt-2]
	}
	return b
}

// spool is spans that wait, one after the other.
type spool struct {
	records []record
	more    []byte // of the records, one's after the other's
	n       int    // spans that they come to
}

func (s *spool) add(o *spool) {
	s.records = append(s.records, o.records...)
	s.more = append(s.more, o.more...)
	s.n += o.n
}

func (s *spool) reset() { s.records, s.more, s.n = s.records[:0], s.more[:0], 0 }

// spoolReader reads a spool as messages.
type spoolReader struct {
	*spool
	at, moreAt int
}

// next writes the next spans into b, which it overwrites: as many as limit bytes hold, and at least a record; n is how many. It is 0 after the last.
func (s *spoolReader) next(b []byte, limit int) (spans []byte, n int) {
	b = b[:0]
	for s.at < len(s.records) {
		r, was := &s.records[s.at], len(b)
		more := s.more[s.moreAt : s.moreAt+int(r.more)]
		if b = r.append(b, more); was > 0 && len(b) > limit {
			return b[:was], n
		}
		s.at++
		s.moreAt += len(more)
		n += r.spans()
	}
	return b, n
}

// flagsOf are the flags of the span's message.
func (r *record) flagsOf() uint32 { return spanFlags(trace.TraceFlags(r.flags), !r.root) }
