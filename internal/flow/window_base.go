package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Instant is a moment of event time: milliseconds since the Unix epoch. As text and in JSON it is RFC 3339 in UTC.
type Instant int64

// Time returns i as a time.Time in UTC.
func (i Instant) Time() time.Time { return time.UnixMilli(int64(i)).UTC() }

// instantLayout has milliseconds always, so that text sorts like time.
const instantLayout = "2006-01-02T15:04:05.000Z"

// bounded reports whether i is a moment that RFC 3339 can write.
func (i Instant) bounded() bool { return i >= minCalendar && i <= maxCalendar }

// String returns i in RFC 3339, "-∞" or "∞" for the ends of a window without any.
func (i Instant) String() string {
	switch {
	case i.bounded():
		return i.Time().Format(instantLayout)
	case i < 0:
		return "-∞"
	}
	return "∞"
}

// MarshalJSON writes a string, or null for the end of a window that has none.
func (i Instant) MarshalJSON() ([]byte, error) {
	if !i.bounded() {
		return []byte("null"), nil
	}
	return i.Time().AppendFormat(make([]byte, 0, 26), `"`+instantLayout+`"`), nil
}

// UnmarshalJSON reads RFC 3339; null leaves i alone.
func (i *Instant) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var t time.Time
	if err := json.Unmarshal(b, &t); err != nil {
		return fmt.Errorf("cannot read a moment in time: %w", err)
	}
	*i = Instant(t.UnixMilli())
	return nil
}

// Windowed is a result of one window and key. As a record it has the event time End-1ms, so that windows can follow windows.
type Windowed[K comparable, R any] struct {
	Key   K       `json:"key"`
	Start Instant `json:"start"` // null in JSON for a global window
	End   Instant `json:"end"`   // the first moment after the window
	Value R       `json:"value"`
}

// WindowParams are what makes a window operator.
type WindowParams[K comparable, T, A, R any] struct {
	Spec   *WindowSpec
	Key    func(T) K
	Agg    Aggregator[T, A, R]
	Sides  *Sides // LateTag is used
	Codecs *Codecs
}

// Check returns why keys or accumulators can't be kept in checkpoints, nil if they can.
func (p WindowParams[K, T, A, R]) Check() error {
	if _, err := newStateCodec[K](p.Codecs); err != nil {
		return fmt.Errorf("its keys: %w", err)
	}
	if _, err := accumulatorCodec(p.Agg, p.Codecs); err != nil {
		return fmt.Errorf("its accumulators: %w", err)
	}
	return nil
}

// windowBase is what window operators share. Owned by the task's goroutine.
type windowBase[K comparable, T, A, R any] struct {
	base
	rt      Runtime
	spec    WindowSpec
	key     func(T) K
	agg     Aggregator[T, A, R]
	out     Out[Windowed[K, R]]
	buf     *Buffer[Windowed[K, R]]
	keepKey keeper[K]
	keepAcc keeper[A]
	groups  *keyGroups[K]
	codec   Codec[A]
	dropped *Counter // late records
	table   windowTable

	wm     int64 // the watermark; by processing time, the clock less one
	lastWM int64 // the last watermark of the input but MaxTime
	nlate  int64

	restored bool // wm is what was restored

	tracer   *Tracer
	followed []followedRecord[K] // records that windows hold, for links
}

// windowTable is the part of a window operator that differs: how it holds accumulators.
type windowTable interface {
	// advance fires and drops what is due at watermark wm.
	advance(wm int64) error
	// due is the watermark at which advance has something to do.
	due() int64
	// opened is called once, after state was restored.
	opened()
}

func newWindowBase[K comparable, T, A, R any](p WindowParams[K, T, A, R], rt Runtime, outs []any) (windowBase[K, T, A, R], error) {
	out, err := outOf[Windowed[K, R]](outs[0])
	if err != nil {
		return windowBase[K, T, A, R]{}, err
	}
	groups, err := newKeyGroups[K](rt, p.Codecs)
	if err != nil {
		return windowBase[K, T, A, R]{}, err
	}
	codec, err := accumulatorCodec(p.Agg, p.Codecs)
	if err != nil {
		return windowBase[K, T, A, R]{}, err
	}
	_, ownCodec := p.Agg.(AccumulatorCodec[A])
	return windowBase[K, T, A, R]{
		base: newBase(rt, nil, p.Sides, outs), rt: rt, spec: *p.Spec, key: normalKey(p.Key), agg: p.Agg, out: out, buf: NewBuffer(out),
		keepKey: keeperOf[K](p.Codecs, true), keepAcc: keeperOf[A](p.Codecs, !ownCodec), groups: groups, codec: codec, wm: MinTime, lastWM: MinTime,
	}, nil
}

// Open implements Operator.
func (o *windowBase[K, T, A, R]) Open(context.Context) error {
	o.dropped = o.rt.Counter("late records")
	o.tracer = TracerOf(o.rt)
	o.table.opened()
	o.arm()
	return nil
}

// begin prepares for a batch and returns its event times, nil if all its records count at the time now.
func (o *windowBase[K, T, A, R]) begin(b *Batch[T]) (times []int64, now int64, err error) {
	if o.tracer.Active() {
		defer func() { o.follow(b.Recs, times, now, err) }()
	}
	switch {
	case o.spec.Processing:
		return nil, max(o.rt.Now(), plus(o.wm, 1)), nil
	case o.spec.Kind == GlobalWindow:
		return nil, 0, nil
	case b.Times == nil:
		return nil, 0, fmt.Errorf("operator %s cuts windows by event time, but its records have none: give the stream a Watermark, or window by ProcessingTime", o.node.at())
	}
	return b.Times, 0, nil
}

// finish ends a batch.
func (o *windowBase[K, T, A, R]) finish() error {
	if o.nlate > 0 {
		o.dropped.Add(o.nlate)
		o.nlate = 0
	}
	o.arm()
	return o.flush()
}

// arm asks for the timer that processing time windows need next.
func (o *windowBase[K, T, A, R]) arm() {
	if o.spec.Processing {
		o.rt.SetTimer(plus(o.table.due(), 1))
	}
}

func (o *windowBase[K, T, A, R]) flush() error {
	if err := o.buf.Flush(); err != nil {
		return err
	}
	return o.sides.Flush()
}

// tooLate counts a record that no window waits for, and hands it to the side output.
func (o *windowBase[K, T, A, R]) tooLate(rec T, t int64) error {
	o.nlate++
	o.pushing = true
	err := EmitSide(o.sides, LateTag, rec, t, true)
	o.pushing = false
	return err
}

// emit puts out the result of a window, as a record of time t.
func (o *windowBase[K, T, A, R]) emit(key K, start, end int64, acc A, t int64, timed bool) error {
	if len(o.followed) > 0 && !o.tracer.Active() {
		if links := o.links(key, start, end); len(links) > 0 {
			return o.emitFollowed(links, key, start, end, acc, t, timed)
		}
	}
	w := Windowed[K, R]{Key: key, Start: Instant(start), End: Instant(end), Value: o.agg.Result(acc)}
	o.pushing = true
	err := o.buf.Add(w, t, timed)
	o.pushing = false
	return err
}

// Control implements Out. What is due fires before c goes on.
func (o *windowBase[K, T, A, R]) Control(c Control) error {
	switch c.Kind {
	case Watermark:
		if err := o.watermark(c.Time); err != nil {
			return err
		}
	case End:
		if err := o.fireUpTo(MaxTime); err != nil {
			return err
		}
	}
	if err := o.flush(); err != nil {
		return err
	}
	if err := o.out.Control(c); err != nil {
		return err
	}
	return o.sides.Control(c)
}

func (o *windowBase[K, T, A, R]) watermark(t int64) error {
	if t != MaxTime {
		o.lastWM = max(o.lastWM, t)
	}
	if t <= o.wm || o.spec.Processing && t != MaxTime {
		return nil
	}
	return o.fireUpTo(t)
}

// Timer implements Operator.
func (o *windowBase[K, T, A, R]) Timer(now int64) error {
	if !o.spec.Processing || now-1 <= o.wm {
		return nil
	}
	if err := o.fireUpTo(now - 1); err != nil {
		return err
	}
	o.arm()
	return o.flush()
}

// fireUpTo advances the watermark.
func (o *windowBase[K, T, A, R]) fireUpTo(wm int64) (err error) {
	defer func() {
		if o.pushing {
			return
		}
		if p := recover(); p != nil {
			err = callError(o.node, "window", p)
		}
	}()
	if wm <= o.wm && wm != MaxTime {
		return nil
	}
	o.wm = wm
	return o.table.advance(wm)
}

// never is a watermark that doesn't come before the end.
const never = math.MaxInt64
