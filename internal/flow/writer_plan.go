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
		if c.count > 0 && c.timed == timed && !e.l.custom {
			if i += e.addMany(c, tail(b, i)); i == len(b.Recs) {
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
	if !c.takes(size, timed) || c.count > 0 && e.cfg.full(ch) {
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
		if c.count > 0 && c.timed == timed && !e.l.custom {
			if end := e.l.put(c.room(timed), len(c.seg), unsafe.Pointer(&b.Recs[i])); end >= 0 {
				c.grow(end, t, timed)
				continue
			}
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

// addMany adds as many of b to the segment of c, which has records with or without times like b, as fit, and returns how many.
func (e *planEncoder[T]) addMany(c *planChan, b Batch[T]) int {
	if b.Times == nil {
		n, end := 0, len(c.seg)
		switch room := c.seg[:cap(c.seg)]; e.l.plain {
		case opString:
			n, end = putStrings(room, end, sameMemory[string](b.Recs))
		case opBytes:
			n, end = putBytes(room, end, sameMemory[[]byte](b.Recs))
		default:
			for ; n < len(b.Recs); n++ {
				next := e.l.put(room, end, unsafe.Pointer(&b.Recs[n]))
				if next < 0 {
					break
				}
				end = next
			}
		}
		c.seg, c.count = c.seg[:end], c.count+n
		return n
	}
	for i := range b.Recs {
		end := e.l.put(c.room(true), len(c.seg), unsafe.Pointer(&b.Recs[i]))
		if end < 0 {
			return i
		}
		c.grow(end, b.Times[i], true)
	}
	return len(b.Recs)
}

// size is the encoded size of rec. Where only encoding tells, scratch holds the encoding.
func (e *planEncoder[T]) size(rec *T) (int, error) {
	if !e.l.custom {
		return e.l.encodedSize(unsafe.Pointer(rec)), nil
	}
	var err error
	if e.scratch, err = e.l.append(e.scratch[:0], unsafe.Pointer(rec)); err != nil {
		return 0, &DataError{fmt.Errorf("cannot encode record: %w; record: %s", err, show(*rec, maxShown)), "cannot encode record: " + notLogged}
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

// sameMemory is recs, whose type has S for its underlying one, as that.
func sameMemory[S, T any](recs []T) []S {
	return unsafe.Slice((*S)(unsafe.Pointer(unsafe.SliceData(recs))), len(recs))
}

// room is the segment's memory as far as it may be filled by another record.
func (c *planChan) room(timed bool) []byte {
	end := cap(c.seg)
	if timed {
		end = max(len(c.seg), end&^7-8*(c.count+1))
	}
	return c.seg[:end]
}

// grow enters a record that was put behind the others and ends at end.
func (c *planChan) grow(end int, t int64, timed bool) {
	c.seg = c.seg[:end]
	if timed {
		*c.time(c.count) = t
	}
	c.count++
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
