package flow

import "unsafe"

// fixedEncoder copies records of a fixed type into segments, whose memory it uses as a []T.
type fixedEncoder[T any] struct {
	cfg   *WriterConfig
	l     *layout
	chans []fixedChan[T]
	open  int // channels whose segment holds a record
	frags fragmenter
}

// fixedChan is the open segment of one channel. There is one exactly while it holds a record.
type fixedChan[T any] struct {
	recs  []T     // in the segment; its capacity is what fits
	times []int64 // in the segment, behind room for all records; nil without times
	seg   []byte
}

func newFixedEncoder[T any](cfg *WriterConfig, l *layout) *fixedEncoder[T] {
	return &fixedEncoder[T]{cfg: cfg, l: l, chans: make([]fixedChan[T], cfg.Channels)}
}

func (e *fixedEncoder[T]) pending() int { return e.open }

// begin opens a segment for ch. Where not even one record fits, c stays as it is and the segment is returned.
func (e *fixedEncoder[T]) begin(c *fixedChan[T], ch int, timed bool) (small []byte, err error) {
	seg, err := e.cfg.Segments.Get(ch)
	if err != nil {
		return nil, err
	}
	room, size := len(seg)-headBytes, int(e.l.size)
	n := room / max(1, size)
	if timed {
		n = room / (size + 8)
		for n > 0 && pad8(n*size)+8*n > room {
			n--
		}
	}
	if size == 0 {
		n = min(n, maxEmpty)
	}
	if n < 1 {
		return seg, nil
	}
	c.seg = seg
	c.recs = unsafe.Slice((*T)(unsafe.Pointer(&seg[headBytes])), n)[:0]
	c.times = nil
	if timed {
		c.times = unsafe.Slice((*int64)(unsafe.Pointer(&seg[headBytes+pad8(n*size)])), n)
	}
	e.open++
	return nil, nil
}

// ready makes the open segment of ch take records with or without times. It returns what begin does.
func (e *fixedEncoder[T]) ready(c *fixedChan[T], ch int, timed bool) (small []byte, err error) {
	if len(c.recs) > 0 {
		if timed == (c.times != nil) {
			return nil, nil
		}
		if err := e.put(c, ch); err != nil {
			return nil, err
		}
	}
	return e.begin(c, ch, timed)
}

// put sends the open segment of ch.
func (e *fixedEncoder[T]) put(c *fixedChan[T], ch int) error {
	n := len(c.recs)
	h := head{kind: kindRecords, print: e.l.print, count: uint32(n)}
	size := headBytes + n*int(e.l.size)
	if c.times != nil {
		h.flags = flagTimes
		end := pad8(size)
		clear(c.seg[size:end])
		copy(unsafe.Slice((*int64)(unsafe.Pointer(&c.seg[end])), n), c.times[:n])
		size = end + 8*n
	}
	h.put(c.seg)
	*c = fixedChan[T]{}
	e.open--
	e.cfg.Bytes.Add(int64(size))
	return e.cfg.Segments.Put(ch, size)
}

func (e *fixedEncoder[T]) fill(ch int, b Batch[T]) (int, bool, error) {
	c := &e.chans[ch]
	small, err := e.ready(c, ch, b.Times != nil)
	if err != nil {
		return 0, false, err
	}
	if small != nil {
		return 1, true, e.large(ch, small, b)
	}
	old := len(c.recs)
	n := min(len(b.Recs), cap(c.recs)-old)
	c.recs = append(c.recs, b.Recs[:n]...)
	if b.Times != nil {
		copy(c.times[old:], b.Times[:n])
	}
	if len(c.recs) < cap(c.recs) {
		return n, false, nil
	}
	return n, true, e.put(c, ch)
}

func (e *fixedEncoder[T]) followed(ch int, b Batch[T]) error {
	c := &e.chans[ch]
	if len(c.recs) > 0 && ((b.Times != nil) != (c.times != nil) || e.cfg.full(ch)) {
		if err := e.put(c, ch); err != nil {
			return err
		}
	}
	e.cfg.wrote(ch, len(c.recs)) // a segment with records has room for one more
	_, _, err := e.fill(ch, b)
	return err
}

// large sends the first record of b, which does not fit seg, the open segment of ch.
func (e *fixedEncoder[T]) large(ch int, seg []byte, b Batch[T]) error {
	var t int64
	if b.Times != nil {
		t = b.Times[0]
	}
	return e.frags.sendWhole(e.cfg.Segments, ch, seg, e.l.print, memory(unsafe.Pointer(&b.Recs[0]), e.l.size), t, b.Times != nil, e.cfg.Bytes)
}

func (e *fixedEncoder[T]) scatter(b Batch[T], chs []uint16) error {
	if b.Times != nil {
		return e.scatterTimed(b, chs)
	}
	chans := e.chans
	for i, ch := range chs {
		c := &chans[ch]
		n := len(c.recs)
		if n == 0 || c.times != nil {
			if err := e.fillOne(b, i, int(ch)); err != nil {
				return err
			}
			continue
		}
		recs := c.recs[:n+1]
		recs[n] = b.Recs[i]
		c.recs = recs
		if n+1 == cap(recs) {
			if err := e.put(c, int(ch)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *fixedEncoder[T]) scatterTimed(b Batch[T], chs []uint16) error {
	for i, ch := range chs {
		c := &e.chans[ch]
		n := len(c.recs)
		if c.times == nil {
			if err := e.fillOne(b, i, int(ch)); err != nil {
				return err
			}
			continue
		}
		recs := c.recs[:n+1]
		recs[n], c.times[n] = b.Recs[i], b.Times[i]
		c.recs = recs
		if n+1 == cap(recs) {
			if err := e.put(c, int(ch)); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillOne puts record i of b into ch the slow way.
func (e *fixedEncoder[T]) fillOne(b Batch[T], i, ch int) error {
	one := Batch[T]{Recs: b.Recs[i : i+1]}
	if b.Times != nil {
		one.Times = b.Times[i : i+1]
	}
	_, _, err := e.fill(ch, one)
	return err
}

func (e *fixedEncoder[T]) flush(ch int) (bool, error) {
	c := &e.chans[ch]
	if len(c.recs) == 0 {
		return false, nil
	}
	return true, e.put(c, ch)
}
