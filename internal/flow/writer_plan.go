package flow

import (
	"fmt"
	"unsafe"
)

// planEncoder encodes records of a type that isn't fixed into segments.
type planEncoder[T any] struct {
	cfg     *WriterConfig
	l       *layout
	chans   []planChan
	open    int // channels whose segment holds a record
	scratch []byte
	frags   fragmenter
}

// planChan is the open segment of one channel. There is one exactly while it holds a record.
//
// Times are gathered at the end of the segment, the first one last, and moved behind the records when it is sent.
type planChan struct {
	seg   []byte // its length is where the records end so far, its capacity the room
	count int
	timed bool
}

func newPlanEncoder[T any](cfg *WriterConfig, l *layout) *planEncoder[T] {
	return &planEncoder[T]{cfg: cfg, l: l, chans: make([]planChan, cfg.Channels)}
}

func (e *planEncoder[T]) pending() int { return e.open }

func (e *planEncoder[T]) fill(ch int, b Batch[T]) (int, bool, error) {
	c, timed := &e.chans[ch], b.Times != nil
	var t int64
	for i := 0; i < len(b.Recs); i++ {
		if e.l.plain && c.count > 0 && !timed && !c.timed {
			if i += c.addStrings(stringsOf(b.Recs[i:])); i == len(b.Recs) {
				break
			}
		}
		if timed {
			t = b.Times[i]
		}
		size, err := e.size(&b.Recs[i])
		if err != nil {
			return 0, false, err
		}
		if !c.takes(size, timed) {
			return i, true, e.put(c, ch)
		}
		if err := e.add(c, ch, &b.Recs[i], size, t, timed); err != nil {
			return 0, false, err
		}
	}
	return len(b.Recs), false, nil
}

func (e *planEncoder[T]) followed(ch int, b Batch[T]) error {
	c, timed := &e.chans[ch], b.Times != nil
	var t int64
	if timed {
		t = b.Times[0]
	}
	size, err := e.size(&b.Recs[0])
	if err != nil {
		return err
	}
	if !c.takes(size, timed) {
		if err := e.put(c, ch); err != nil {
			return err
		}
	}
	e.cfg.wrote(ch, c.count)
	return e.add(c, ch, &b.Recs[0], size, t, timed)
}

func (e *planEncoder[T]) scatter(b Batch[T], chs []uint16) error {
	timed := b.Times != nil
	var t int64
	for i, ch := range chs {
		c := &e.chans[ch]
		if timed {
			t = b.Times[i]
		}
		size, err := e.size(&b.Recs[i])
		if err != nil {
			return err
		}
		if !c.takes(size, timed) {
			if err := e.put(c, int(ch)); err != nil {
				return err
			}
		}
		if err := e.add(c, int(ch), &b.Recs[i], size, t, timed); err != nil {
			return err
		}
	}
	return nil
}

// size is the encoded size of rec. Where only encoding tells, scratch holds the encoding.
func (e *planEncoder[T]) size(rec *T) (int, error) {
	if !e.l.custom {
		return e.l.encodedSize(unsafe.Pointer(rec)), nil
	}
	var err error
	if e.scratch, err = e.l.append(e.scratch[:0], unsafe.Pointer(rec)); err != nil {
		return 0, fmt.Errorf("cannot encode record: %w; record: %s", err, show(*rec, maxShown))
	}
	return len(e.scratch), nil
}

// add puts rec, whose encoded size was just found, into ch, whose segment takes it or isn't open.
func (e *planEncoder[T]) add(c *planChan, ch int, rec *T, size int, t int64, timed bool) error {
	if c.count == 0 {
		seg, err := e.cfg.Segments.Get(ch)
		if err != nil {
			return err
		}
		if len(seg) < headBytes {
			return fmt.Errorf("cannot send records in segments of %d bytes", len(seg))
		}
		c.seg, c.timed = seg[:headBytes:len(seg)], timed
		if !c.fits(size, timed) {
			c.seg = nil
			return e.large(ch, seg, unsafe.Pointer(rec), t, timed)
		}
		e.open++
	}
	if e.l.custom {
		c.seg = append(c.seg, e.scratch...)
	} else {
		c.seg, _ = e.l.append(c.seg, unsafe.Pointer(rec))
	}
	if timed {
		*c.time(c.count) = t
	}
	c.count++
	return nil
}

// stringsOf is recs, whose type is a string type, as strings.
func stringsOf[T any](recs []T) []string {
	return unsafe.Slice((*string)(unsafe.Pointer(unsafe.SliceData(recs))), len(recs))
}

// addStrings adds as many of recs as fit the segment and returns how many. It is add for the most frequent type, without times.
func (c *planChan) addStrings(recs []string) int {
	seg := c.seg
	for i, s := range recs {
		if len(seg)+uvarintLen(len(s))+len(s) > cap(seg) {
			c.seg, c.count = seg, c.count+i
			return i
		}
		seg = append(appendLen(seg, len(s)), s...)
	}
	c.seg, c.count = seg, c.count+len(recs)
	return len(recs)
}

// takes reports whether a record can be added without sending what is there.
func (c *planChan) takes(size int, timed bool) bool {
	return c.count == 0 || c.timed == timed && c.fits(size, timed)
}

// fits reports whether the segment takes another record.
func (c *planChan) fits(size int, timed bool) bool {
	n := len(c.seg) + size
	if timed {
		n = pad8(n) + 8*(c.count+1)
	}
	return n <= cap(c.seg)
}

// time is where the time of record i is gathered.
func (c *planChan) time(i int) *int64 {
	end := cap(c.seg) &^ 7
	return (*int64)(unsafe.Pointer(&c.seg[:cap(c.seg)][end-8*(i+1)]))
}

// put sends the open segment of ch.
func (e *planEncoder[T]) put(c *planChan, ch int) error {
	n := len(c.seg)
	h := head{kind: kindRecords, print: e.l.print, count: uint32(c.count)}
	if c.timed {
		h.flags = flagTimes
		n = c.placeTimes()
	}
	h.put(c.seg)
	*c = planChan{}
	e.open--
	e.cfg.Bytes.Add(int64(n))
	return e.cfg.Segments.Put(ch, n)
}

// placeTimes moves the times behind the records, in order, and returns where they end.
func (c *planChan) placeTimes() int {
	all := c.seg[:cap(c.seg)]
	at := pad8(len(c.seg))
	gathered := unsafe.Slice(c.time(c.count-1), c.count)
	placed := unsafe.Slice((*int64)(unsafe.Pointer(&all[at])), c.count)
	clear(all[len(c.seg):at])
	copy(placed, gathered) // they may overlap
	for i, j := 0, len(placed)-1; i < j; i, j = i+1, j-1 {
		placed[i], placed[j] = placed[j], placed[i]
	}
	return at + 8*c.count
}

// large sends a record that does not fit seg, the open segment of ch.
func (e *planEncoder[T]) large(ch int, seg []byte, p unsafe.Pointer, t int64, timed bool) error {
	rec := e.scratch
	if !e.l.custom {
		rec, _ = e.l.append(make([]byte, 0, e.l.encodedSize(p)), p)
	}
	return e.frags.sendWhole(e.cfg.Segments, ch, seg, e.l.print, rec, t, timed, e.cfg.Bytes)
}

func (e *planEncoder[T]) flush(ch int) (bool, error) {
	c := &e.chans[ch]
	if c.count == 0 {
		return false, nil
	}
	return true, e.put(c, ch)
}
