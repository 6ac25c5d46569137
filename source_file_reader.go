package heddle

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/heddle-stream/heddle/internal/flow"
)

const (
	fileChunk = 32 << 10 // read at once
	maxLine   = 64 << 20 // longer lines are an error
)

// fileReader reads pieces of files one after the other. Owned by the task's goroutine.
type fileReader struct {
	want  flow.MessageFields
	ahead func(piece) (*readAhead, error) // for files that are not on this host
	queue []flow.Split
	last  bool // no more splits

	cur *openPiece
	m   Messages
}

// openPiece is the piece being read.
type openPiece struct {
	piece
	id   string
	f    io.Closer
	in   io.Reader
	at   int64  // offset of buf[0]
	buf  []byte // read but not emitted: whole lines were
	eof  bool
	skip bool // the first line that begins in the piece is yet to be found
	slow bool // in may have nothing for now
	dry  bool // in has nothing for now
}

// AddSplits implements flow.MessageReader.
func (r *fileReader) AddSplits(splits []flow.Split) error {
	r.queue = append(r.queue, splits...)
	return nil
}

// NoMoreSplits implements flow.MessageReader.
func (r *fileReader) NoMoreSplits() error { r.last = true; return nil }

// Splits implements flow.MessageReader.
func (r *fileReader) Splits() []flow.SplitStatus {
	if r.cur == nil {
		return nil
	}
	return []flow.SplitStatus{{ID: r.cur.id, Position: r.cur.at, End: r.cur.To}}
}

// Close implements flow.MessageReader.
func (r *fileReader) Close() error {
	if r.cur == nil {
		return nil
	}
	err := r.cur.f.Close()
	r.cur = nil
	return err
}

// Poll implements flow.MessageReader: it reads a chunk and emits its lines.
func (r *fileReader) Poll(emit flow.EmitMessages) (flow.SourceStatus, error) {
	if r.cur == nil {
		if len(r.queue) == 0 {
			if r.last {
				return flow.SourceEnd, nil
			}
			return flow.SourceWait, nil
		}
		p, err := r.openSplit(r.queue[0])
		if err != nil {
			return flow.SourceMore, err
		}
		r.cur, r.queue = p, r.queue[1:]
	}
	p := r.cur
	err := p.skipLine()
	if err == nil && !p.skip {
		err = p.read()
	}
	if err != nil {
		return flow.SourceMore, fmt.Errorf("cannot read %s: %w", p.Path, err)
	}
	if p.skip {
		return flow.SourceWait, nil
	}
	r.m.Reset()
	r.m.Topic, r.m.Lines = p.Path, true
	used, ended := p.lines(&r.m, r.want)
	if p.dry && used == 0 && !ended {
		return flow.SourceWait, nil
	}
	if ended {
		if err := r.Close(); err != nil {
			return flow.SourceMore, fmt.Errorf("cannot close %s: %w", p.Path, err)
		}
	}
	if err := emit(p.id, &r.m, ended); err != nil {
		return flow.SourceMore, err
	}
	p.buf = p.buf[:copy(p.buf, p.buf[used:])]
	p.at += int64(used)
	return flow.SourceMore, nil
}

// openSplit opens the file of a split a byte before what is to be read.
func (r *fileReader) openSplit(s flow.Split) (*openPiece, error) {
	p := &openPiece{id: s.ID}
	if err := json.Unmarshal(s.State, &p.piece); err != nil {
		return nil, fmt.Errorf("cannot read state of split %s: %w", s.ID, err)
	}
	if p.skip = p.From > 0; p.skip { // the line that the piece begins within belongs to the piece before
		p.at = p.From - 1
	}
	if compressed(p.Path) {
		p.To = 1<<63 - 1
	}
	if schemeOf(p.Path) == "" {
		return p, p.openLocal()
	}
	in, err := r.ahead(p.piece)
	if err != nil {
		return nil, err
	}
	p.f, p.in, p.slow = in, in, true
	return p, nil
}

func (p *openPiece) openLocal() (err error) {
	f, err := os.Open(p.Path)
	if err != nil {
		return fmt.Errorf("cannot read file: %w", err)
	}
	p.f, p.in = f, f
	if compressed(p.Path) {
		p.in, err = gzip.NewReader(f)
	} else if p.skip {
		_, err = f.Seek(p.at, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("cannot read %s: %w", p.Path, err)
	}
	return nil
}

// skipLine moves to the first line that begins at From or after it. skip stays set if it did not get there for now.
func (p *openPiece) skipLine() error {
	for p.skip {
		if err := p.read(); err != nil {
			return err
		}
		used := len(p.buf)
		i := bytes.IndexByte(p.buf, '\n')
		if i >= 0 {
			used = i + 1
		}
		p.buf = p.buf[:copy(p.buf, p.buf[used:])]
		p.at += int64(used)
		p.skip = i < 0 && !p.eof
		if p.dry {
			return nil
		}
	}
	return nil
}

// read fills buf by at most a chunk.
func (p *openPiece) read() error {
	p.dry = false
	if p.eof {
		return nil
	}
	if len(p.buf) > maxLine {
		return fmt.Errorf("the line at offset %d is longer than %d bytes", p.at, maxLine)
	}
	n := len(p.buf)
	if cap(p.buf)-n < fileChunk {
		p.buf = append(make([]byte, 0, 2*cap(p.buf)+fileChunk), p.buf...)
	}
	for end := n + fileChunk; n < end; {
		k, err := p.in.Read(p.buf[n:end:end])
		n += k
		p.buf = p.buf[:n]
		if err == io.EOF {
			p.eof = true
			return nil
		}
		if err != nil {
			return err
		}
		if k == 0 && p.slow {
			p.dry = true
			return nil
		}
	}
	return nil
}

// lines describes the whole lines in buf that belong to the piece, and says how many bytes they take and whether that was the last of it.
func (p *openPiece) lines(m *Messages, want flow.MessageFields) (used int, ended bool) {
	m.Buf = p.buf
	for used < len(p.buf) {
		if p.at+int64(used) >= p.To {
			return used, true
		}
		i := bytes.IndexByte(p.buf[used:], '\n')
		end, next := used+i, used+i+1
		if i < 0 {
			if !p.eof {
				return used, false
			}
			end, next = len(p.buf), len(p.buf)
		}
		if end > used && p.buf[end-1] == '\r' {
			end--
		}
		m.Values = append(m.Values, flow.Span{Off: int32(used), Len: int32(end - used)})
		if want&flow.FieldOffset != 0 {
			m.Offsets = append(m.Offsets, p.at+int64(used))
		}
		used = next
	}
	return used, p.eof || p.at+int64(used) >= p.To
}
