package batch

import "slices"

// Transaction is one aborted transaction as a fetch response lists it.
type Transaction struct {
	ProducerID  int64
	FirstOffset int64
}

// Aborted tells which batches of one partition's fetch response belong to aborted transactions.
// Visible must see the batches in order.
type Aborted struct {
	coming []Transaction // not yet begun, by first offset
	open   []int64       // producer ids of those begun and not ended; few
}

// Reset begins a response with its list of aborted transactions, in any order. The list is kept.
func (a *Aborted) Reset(txns []Transaction) {
	slices.SortFunc(txns, func(x, y Transaction) int {
		switch {
		case x.FirstOffset < y.FirstOffset:
			return -1
		case x.FirstOffset > y.FirstOffset:
			return 1
		}
		return 0
	})
	a.coming, a.open = txns, a.open[:0]
}

// Visible reports whether a reader of committed data may see the records of the batch. records are those of
// a control batch, and are not looked at for others.
func (a *Aborted) Visible(h *Header, records []byte) bool {
	for len(a.coming) > 0 && a.coming[0].FirstOffset < h.NextOffset() {
		if id := a.coming[0].ProducerID; !slices.Contains(a.open, id) {
			a.open = append(a.open, id)
		}
		a.coming = a.coming[1:]
	}
	if h.Control() {
		if k, ok := Marker(records); ok && k == Abort {
			if i := slices.Index(a.open, h.ProducerID); i >= 0 {
				a.open = slices.Delete(a.open, i, i+1)
			}
		}
		return false
	}
	return !h.Transactional() || !slices.Contains(a.open, h.ProducerID)
}

// MarkerKind is what a control batch says of its producer's transaction.
type MarkerKind int16

// The markers; other numbers exist and mean nothing to readers.
const (
	Abort  MarkerKind = 0
	Commit MarkerKind = 1
)

// Marker reads the kind of a control batch from its records.
func Marker(records []byte) (MarkerKind, bool) {
	size, p := varint(records, 0)
	if p < 0 || size < minRecord || size > int64(len(records)-p) {
		return 0, false
	}
	b := records[:p+int(size)]
	p++ // attributes
	for range 2 {
		if _, p = varint(b, p); p < 0 { // timestamp, offset
			return 0, false
		}
	}
	n, p := varint(b, p)
	if p < 0 || n < 4 || n > int64(len(b)-p) {
		return 0, false
	}
	return MarkerKind(int16(b[p+2])<<8 | int16(b[p+3])), true
}
