package explain

import (
	"fmt"
	"strings"
)

// activity is what a text of the capacity scheduler's activities means.
type activity struct {
	sign  string
	grade Grade
	kind  string
	text  string
	fix   string
	over  []string // kinds of findings that say the same better
}

var activitiesKnown = []activity{
	{"Queue is not able to access partition", Blocks, "label-denied", "The queue may not use nodes of the wanted label.", "Use a queue that may (--queue), or ask for no label (yarn.node-label).", []string{"label-without-nodes", "label-no-share"}},
	{"Queue hits max-capacity limit", Delays, "queue-full", "The queue, or one above it, is at its most.", "It comes when applications of that queue give back; or use another (--queue).", nil},
	{"Queue hits user max-capacity limit", Delays, "user-limit", "You have in this queue what one user may have there.", "End another of your applications there, or use another queue (--queue).", nil},
	{"Queue does not have enough headroom", Delays, "headroom", "The queue has too little left for another such container: its most, less what is used, is smaller than one.", "Ask for smaller agents (agent.memory), wait for applications of the queue to give back, or use another queue (--queue).", []string{"queue-full", "user-limit", "nodes-full"}},
	{"Queue skipped to respect FIFO", Delays, "fifo", "Applications that came before it in the queue are served first.", "Wait, or raise its priority (yarn.priority).", nil},
	{"Node's total resource is insufficient", Blocks, "larger-than-nodes", "Some nodes are too small for the container, however empty.", "Lower agent.memory and agent.cpu, with more agents instead.", []string{"nodes-full"}},
	{"Node does not have sufficient resource", Delays, "nodes-full", "Nodes have too little left for the container.", "It comes when others give back; smaller agents find room sooner.", nil},
	{"insufficient resource in partition", Blocks, "label-without-nodes", "The nodes of the wanted label have nothing to give.", "Ask for another label, or none (yarn.node-label).", nil},
	{"Node is blacklisted", Delays, "nodes-excluded", "The application avoids these nodes: agents failed there, or it has its most agents there.", "See agents.host-failures, agents.host-exclusion and yarn.agents-per-node.", nil},
	{"does not match partition or placement constraints", Delays, "placement", "Nodes are not of the wanted label, or have as many agents of the application as it wants on one.", "See yarn.node-label and yarn.agents-per-node.", []string{"label-without-nodes", "label-unknown"}},
	{"relax locality is not allowed", Delays, "strict", "Only named hosts will do, and this was none of them.", "Let other nodes do too (yarn.strict-locality: false).", []string{"host-unknown", "host-down"}},
	{"node/rack locality cannot be satisfied", Delays, "strict", "Only named hosts or racks will do, and they have no room.", "Let other nodes do too (yarn.strict-locality: false).", []string{"host-unknown", "host-down"}},
	{"off-switch delay", Delays, "locality-delay", "The scheduler waits a while for the named hosts before it takes others (yarn.scheduler.capacity.node-locality-delay).", "It passes.", nil},
	{"has been reserved", Notes, "reserved-elsewhere", "Nodes are reserved for other containers.", "", nil},
	{"Ignore Exclusivity", Notes, "not-for-masters", "Nodes of shared labels are not used for masters.", "", nil},
}

// activities adds what the scheduler itself said, where nothing better was found.
func (x *explanation) activities() {
	for _, d := range x.f.Activities {
		i := known(d.Text)
		if i < 0 {
			continue
		}
		a := activitiesKnown[i]
		if x.has(append(a.over, a.kind)...) {
			continue
		}
		text := a.text
		if n := len(d.Nodes); n > 0 {
			text += fmt.Sprintf(" (The scheduler said so of %s.)", count(n, "node"))
		}
		x.add(a.grade, a.kind, text, a.fix)
	}
}

func known(text string) int {
	for i, a := range activitiesKnown {
		if strings.Contains(text, a.sign) {
			return i
		}
	}
	return -1
}
