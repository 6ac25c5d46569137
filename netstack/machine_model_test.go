package netstack

// group is producers and consumers that are all connected with each other.
type group struct {
	parts []*modelPart
	gates []*modelGate
	ended bool
	bad   bool // something was cancelled, failed or lost: errors are expected
}

type modelPart struct {
	p      *Partition
	woken  bool
	denied map[int]bool // subpartitions for which TryGet said no, and no wake came since
}

type modelGate struct {
	g      *Gate
	stack  *Stack
	sub    int
	woken  bool
	asleep bool // Next found nothing
	held   []Item
	chans  []modelChannel
	done   int
	closed bool
}

// modelChannel is what a channel must still bring.
type modelChannel struct {
	due      []modelItem
	priority []modelPriority
	added    int // items that due had in all
	ended    bool
	blocked  bool
}

// modelPriority is a priority event that is due, and what it had overtaken at its producer.
type modelPriority struct {
	n      uint32
	before int // items that were added before it
	passed []modelItem
}

func (mc *modelChannel) add(it modelItem) {
	mc.due = append(mc.due, it)
	mc.added++
}

type modelItem struct {
	kind byte // data, event, watermark, end
	n    uint32
}
