package wire

import "encoding/binary"

// MaxNote is the longest note of a Trace frame.
const MaxNote = 512

const traceFixed = 24

// Traced is the payload of Trace: what the producer's end knows of the data frame that follows directly. Times are
// nanoseconds since the Unix epoch by the producer's clock.
//
//	 0  i64  when it was put
//	 8  i64  when there was credit for it
//	16  i64  when its write began
//	24  1 to MaxNote bytes: the note
type Traced struct {
	Put, Credited, Written int64
	Note                   []byte // of the parsed payload
}

// AppendTrace appends a whole Trace frame for data frame seq of a channel.
func AppendTrace(b []byte, channel, seq uint32, t Traced) []byte {
	note := t.Note[:min(len(t.Note), MaxNote)]
	b = AppendHeader(b, Header{Type: Trace, Channel: channel, Seq: seq, Length: uint32(traceFixed + len(note))})
	for _, v := range [...]int64{t.Put, t.Credited, t.Written} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return append(b, note...)
}

// ParseTrace reads the payload of a Trace frame.
func ParseTrace(b []byte) (Traced, error) {
	switch n := len(b) - traceFixed; {
	case n < 1:
		return Traced{}, ErrShort
	case n > MaxNote:
		return Traced{}, ErrFrame
	}
	at := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[i:])) }
	return Traced{Put: at(0), Credited: at(8), Written: at(16), Note: b[traceFixed:]}, nil
}

// Clock is the payload of a Keepalive between ends that take traces: a question, of which Asked alone is sent, or the answer to one.
//
//	 0  i64  when the question was sent, by the clock of who asks
//	 8  i64  when it came, by the clock of who answers
//	16  i64  when the answer was sent, by the same
type Clock struct {
	Asked, Heard, Answered int64
	Answer                 bool
}

const (
	questionSize = 8
	answerSize   = 24
)

// AppendClock appends a whole Keepalive frame with c.
func AppendClock(b []byte, c Clock) []byte {
	h := Header{Type: Keepalive, Length: questionSize}
	if c.Answer {
		h.Length = answerSize
	}
	b = AppendHeader(b, h)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Asked))
	if c.Answer {
		b = binary.LittleEndian.AppendUint64(b, uint64(c.Heard))
		b = binary.LittleEndian.AppendUint64(b, uint64(c.Answered))
	}
	return b
}

// ParseClock reads the payload of a Keepalive that isn't empty. What a later version may append to an answer is ignored.
func ParseClock(b []byte) (Clock, error) {
	if len(b) < questionSize || len(b) > questionSize && len(b) < answerSize {
		return Clock{}, ErrShort
	}
	c := Clock{Asked: int64(binary.LittleEndian.Uint64(b))}
	if len(b) >= answerSize {
		c.Answer = true
		c.Heard, c.Answered = int64(binary.LittleEndian.Uint64(b[8:])), int64(binary.LittleEndian.Uint64(b[16:]))
	}
	return c, nil
}
