package book

import (
	"bytes"
	"slices"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Answer takes the answer to the last Request.
func (b *Book) Answer(r *pb.AllocateResponseProto) Outcome {
	if n := int(r.GetNumClusterNodes()); n > 0 {
		b.cluster = n
	}
	for _, k := range b.flightAsks {
		b.forgetIfNone(k)
	}
	b.landed()
	b.response = r.GetResponseId()
	b.takeNMTokens(r.GetNmTokens())
	out := Outcome{
		Updated: r.GetUpdatedContainers(), Refused: r.GetRejectedSchedulingRequests(), Headroom: r.GetLimit(), Cluster: int(r.GetNumClusterNodes()),
		Resync: r.AMCommand != nil && r.GetAMCommand() == pb.AMCommandProto_AM_RESYNC, Shutdown: r.AMCommand != nil && r.GetAMCommand() == pb.AMCommandProto_AM_SHUTDOWN,
	}
	if r.AmRmToken != nil {
		// It comes with every answer until the new key is in force, and is new only once.
		t := token.FromProto(r.AmRmToken)
		if !bytes.Equal(t.Identifier, b.amrm.Identifier) || !bytes.Equal(t.Password, b.amrm.Password) {
			b.amrm = t
			out.NewToken = &t
		}
	}
	if len(out.Refused) > 0 {
		b.keepApart()
	}
	b.count()
	for _, c := range r.GetAllocatedContainers() {
		b.grant(c, &out)
	}
	for _, c := range r.GetContainersFromPreviousAttempts() {
		b.keep(c, &out)
	}
	for _, s := range r.GetCompletedContainerStatuses() {
		b.complete(s, &out)
	}
	for _, n := range r.GetUpdatedNodes() {
		out.Nodes = append(out.Nodes, Node{yarnid.NodeOf(n.GetNodeId()), n.GetHttpAddress(), n.GetNodeState(), n.GetHealthReport(), n.GetDecommissioningTimeout()})
	}
	for _, c := range r.GetPreempt().GetStrictContract().GetContainer() {
		out.Preempt = append(out.Preempt, Preempted{yarnid.ContainerOf(c.GetId()), true})
	}
	for _, c := range r.GetPreempt().GetContract().GetContainer() {
		out.Preempt = append(out.Preempt, Preempted{yarnid.ContainerOf(c.GetId()), false})
	}
	for _, w := range r.GetPreempt().GetContract().GetResource() {
		each := w.GetResource().GetCapability()
		out.Wishes = append(out.Wishes, Wish{each.GetMemory(), each.GetVirtualCores(), int(w.GetResource().GetNumContainers())})
	}
	return out
}

// landed forgets what was in flight.
func (b *Book) landed() { b.flight, b.flightAsks, b.flightReleases, b.flightTold = nil, nil, nil, nil }

func (b *Book) takeNMTokens(ts []*pb.NMTokenProto) {
	for _, t := range ts {
		b.nmTokens[yarnid.NodeOf(t.GetNodeId())] = token.FromProto(t.GetToken())
	}
}

func grantOf(c *pb.ContainerProto) Grant {
	g := Grant{
		Container: yarnid.ContainerOf(c.GetId()), Key: Key{c.GetPriority().GetPriority(), c.GetAllocationRequestId()},
		Node: yarnid.NodeOf(c.GetNodeId()), HTTP: c.GetNodeHttpAddress(), MemoryMB: c.GetResource().GetMemory(), VCores: c.GetResource().GetVirtualCores(),
	}
	for _, v := range c.GetResource().GetResourceValueMap() {
		if v.GetKey() == "memory-mb" && g.MemoryMB == 0 {
			g.MemoryMB = v.GetValue()
		}
		if v.GetKey() == "vcores" && g.VCores == 0 {
			g.VCores = int32(v.GetValue())
		}
	}
	if c.ContainerToken != nil {
		g.Token = token.FromProto(c.ContainerToken)
	}
	return g
}

// grant takes a container that was asked for; what nobody asked for goes back.
func (b *Book) grant(c *pb.ContainerProto, out *Outcome) {
	g := grantOf(c)
	if _, known := b.live[g.Container]; known || b.ended[g.Container] {
		return
	}
	a := b.asks[g.Key]
	host := hostOf(g.Node)
	crowded := a != nil && a.Count > 0 && b.full(a, host)
	b.live[g.Container] = where{g.Key, host}
	switch {
	case a == nil || a.Count == 0:
		out.Surplus = append(out.Surplus, g.Container)
		b.Release(g.Container)
		return
	case crowded:
		out.Crowded = append(out.Crowded, g.Container)
		b.Release(g.Container)
		b.dirty[g.Key] = true // the ResourceManager counts it as served
		return
	}
	if b.hungry[g.Key] <= patience { // once given up, spreading stays so until the ask changes
		delete(b.hungry, g.Key)
	}
	a.Count--
	b.forgetIfNone(g.Key)
	out.Granted = append(out.Granted, g)
}

// forgetIfNone drops an ask of nothing that the ResourceManager knows to be none.
func (b *Book) forgetIfNone(k Key) {
	if a := b.asks[k]; a == nil || a.Count > 0 || b.dirty[k] {
		return
	}
	delete(b.asks, k)
	if len(b.named[k]) == 0 {
		delete(b.named, k)
	}
}

// keep takes a container of an earlier attempt.
func (b *Book) keep(c *pb.ContainerProto, out *Outcome) {
	g := grantOf(c)
	if _, known := b.live[g.Container]; known || b.ended[g.Container] {
		return
	}
	b.live[g.Container] = where{g.Key, hostOf(g.Node)}
	out.Kept = append(out.Kept, g)
}

// complete takes a container's end, once.
func (b *Book) complete(s *pb.ContainerStatusProto, out *Outcome) {
	c := yarnid.ContainerOf(s.GetContainerId())
	if b.ended[c] {
		return
	}
	delete(b.live, c)
	delete(b.releasing, c)
	b.toRelease = slices.DeleteFunc(b.toRelease, func(x yarnid.Container) bool { return x == c })
	if len(b.recent) < remembered {
		b.recent = append(b.recent, c)
	} else {
		delete(b.ended, b.recent[b.recentAt])
		b.recent[b.recentAt] = c
		b.recentAt = (b.recentAt + 1) % remembered
	}
	b.ended[c] = true
	out.Completed = append(out.Completed, Done{c, int(s.GetExitStatus()), s.GetDiagnostics()})
}

// Registered takes the answer to a registration: of a new master, or of one that registers again (resync). After a
// resync the next heartbeat names all that is still open.
func (b *Book) Registered(r *pb.RegisterApplicationMasterResponseProto) Outcome {
	b.takeNMTokens(r.GetNmTokensFromPreviousAttempts())
	b.Resync()
	var out Outcome
	for _, c := range r.GetContainersFromPreviousAttempts() {
		b.keep(c, &out)
	}
	return out
}

// Resync begins the account with the ResourceManager afresh: the response number, and every open ask, release and blacklisted host.
func (b *Book) Resync() {
	b.landed()
	b.response = 0
	for k := range b.asks {
		b.dirty[k] = true
	}
	b.named = map[Key]map[string]bool{} // it forgot them, so there is nothing to withdraw
	for k := range b.dirty {
		if b.asks[k] == nil || b.asks[k].Count == 0 {
			delete(b.dirty, k)
			delete(b.asks, k)
		}
	}
	b.toRelease = nil
	for c := range b.releasing {
		b.toRelease = append(b.toRelease, c)
	}
	slices.SortFunc(b.toRelease, func(x, y yarnid.Container) int { return int(min(max(x.Number-y.Number, -1), 1)) })
	b.told = map[string]bool{}
}

// ExpectResponse sets the response number that the ResourceManager said it expects, and drops what was in flight into the next message.
func (b *Book) ExpectResponse(id int32) {
	b.unsend()
	b.response = id
}

// unsend puts what was in flight back among what is to be sent.
func (b *Book) unsend() {
	for _, k := range b.flightAsks {
		if b.asks[k] != nil {
			b.dirty[k] = true
		}
	}
	b.toRelease = append(b.flightReleases, b.toRelease...)
	if b.flight != nil {
		b.told = b.flightTold
	}
	b.landed()
}

// RefusedAsk says that the ResourceManager refused the last Request for an ask in it. If there was one ask, that is dropped and returned;
// of several it is not known which, so that each goes into a heartbeat of its own from now on.
func (b *Book) RefusedAsk() []Rejected {
	asks := b.flightAsks
	b.unsend()
	switch len(asks) {
	case 0:
		return nil
	case 1:
		delete(b.asks, asks[0])
		delete(b.dirty, asks[0])
		delete(b.named, asks[0])
		b.alone = len(b.dirty) > 1
		return []Rejected{{asks[0]}}
	}
	b.alone = true
	return nil
}

// RefusedRelease says that the ResourceManager refused the last Request for a release in it. Those releases are dropped.
func (b *Book) RefusedRelease() {
	drop := b.flightReleases
	b.unsend()
	for _, c := range drop {
		delete(b.releasing, c)
	}
	b.toRelease = slices.DeleteFunc(b.toRelease, func(c yarnid.Container) bool { return slices.Contains(drop, c) })
}

// RefusedBlacklist says that the ResourceManager refused the last Request for its blacklist, which is dropped.
func (b *Book) RefusedBlacklist() {
	b.unsend()
	b.noBlack, b.told = true, map[string]bool{}
}

// RefusedConstraints says that the ResourceManager's scheduler takes no placement constraints. Asks go without from now on, and the Book keeps PerNode by
// itself. It reports whether there were any.
func (b *Book) RefusedConstraints() bool {
	had := len(b.flight.GetSchedulingRequests()) > 0
	b.unsend()
	b.refusesC = b.refusesC || had
	return had
}

// keepApart asks anew for what was asked for with placement constraints, without them: the ResourceManager gave one of those up, as its placement processor does
// with what finds no place in a few tries, and would never serve it.
func (b *Book) keepApart() {
	for k, a := range b.asks {
		if a.Count > 0 && b.constrained(a) {
			b.dirty[k] = true
		}
	}
	b.refusesC = true
}
