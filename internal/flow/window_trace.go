package flow

import (
	"math/rand/v2"
	"slices"
)

// followedRecord is a record that was followed into a window, for the link from the window's result.
type followedRecord[K comparable] struct {
	key  K
	time int64
	span TraceContext
}

// maxLinks bounds the links of a result, and maxRemembered the records that a window operator remembers for them.
const (
	maxLinks      = 64
	maxRemembered = 256
)

// follow remembers the records of a batch that is being followed. All are at now where times is nil.
func (o *windowBase[K, T, A, R]) follow(recs []T, times []int64, now int64, err error) {
	c, ok := o.tracer.Current()
	if err != nil || !ok || !c.Sampled() {
		return
	}
	defer func() { _ = recover() }() // of the author's function: it will be called again, and judged
	for i := range recs[:min(len(recs), maxFollowed)] {
		f := followedRecord[K]{key: o.key(recs[i]), time: now, span: c}
		if times != nil {
			f.time = times[i]
		}
		o.keepKey.keep(&f.key)
		if len(o.followed) == maxRemembered { // whichever: the oldest are those of the windows that fire next
			i := rand.IntN(maxRemembered)
			o.followed = slices.Delete(o.followed, i, i+1)
		}
		o.followed = append(o.followed, f)
	}
}

// links takes the spans of the followed records that are in a window which fires.
func (o *windowBase[K, T, A, R]) links(key K, start, end int64) (links []TraceContext) {
	kept := o.followed[:0]
	for _, f := range o.followed {
		in := f.key == key && (o.spec.Kind == GlobalWindow || f.time >= start && f.time < end)
		if in {
			links = append(links, f.span)
		}
		if !in || o.spec.Kind == SlidingWindow && f.time >= end+o.spec.Slide.Milliseconds()-o.spec.Size.Milliseconds() {
			kept = append(kept, f)
		}
	}
	clear(o.followed[len(kept):])
	o.followed = kept
	return links[max(0, len(links)-maxLinks):]
}

// emitFollowed is emit for a result with links to the records that it is made of.
func (o *windowBase[K, T, A, R]) emitFollowed(links []TraceContext, key K, start, end int64, acc A, t int64, timed bool) error {
	w := Windowed[K, R]{Key: key, Start: Instant(start), End: Instant(end), Value: o.agg.Result(acc)}
	o.pushing = true
	defer func() { o.pushing = false }()
	if err := o.buf.Flush(); err != nil {
		return err
	}
	o.tracer.begin(o.tracer.f.Fire("window", links))
	o.tracer.Attr(TraceAttr{"heddle.window.start", Instant(start).String()}, TraceAttr{"heddle.window.end", Instant(end).String()})
	err := o.buf.Add(w, t, timed)
	if err == nil {
		err = o.buf.Flush()
	}
	return o.tracer.end(err)
}
