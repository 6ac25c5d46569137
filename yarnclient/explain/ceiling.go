package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-stream/heddle/yarnclient/report"
)

// ceiling is the most that an application can ever hold, if nobody else had anything, and who sets it.
type ceiling struct {
	who  string
	most report.Resource // a part that is not limited is math.MaxInt64
	fix  string
	more int64 // containers beyond those that it has
}

const unlimited = math.MaxInt64

// beyond judges whether all that is asked for can ever come, however long one waits.
func (x *explanation) beyond(a report.Ask, label string) {
	each := a.Each
	if a.Count <= 0 || each.MemoryMB <= 0 {
		return
	}
	cores := x.coresCount(label, each)
	held := report.Resource{MemoryMB: x.f.App.MemoryMB, VCores: x.f.App.VCores}
	all := x.ceilings(label, each)
	for i := range all {
		c := &all[i]
		c.more = (c.most.MemoryMB - held.MemoryMB) / each.MemoryMB
		if cores && each.VCores > 0 {
			c.more = min(c.more, (c.most.VCores-held.VCores)/each.VCores)
		}
	}
	if n, ok := x.fit(label, each, cores); ok { // containers can't span nodes; one of those that are held is the master's
		has := int64(max(0, x.f.App.Containers-1))
		all = append(all, ceiling{who: "The nodes that run have room for " + count(int(n), "container") + " of that size in all, and", most: x.total(label), more: n - has,
			fix: "Ask for less: a smaller parallelism, or smaller agents (agent.memory, agent.cpu) with more slots each (agent.slots). Or have nodes added, or those that are unwell mended (`heddle nodes`)."})
	}
	if len(all) == 0 {
		return
	}
	least := slices.MinFunc(all, func(a, b ceiling) int { return cmp.Compare(a.more, b.more) })
	if least.more >= int64(a.Count) {
		return
	}
	wants := report.Resource{MemoryMB: held.MemoryMB + int64(a.Count)*each.MemoryMB, VCores: held.VCores + int64(a.Count)*each.VCores}
	x.add(Blocks, "beyond-capacity", fmt.Sprintf("%s of %s are wanted beside the %d that it has, %s in all. %s it can have %s at most, even if nobody else had anything: as things are, %d of them will never come.",
		count(a.Count, "more container"), each, x.f.App.Containers, wants, least.who, amountOf(least.most), int64(a.Count)-max(0, least.more)), least.fix)
}

// amountOf writes an amount of which a part may not be limited.
func amountOf(r report.Resource) string {
	if r.VCores == unlimited {
		return fmt.Sprintf("%d MB", r.MemoryMB)
	}
	return r.String()
}

// ceilings are the limits of the cluster, of the queue and of those above it, and of one user in it.
func (x *explanation) ceilings(label string, each report.Resource) (out []ceiling) {
	total := x.total(label)
	if !total.IsZero() {
		of := ""
		if label != "" {
			of = " with label " + label
		}
		out = append(out, ceiling{who: "Of the nodes" + of + " that run,", most: total,
			fix: "Ask for less: a smaller parallelism, or smaller agents (agent.memory, agent.cpu) with more slots each (agent.slots). Or have nodes added, or those that are unwell mended (`heddle nodes`)."})
	}
	if !x.known {
		return out
	}
	for _, q := range report.Parents(x.f.Scheduler.Queues, x.queue.Path) {
		if q.Path == "root" {
			continue
		}
		most, ok := largest(q, label, total)
		if ok {
			out = append(out, ceiling{who: "In queue " + q.Path, most: most,
				fix: "Ask for less: a smaller parallelism, or smaller agents (agent.memory). Or use another queue (--queue, see `heddle queues`), or have the maximum-capacity of " + q.Path + " raised."})
		}
	}
	share := x.queue.OfCluster
	if p, ok := x.queue.Partition(label); ok && label != "" {
		share = p.OfLabel
	}
	if f := x.queue.UserLimitFactor; f > 0 && share > 0 && !total.IsZero() {
		most := part(total, share*f)
		// A user who is below the limit gets one more, whatever its size.
		out = append(out, ceiling{who: fmt.Sprintf("As one user of queue %s, with a user-limit-factor of %g,", x.queue.Path, f), most: most.Plus(each),
			fix: "Ask for less: a smaller parallelism, or smaller agents (agent.memory). Or use another queue (--queue), or have the user-limit-factor of " + x.queue.Path + " raised."})
	}
	return out
}

// largest is what a queue can have at most.
func largest(q report.Queue, label string, total report.Resource) (report.Resource, bool) {
	if label == "" && !q.Max.IsZero() {
		r := q.Max
		if r.VCores == 0 {
			r.VCores = unlimited
		}
		return r, true
	}
	share := q.MaxOfCluster
	if p, ok := q.Partition(label); ok && label != "" {
		share = p.MaxOf
	}
	if share <= 0 || total.IsZero() {
		return report.Resource{}, false
	}
	return part(total, share), true
}

// part is a percentage of an amount, rounded up.
func part(r report.Resource, percent float64) report.Resource {
	of := func(n int64) int64 { return int64(math.Ceil(float64(n)*percent/100 - 1e-6)) }
	return report.Resource{MemoryMB: of(r.MemoryMB), VCores: of(r.VCores)}
}

// total is what all nodes of a label that run have.
func (x *explanation) total(label string) (sum report.Resource) {
	for _, n := range x.f.Nodes {
		if n.State == "RUNNING" && (n.HasLabel(label) || label == "*") {
			sum = sum.Plus(n.Total())
		}
	}
	return sum
}

// fit is how many containers of a size the nodes of a label could have, were they empty.
func (x *explanation) fit(label string, each report.Resource, cores bool) (sum int64, ok bool) {
	for _, n := range x.f.Nodes {
		if n.State != "RUNNING" || !(n.HasLabel(label) || label == "*") {
			continue
		}
		fits := n.Total().MemoryMB / each.MemoryMB
		if cores && each.VCores > 0 {
			fits = min(fits, n.Total().VCores/each.VCores)
		}
		sum, ok = sum+fits, true
	}
	return sum, ok
}

// coresCount reports whether the scheduler surely counts cores. Many count memory alone (the capacity scheduler's DefaultResourceCalculator), and do not say so:
// where a node has memory for a container and it does not come, cores are what is lacking.
func (x *explanation) coresCount(label string, each report.Resource) bool {
	counts := false
	for _, n := range x.f.Nodes {
		if n.State != "RUNNING" || !(n.HasLabel(label) || label == "*") {
			continue
		}
		if n.Free.VCores < 0 { // more are given than there are
			return false
		}
		counts = counts || n.Free.MemoryMB >= each.MemoryMB && n.Free.VCores < each.VCores
	}
	return counts
}
