package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/yarnclient/report"
)

// ask explains what stands in the way of one kind of container. vague says that its size is not known.
func (x *explanation) ask(a report.Ask, vague bool) {
	label := a.Label
	if label == "" {
		label = x.queue.DefaultLabel
	}
	if label == "<DEFAULT_PARTITION>" {
		label = ""
	}
	if !x.label(label) {
		return
	}
	if !vague && !x.size(a.Each) {
		return
	}
	x.place(a)
	if !x.nodes(label, a.Each) || vague {
		return
	}
	x.beyond(a, label)
	x.limits(label, a.Each)
	x.user(a.Each)
}

// label judges a node label; false if nothing can come of it.
func (x *explanation) label(label string) bool {
	if label == "" {
		return true
	}
	if !x.f.NoLabels && !slices.Contains(x.f.Labels, label) {
		known := "it has none"
		if len(x.f.Labels) > 0 {
			known = "it has " + strings.Join(x.f.Labels, ", ")
		}
		x.add(Blocks, "label-unknown", fmt.Sprintf("The cluster has no node label %s: %s.", label, known), "Ask for another label, or none (yarn.node-label).")
		return false
	}
	if x.known && !x.queue.Accesses(label) {
		x.add(Blocks, "label-denied", fmt.Sprintf("Queue %s may not use nodes with label %s.", x.queue.Path, label), "Use a queue that may (--queue), or ask for no label (yarn.node-label).")
		return false
	}
	if p, ok := x.queue.Partition(label); ok && p.MaxOf == 0 && p.OfLabel == 0 {
		x.add(Blocks, "label-no-share", fmt.Sprintf("Queue %s has no share of the nodes with label %s.", x.queue.Path, label),
			"Have yarn.scheduler.capacity."+x.queue.Path+".accessible-node-labels."+label+".capacity set, or use another queue (--queue).")
		return false
	}
	return true
}

// size judges a container's size; false if it is never given.
func (x *explanation) size(each report.Resource) bool {
	most := x.f.Scheduler.MaxAllocation
	if x.known && !x.queue.MaxAllocation.IsZero() {
		most = x.queue.MaxAllocation
	}
	if !most.IsZero() && !each.Fits(most) {
		x.add(Blocks, "larger-than-allowed", fmt.Sprintf("A container of %s is wanted, and the scheduler gives none larger than %s.", each, most),
			"Lower agent.memory and agent.cpu (or appmaster.memory for the master), with more agents instead; or have yarn.scheduler.maximum-allocation-mb raised.")
		return false
	}
	return true
}

// place judges hosts that containers must be on.
func (x *explanation) place(a report.Ask) {
	if !a.Strict || len(x.f.Nodes) == 0 {
		return
	}
	for _, o := range x.f.App.Asks {
		if o.Priority != a.Priority || o.Where == "*" || strings.HasPrefix(o.Where, "/") || o.Count == 0 {
			continue
		}
		i := slices.IndexFunc(x.f.Nodes, func(n report.Node) bool { return n.Host == o.Where })
		switch {
		case i < 0:
			x.add(Blocks, "host-unknown", fmt.Sprintf("Containers are wanted on host %s and nowhere else, and the cluster has no such node.", o.Where), "Correct yarn.nodes, or let other nodes do too (yarn.strict-locality: false).")
		case x.f.Nodes[i].State != "RUNNING":
			x.add(Blocks, "host-down", fmt.Sprintf("Containers are wanted on host %s and nowhere else, and it is %s.", o.Where, x.f.Nodes[i].State), "Name other hosts in yarn.nodes, or let other nodes do too (yarn.strict-locality: false).")
		}
	}
}

// nodes judges the nodes of a label against a container's size; false if none can take it ever.
func (x *explanation) nodes(label string, each report.Resource) bool {
	if len(x.f.Nodes) == 0 {
		return true
	}
	var usable, others []report.Node
	for _, n := range x.f.Nodes {
		switch {
		case !n.HasLabel(label) && !(label == "*"):
		case n.State == "RUNNING":
			usable = append(usable, n)
		default:
			others = append(others, n)
		}
	}
	of := ""
	if label != "" {
		of = " with label " + label
	}
	if len(usable) == 0 {
		x.unusable(of, label, others)
		return false
	}
	largest, roomiest, free := usable[0], usable[0], report.Resource{}
	for _, n := range usable {
		if n.Total().MemoryMB > largest.Total().MemoryMB {
			largest = n
		}
		if n.Free.MemoryMB > roomiest.Free.MemoryMB {
			roomiest = n
		}
		free = free.Plus(n.Free)
	}
	if !slices.ContainsFunc(usable, func(n report.Node) bool { return each.Fits(n.Total()) }) {
		x.add(Blocks, "larger-than-nodes", fmt.Sprintf("A container of %s is wanted, and no node%s is that large: the largest that runs, %s, has %s.", each, of, largest.ID, largest.Total()),
			"Lower agent.memory and agent.cpu (or appmaster.memory for the master), with more agents instead.")
		return false
	}
	if !slices.ContainsFunc(usable, func(n report.Node) bool { return each.Fits(n.Free) }) {
		text := fmt.Sprintf("All %s%s are full: a container of %s is wanted, and the node with most room, %s, has %s left", count(len(usable), "node"), of, each, roomiest.ID, roomiest.Free)
		if each.Fits(free) && len(usable) > 1 {
			text += fmt.Sprintf(" (all together %s, but a container can't span nodes)", free)
		}
		x.add(Delays, "nodes-full", text+".", "It comes when other applications give back. Smaller agents (agent.memory) find room sooner; a higher priority (yarn.priority) or another queue may, too.")
	}
	x.ailing(others)
	return true
}

// unusable says why there is no node to use.
func (x *explanation) unusable(of, label string, others []report.Node) {
	if len(others) == 0 {
		if label != "" {
			x.add(Blocks, "label-without-nodes", fmt.Sprintf("No node has the label %s.", label), "Have nodes given the label (yarn rmadmin -replaceLabelsOnNode), or ask for another or none (yarn.node-label).")
			return
		}
		x.add(Blocks, "no-nodes", "The cluster has no node without a label that an application may use.", "Ask for a label of `heddle nodes` (yarn.node-label), or use a queue with a default label.")
		return
	}
	x.add(Blocks, "nodes-down", fmt.Sprintf("No node%s can be used: %s.", of, states(others)), "Have the cluster's administrators look at the nodes (`heddle nodes --all`).")
	x.ailing(others)
}

// states counts nodes by state.
func states(ns []report.Node) string {
	n := map[string]int{}
	for _, x := range ns {
		n[x.State]++
	}
	var out []string
	for s, c := range n {
		out = append(out, fmt.Sprintf("%d %s", c, strings.ToLower(s)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// ailing notes nodes that are not well, with what they say.
func (x *explanation) ailing(ns []report.Node) {
	sick := slices.DeleteFunc(slices.Clone(ns), func(n report.Node) bool {
		return n.State == "DECOMMISSIONED" || n.State == "SHUTDOWN" || n.State == "NEW"
	})
	if len(sick) == 0 {
		return
	}
	text := fmt.Sprintf("Of the nodes, %s.", states(sick))
	for _, n := range sick {
		if n.Health != "" {
			text += fmt.Sprintf(" %s says: %s", n.ID, firstLine(n.Health))
			break
		}
	}
	x.add(Notes, "nodes-ailing", text, "")
}

// limits judges the shares of the queue and of those above it.
func (x *explanation) limits(label string, each report.Resource) {
	if !x.known {
		return
	}
	for i, q := range report.Parents(x.f.Scheduler.Queues, x.queue.Path) {
		used, most := q.UsedOfCluster, q.MaxOfCluster
		if p, ok := q.Partition(label); ok && label != "" {
			used, most = p.UsedOf, p.MaxOf
		}
		full := most > 0 && used >= most-0.1 && used > 0
		if !q.Max.IsZero() && label == "" && !q.Used.IsZero() && q.Path != "root" {
			full = full || !q.Used.Plus(each).Fits(q.Max)
		}
		if !full || q.Path == "root" && x.has("nodes-full") {
			continue
		}
		who := "Queue " + q.Path
		if i > 0 {
			who = fmt.Sprintf("Queue %s, above %s,", q.Path, x.queue.Path)
		}
		text := fmt.Sprintf("%s has no room for another container of %s: it uses %s, %.0f %% of the cluster, and may use %.0f %%", who, each, q.Used, used, most)
		if !q.Max.IsZero() {
			text += fmt.Sprintf(" (%s)", q.Max)
		}
		x.add(Delays, "queue-full", text+".", "It comes when applications of that queue give back. Use another queue (--queue, or `yarn application -movetoqueue`), fewer or smaller agents, or have its maximum-capacity raised.")
	}
	if x.queue.State == "STOPPED" || x.queue.State == "DRAINING" {
		x.add(Notes, "queue-stopped", fmt.Sprintf("Queue %s is %s: it takes no new applications, and those in it go on.", x.queue.Path, strings.ToLower(x.queue.State)), "")
	}
}

// user judges the limit of one user in the queue.
func (x *explanation) user(each report.Resource) {
	for _, u := range x.queue.Users {
		if u.Name != x.f.App.User || u.Limit.IsZero() || u.Used.IsZero() || u.Used.Plus(each).Fits(u.Limit) {
			continue
		}
		x.add(Delays, "user-limit", fmt.Sprintf("User %s has %s in queue %s, and one user may have %s there now.", u.Name, u.Used, x.queue.Path, u.Limit),
			"End another of your applications there (`heddle list`), use another queue (--queue), or have the queue's user-limit-factor or minimum-user-limit-percent raised.")
	}
}
