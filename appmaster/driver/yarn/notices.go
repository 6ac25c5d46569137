package yarn

import (
	"maps"
	"net"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/yarnclient/book"
)

// host is the host of a NodeId.
func host(node string) string {
	h, _, err := net.SplitHostPort(node)
	if err != nil {
		return node
	}
	return h
}

// nodesChanged tells the master which hosts are going away. What ran on a node that is lost or unhealthy is reported as ended by itself.
func (d *Driver) nodesChanged(nodes []book.Node) {
	d.mu.Lock()
	before := len(d.draining)
	changed := false
	for _, n := range nodes {
		leaves := n.State == pb.NodeStateProto_NS_DECOMMISSIONING
		d.log.Info("a node changed", "node", n.ID, "state", n.State, "report", n.Health, "goes-in", time.Duration(n.Timeout)*time.Second)
		if h := host(n.ID); leaves != d.draining[h] {
			changed = true
			if leaves {
				d.draining[h] = true
			} else {
				delete(d.draining, h)
			}
		}
	}
	hosts := slices.Sorted(maps.Keys(d.draining))
	tell := changed && (before > 0 || len(hosts) > 0) && !d.stopped
	d.mu.Unlock()
	if tell {
		d.env.Draining(hosts)
	}
}

// wantedBack tells the master which agents YARN will take, and how many it would be content with instead of others that it named.
func (d *Driver) wantedBack(named []book.Preempted, wishes []book.Wish) {
	var certain []cluster.AgentID
	count, offered := 0, 0
	d.mu.Lock()
	for _, p := range named {
		w := d.byID[p.Container]
		d.log.Warn("YARN wants a container back", "container", p.Container, "for-certain", p.Strict, "is-an-agent", w != nil)
		switch {
		case w == nil || w.wanted:
		case p.Strict:
			certain = append(certain, w.id)
		default:
			offered++
		}
	}
	stopped := d.stopped
	d.mu.Unlock()
	for _, x := range wishes {
		count += agentsFor(x, d.cfg.MemoryMB)
	}
	if len(wishes) == 0 {
		count = offered
	}
	if !stopped && len(certain)+count > 0 {
		d.env.Reclaim(certain, count)
	}
}

// agentsFor is how many agents have the memory of a wish.
func agentsFor(w book.Wish, each int64) int {
	all := w.MemoryMB * int64(w.Count)
	return int((all + each - 1) / max(1, each))
}
