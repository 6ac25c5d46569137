package book

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// patience is how many heartbeats without a grant make an ask give up spreading.
const patience = 8

// tag is what the scheduler knows containers of constrained asks by.
const tag = "heddle-agent"

// hostOf is the host of a NodeId, which is what blacklists name.
func hostOf(node string) string {
	if i := strings.LastIndexByte(node, ':'); i >= 0 {
		node = node[:i]
	}
	return strings.Trim(node, "[]")
}

// constrained reports whether the scheduler is to keep an ask's limit a host.
func (b *Book) constrained(a *Ask) bool {
	return a.Constrain && a.PerNode > 0 && len(a.Nodes)+len(a.Racks) == 0 && !b.refusesC
}

// count counts heartbeats in which a key that wants something got nothing.
func (b *Book) count() {
	for k, a := range b.asks {
		if a.Count > 0 {
			b.hungry[k]++
		} else {
			delete(b.hungry, k)
		}
	}
	maps.DeleteFunc(b.hungry, func(k Key, _ int) bool { return b.asks[k] == nil })
}

// most is how many containers of an ask one host may have now; 0: any number.
func (b *Book) most(a *Ask) int {
	if a.PerNode > 0 || !a.Spread || b.cluster == 0 || b.hungry[a.Key] > patience {
		return a.PerNode
	}
	n := a.Count
	for c, w := range b.live {
		if w.key == a.Key && !b.releasing[c] {
			n++
		}
	}
	return (n + b.cluster - 1) / b.cluster
}

// full reports whether a host has what it may have of an ask.
func (b *Book) full(a *Ask, host string) bool {
	most := b.most(a)
	return most > 0 && b.hosts(a.Key)[host] >= most
}

// hosts counts a key's containers by host, those that go back left out.
func (b *Book) hosts(k Key) map[string]int {
	n := map[string]int{}
	for c, w := range b.live {
		if w.key == k && !b.releasing[c] {
			n[w.host]++
		}
	}
	return n
}

// excluded is the hosts to get no containers on: those of the master's, and those that have their most of everything that is still wanted. A
// blacklist holds for the whole application, so that a host which may have more of one kind stays off it.
func (b *Book) excluded() map[string]bool {
	if b.noBlack {
		return map[string]bool{}
	}
	out := maps.Clone(b.black)
	for h := range b.crowded() {
		out[h] = true
	}
	return out
}

func (b *Book) crowded() map[string]bool {
	var all map[string]bool
	for k, a := range b.asks {
		if a.Count == 0 {
			continue
		}
		most := b.most(a)
		if most == 0 || b.constrained(a) {
			return nil
		}
		full := map[string]bool{}
		for h, n := range b.hosts(k) {
			if n >= most && (all == nil || all[h]) {
				full[h] = true
			}
		}
		all = full
	}
	return all
}

// without lists what is in a and not in b.
func without(a, b map[string]bool) []string {
	var out []string
	for h := range a {
		if !b[h] {
			out = append(out, h)
		}
	}
	slices.Sort(out)
	return out
}

// constrainedRequest is an ask with a limit a host as the scheduler takes it: so many containers may be there already.
func constrainedRequest(a *Ask) *pb.SchedulingRequestProto {
	most := int32(a.PerNode)
	if most == 1 {
		most = 0 // none at all; else it counts those there afterwards
	}
	targets := []*pb.PlacementConstraintTargetProto{{TargetType: pb.PlacementConstraintTargetProto_ALLOCATION_TAG.Enum(), TargetKey: proto.String("self"), TargetValues: []string{tag}}}
	if a.Label != "" {
		targets = append(targets, &pb.PlacementConstraintTargetProto{TargetType: pb.PlacementConstraintTargetProto_NODE_ATTRIBUTE.Enum(), TargetKey: proto.String("yarn_node_partition/"), TargetValues: []string{a.Label}})
	}
	return &pb.SchedulingRequestProto{
		AllocationRequestId: proto.Int64(a.Key.Request), Priority: &pb.PriorityProto{Priority: proto.Int32(a.Key.Priority)}, AllocationTags: []string{tag},
		ExecutionType:  &pb.ExecutionTypeRequestProto{ExecutionType: pb.ExecutionTypeProto_GUARANTEED.Enum(), EnforceExecutionType: proto.Bool(true)},
		ResourceSizing: &pb.ResourceSizingProto{NumAllocations: proto.Int32(int32(a.Count)), Resources: a.capability()},
		PlacementConstraint: &pb.PlacementConstraintProto{SimpleConstraint: &pb.SimplePlacementConstraintProto{
			Scope: proto.String("node"), MinCardinality: proto.Int32(0), MaxCardinality: &most, TargetExpressions: targets}},
	}
}
