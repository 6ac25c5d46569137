package book

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

var attempt = yarnid.Attempt{App: yarnid.Application{Cluster: 1, Number: 1}, Number: 1}

func container(n int64) yarnid.Container { return yarnid.Container{Attempt: attempt, Number: n} }

func granted(k Key, n int64) *pb.ContainerProto {
	return &pb.ContainerProto{Id: container(n).Proto(), NodeId: &pb.NodeIdProto{Host: proto.String("h"), Port: proto.Int32(1)},
		Priority: &pb.PriorityProto{Priority: &k.Priority}, AllocationRequestId: &k.Request, ContainerToken: token.Token{}.Proto()}
}

func completed(n int64, status int32) *pb.ContainerStatusProto {
	return &pb.ContainerStatusProto{ContainerId: container(n).Proto(), State: pb.ContainerStateProto_C_COMPLETE.Enum(), ExitStatus: &status}
}

// said describes a heartbeat's message: id, asks as name=count, releases, blacklist.
func said(r *pb.AllocateRequestProto) string {
	s := fmt.Sprintf("#%d", r.GetResponseId())
	for _, a := range r.Ask {
		strict := ""
		if !a.GetRelaxLocality() {
			strict = "!"
		}
		s += fmt.Sprintf(" %d/%d:%s=%d%s", a.Priority.GetPriority(), a.GetAllocationRequestId(), a.GetResourceName(), a.GetNumContainers(), strict)
	}
	for _, c := range r.Release {
		s += fmt.Sprintf(" -%d", c.GetId())
	}
	if bl := r.BlacklistRequest; bl != nil {
		s += fmt.Sprintf(" black+%v-%v", bl.BlacklistAdditions, bl.BlacklistRemovals)
	}
	return s
}

func want(t *testing.T, b *Book, text string) {
	t.Helper()
	if got := said(b.Request()); got != text {
		t.Errorf("heartbeat says %q, want %q", got, text)
	}
}

var key = Key{1, 5}

// TestAbsolute is the rule of asks: said once, lowered on both sides by grants, said again only when changed.
func TestAbsolute(t *testing.T) {
	b := New(token.Token{})
	b.Want(Ask{Key: key, Count: 3, MemoryMB: 64, VCores: 1})
	if !b.Pending() {
		t.Error("nothing is pending")
	}
	want(t, b, "#0 1/5:*=3")
	out := b.Answer(&pb.AllocateResponseProto{ResponseId: proto.Int32(1), AllocatedContainers: []*pb.ContainerProto{granted(key, 1), granted(key, 2)}})
	if len(out.Granted) != 2 || b.Open(key) != 1 {
		t.Errorf("granted %v, open %d", out.Granted, b.Open(key))
	}
	want(t, b, "#1")
	b.Answer(&pb.AllocateResponseProto{ResponseId: proto.Int32(2)})
	b.Want(Ask{Key: key, Count: 1, MemoryMB: 64, VCores: 1})
	want(t, b, "#2") // unchanged
	b.Answer(&pb.AllocateResponseProto{ResponseId: proto.Int32(3)})
	b.Want(Ask{Key: key, Count: 4, MemoryMB: 64, VCores: 1})
	want(t, b, "#3 1/5:*=4")
	b.Answer(&pb.AllocateResponseProto{ResponseId: proto.Int32(4), AllocatedContainers: []*pb.ContainerProto{granted(key, 3)}})
	b.Want(Ask{Key: key, Count: 0})
	want(t, b, "#4 1/5:*=0")
	b.Answer(&pb.AllocateResponseProto{ResponseId: proto.Int32(0)}) // the number wraps
	want(t, b, "#0")
	b.Answer(&pb.AllocateResponseProto{})
	if b.Pending() || b.Live() != 3 {
		t.Errorf("pending %v, live %d", b.Pending(), b.Live())
	}
}

// TestSurplus gives back at once what comes beyond the ask (FLINK-8613), and what comes after the ask was withdrawn.
func TestSurplus(t *testing.T) {
	b := New(token.Token{})
	b.Want(Ask{Key: key, Count: 2})
	b.Request()
	var cs []*pb.ContainerProto
	for i := range 5 {
		cs = append(cs, granted(key, int64(i+1)))
	}
	out := b.Answer(&pb.AllocateResponseProto{ResponseId: proto.Int32(1), AllocatedContainers: cs})
	if len(out.Granted) != 2 || len(out.Surplus) != 3 {
		t.Errorf("granted %d, surplus %d", len(out.Granted), len(out.Surplus))
	}
	want(t, b, "#1 -3 -4 -5")
	out = b.Answer(&pb.AllocateResponseProto{ResponseId: proto.Int32(2), CompletedContainerStatuses: []*pb.ContainerStatusProto{completed(3, -100)}})
	if len(out.Completed) != 1 {
		t.Errorf("completed: %v", out.Completed)
	}
	b.Resync()
	want(t, b, "#0 -4 -5") // 3 is known to be over
}

// TestCompletions: told twice, told before the grant was acted upon, of containers of an earlier attempt. None makes an ask (FLINK-9567, SPARK-43510).
func TestCompletions(t *testing.T) {
	b := New(token.Token{})
	kept := b.Registered(&pb.RegisterApplicationMasterResponseProto{ContainersFromPreviousAttempts: []*pb.ContainerProto{granted(key, 1), granted(key, 2)}})
	if len(kept.Kept) != 2 || b.Live() != 2 {
		t.Errorf("kept %v", kept.Kept)
	}
	b.Request()
	twice := []*pb.ContainerStatusProto{completed(1, 0), completed(1, 0), completed(9, 1)}
	out := b.Answer(&pb.AllocateResponseProto{CompletedContainerStatuses: twice, AllocatedContainers: []*pb.ContainerProto{granted(key, 9)}})
	if len(out.Completed) != 2 || len(out.Surplus) != 1 || b.Live() != 1 {
		t.Errorf("completed %v, surplus %v, live %d", out.Completed, out.Surplus, b.Live())
	}
	want(t, b, "#0") // neither an ask, nor a release of what is over
	out = b.Answer(&pb.AllocateResponseProto{CompletedContainerStatuses: twice, AllocatedContainers: []*pb.ContainerProto{granted(key, 9)}})
	if len(out.Completed)+len(out.Granted)+len(out.Surplus) != 0 || b.Live() != 1 {
		t.Errorf("told again: %+v", out)
	}
	b.Release(container(9))
	want(t, b, "#0")
	for i := range int64(3 * remembered) {
		b.complete(completed(100+i, 0), &Outcome{})
	}
	if len(b.ended) != remembered || len(b.recent) != remembered {
		t.Errorf("%d ends remembered, want %d", len(b.ended), remembered)
	}
}

// TestLostAnswer sends the same message again, whatever changed meanwhile, since the ResourceManager may repeat its answer.
func TestLostAnswer(t *testing.T) {
	b := New(token.Token{})
	b.Want(Ask{Key: key, Count: 2})
	want(t, b, "#0 1/5:*=2")
	other := Key{2, 1}
	b.Want(Ask{Key: other, Count: 1})
	b.Release(container(7))
	want(t, b, "#0 1/5:*=2")
	b.Answer(&pb.AllocateResponseProto{ResponseId: proto.Int32(1)})
	want(t, b, "#1 2/1:*=1 -7")
}

// TestResync says everything still open again (HAWQ-496 and others): asks less what was granted, releases, the whole blacklist.
func TestResync(t *testing.T) {
	b := New(token.Token{})
	other := Key{2, 1}
	b.Want(Ask{Key: key, Count: 3})
	b.Want(Ask{Key: other, Count: 1})
	b.Want(Ask{Key: Key{3, 1}, Count: 2})
	b.Blacklist([]string{"bad", "worse"})
	want(t, b, "#0 1/5:*=3 2/1:*=1 3/1:*=2 black+[bad worse]-[]")
	b.Answer(&pb.AllocateResponseProto{ResponseId: proto.Int32(1), AllocatedContainers: []*pb.ContainerProto{granted(key, 1), granted(other, 2)}})
	b.Release(container(1))
	b.Blacklist([]string{"worse"})
	b.Want(Ask{Key: Key{3, 1}, Count: 0})
	want(t, b, "#1 3/1:*=0 -1 black+[]-[bad]")
	b.Registered(&pb.RegisterApplicationMasterResponseProto{NmTokensFromPreviousAttempts: []*pb.NMTokenProto{
		{NodeId: &pb.NodeIdProto{Host: proto.String("h"), Port: proto.Int32(1)}, Token: token.Token{Kind: "NMToken"}.Proto()}}})
	want(t, b, "#0 1/5:*=2 -1 black+[worse]-[]")
	if tok, ok := b.NMToken("h:1"); !ok || tok.Kind != "NMToken" {
		t.Errorf("NM token: %v %v", tok, ok)
	}
}

func TestLocality(t *testing.T) {
	b := New(token.Token{})
	b.Want(Ask{Key: key, Count: 2, Nodes: []string{"a", "b"}, Racks: []string{"/r"}, Strict: true})
	want(t, b, "#0 1/5:a=2 1/5:b=2 1/5:/r=2! 1/5:*=2!")
	b.Answer(&pb.AllocateResponseProto{})
	b.Want(Ask{Key: key, Count: 2, Nodes: []string{"b"}, Racks: []string{"/r"}})
	want(t, b, "#0 1/5:b=2 1/5:/r=2 1/5:a=0 1/5:*=2")
	b.Answer(&pb.AllocateResponseProto{})
	b.Want(Ask{Key: key, Count: 2, Racks: []string{"/r"}, Strict: true})
	want(t, b, "#0 1/5:/r=2 1/5:b=0 1/5:*=2!")
}

func TestCapability(t *testing.T) {
	b := New(token.Token{})
	b.Want(Ask{Key: key, Count: 1, MemoryMB: 512, VCores: 2, Custom: map[string]int64{"gpu": 1}, Label: "fast"})
	r := b.Request().Ask[0]
	if r.GetCapability().GetMemory() != 512 || r.GetCapability().GetVirtualCores() != 2 || r.GetNodeLabelExpression() != "fast" {
		t.Errorf("ask %v", r)
	}
	if m := r.GetCapability().GetResourceValueMap(); len(m) != 1 || m[0].GetKey() != "gpu" || m[0].GetValue() != 1 {
		t.Errorf("custom resources %v", m)
	}
}

// TestRefusedAsks finds the bad one among several: each goes into a heartbeat of its own.
func TestRefusedAsks(t *testing.T) {
	b := New(token.Token{})
	for i := range int64(3) {
		b.Want(Ask{Key: Key{1, i}, Count: 1})
	}
	b.Release(container(1))
	want(t, b, "#0 1/0:*=1 1/1:*=1 1/2:*=1 -1")
	if r := b.RefusedAsk(); len(r) != 0 {
		t.Errorf("rejected %v of several", r)
	}
	want(t, b, "#0 1/0:*=1 -1")
	b.Answer(&pb.AllocateResponseProto{})
	want(t, b, "#0 1/1:*=1")
	if r := b.RefusedAsk(); !reflect.DeepEqual(r, []Rejected{{Key{1, 1}}}) {
		t.Errorf("rejected %v", r)
	}
	want(t, b, "#0 1/2:*=1")
	b.Answer(&pb.AllocateResponseProto{})
	want(t, b, "#0")
	b.Answer(&pb.AllocateResponseProto{})
	b.Release(container(2))
	b.Blacklist([]string{"*"})
	want(t, b, "#0 -2 black+[*]-[]")
	b.RefusedBlacklist()
	want(t, b, "#0 -2")
	b.RefusedRelease()
	want(t, b, "#0")
	b.ExpectResponse(17)
	want(t, b, "#17")
}

// TestTokenRoll tells a new token once, though it comes with every answer.
func TestTokenRoll(t *testing.T) {
	old := token.Token{Identifier: []byte("1"), Password: []byte("p")}
	b := New(old)
	next := token.Token{Identifier: []byte("2"), Password: []byte("q"), Kind: token.KindAMRM}
	n := 0
	for range 3 {
		b.Request()
		if out := b.Answer(&pb.AllocateResponseProto{AmRmToken: next.Proto()}); out.NewToken != nil {
			n++
		}
	}
	if n != 1 {
		t.Errorf("told %d times", n)
	}
	b.Request()
	out := b.Answer(&pb.AllocateResponseProto{AMCommand: pb.AMCommandProto_AM_SHUTDOWN.Enum(), Preempt: &pb.PreemptionMessageProto{
		StrictContract: &pb.StrictPreemptionContractProto{Container: []*pb.PreemptionContainerProto{{Id: container(1).Proto()}}},
		Contract:       &pb.PreemptionContractProto{Container: []*pb.PreemptionContainerProto{{Id: container(2).Proto()}}}}})
	if !out.Shutdown || out.Resync || len(out.Preempt) != 2 || !out.Preempt[0].Strict || out.Preempt[1].Strict {
		t.Errorf("outcome %+v", out)
	}
}

// manager is a ResourceManager by the rules: absolute asks that it lowers itself, grants told one heartbeat after they are made, an answer kept for a repeated request.
type manager struct {
	open     map[Key]int
	made     []*pb.ContainerProto // and not told yet
	over     []*pb.ContainerStatusProto
	ends     []*pb.ContainerStatusProto // all, which NodeManagers tell a restarted one again
	held     map[int64]Key
	next     int64
	response int32
	cached   *pb.AllocateResponseProto
	last     int32 // the request that cached answers
}

func (m *manager) heartbeat(r *pb.AllocateRequestProto) *pb.AllocateResponseProto {
	if m.cached != nil && r.GetResponseId() == m.last && r.GetResponseId() != m.response {
		return m.cached
	}
	for _, a := range r.Ask {
		m.open[Key{a.Priority.GetPriority(), a.GetAllocationRequestId()}] = int(a.GetNumContainers())
	}
	for _, c := range r.Release {
		m.end(c.GetId(), -100)
	}
	m.last = r.GetResponseId()
	m.response++
	m.cached = &pb.AllocateResponseProto{ResponseId: proto.Int32(m.response), AllocatedContainers: m.made, CompletedContainerStatuses: m.over}
	m.made, m.over = nil, nil
	return m.cached
}

func (m *manager) end(n int64, status int32) {
	if _, ok := m.held[n]; ok {
		delete(m.held, n)
		m.over = append(m.over, completed(n, status))
		m.ends = append(m.ends, completed(n, status))
	}
}

func (m *manager) schedule(k Key, n int) {
	for ; n > 0 && m.open[k] > 0; n-- {
		m.open[k]--
		m.next++
		m.held[m.next] = k
		m.made = append(m.made, granted(k, m.next))
	}
}

// TestModel runs a master that wants a number of containers of each kind against that ResourceManager, with lost requests, lost answers,
// ends and restarts. When all is quiet it has just what it wants.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New(token.Token{})
		rm := &manager{open: map[Key]int{}, held: map[int64]Key{}}
		need := map[Key]int{{1, 0}: 0, {1, 1}: 0, {2, 0}: 0}
		keys := []Key{{1, 0}, {1, 1}, {2, 0}}
		have := map[yarnid.Container]Key{}
		ask := func() {
			for _, k := range keys {
				n := need[k]
				for _, h := range have {
					if h == k {
						n--
					}
				}
				for c := int64(1); c <= rm.next && n < 0; c++ {
					if h, ok := have[container(c)]; ok && h == k {
						b.Release(container(c))
						delete(have, container(c))
						n++
					}
				}
				b.Want(Ask{Key: k, Count: n})
			}
		}
		beat := func(loseRequest, loseAnswer bool) {
			r := b.Request()
			if loseRequest {
				return
			}
			a := rm.heartbeat(r)
			if loseAnswer {
				return
			}
			out := b.Answer(a)
			for _, g := range out.Granted {
				have[g.Container] = g.Key
			}
			for _, d := range out.Completed {
				delete(have, d.Container)
			}
			ask()
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1:
				need[rapid.SampledFrom(keys).Draw(t, "key")] = rapid.IntRange(0, 8).Draw(t, "need")
				ask()
			case 2, 3:
				rm.schedule(rapid.SampledFrom(keys).Draw(t, "key"), rapid.IntRange(1, 10).Draw(t, "count"))
			case 4:
				if rm.next > 0 {
					rm.end(rapid.Int64Range(1, rm.next).Draw(t, "container"), 1)
				}
			case 5: // the ResourceManager restarts: it keeps containers, forgets asks and what it did not tell
				rm.open, rm.made, rm.cached, rm.response = map[Key]int{}, nil, nil, 0
				rm.over = slices.Clone(rm.ends)
				for n := range rm.held {
					if _, told := have[container(n)]; !told && !b.releasing[container(n)] {
						delete(rm.held, n)
					}
				}
				b.Registered(&pb.RegisterApplicationMasterResponseProto{})
				ask()
			case 6:
				beat(true, false)
			case 7:
				beat(false, true)
			default:
				beat(false, false)
			}
		}
		for range 12 {
			for _, k := range keys {
				rm.schedule(k, 100)
			}
			beat(false, false)
		}
		count := map[Key]int{}
		for n, k := range rm.held {
			count[k]++
			if _, ok := have[container(n)]; !ok {
				t.Fatalf("container %d is held and nobody knows it", n)
			}
		}
		for _, k := range keys {
			if count[k] != need[k] || rm.open[k] != 0 || b.Open(k) != 0 {
				t.Fatalf("%v: %d held, want %d; open %d at the ResourceManager, %d in the book", k, count[k], need[k], rm.open[k], b.Open(k))
			}
		}
		if b.Pending() || b.Live() != len(have) {
			t.Fatalf("pending %v, live %d of %d", b.Pending(), b.Live(), len(have))
		}
	})
}

// on is a grant on a host.
func on(k Key, n int64, host string) *pb.ContainerProto {
	c := granted(k, n)
	c.NodeId.Host = &host
	return c
}

func grantAll(b *Book, nodes int, cs ...*pb.ContainerProto) Outcome {
	b.Request()
	return b.Answer(&pb.AllocateResponseProto{AllocatedContainers: cs, NumClusterNodes: proto.Int32(int32(nodes))})
}

// TestPerNode keeps to the most of a host: what comes beyond goes back and is asked for again, and full hosts are excluded as long as something is wanted.
func TestPerNode(t *testing.T) {
	b := New(token.Token{})
	b.Blacklist([]string{"bad"})
	b.Want(Ask{Key: key, Count: 3, PerNode: 1})
	want(t, b, "#0 1/5:*=3 black+[bad]-[]")
	out := grantAll(b, 2, on(key, 1, "a"), on(key, 2, "a"))
	if len(out.Granted) != 1 || len(out.Crowded) != 1 || out.Crowded[0] != container(2) || b.Open(key) != 2 {
		t.Errorf("outcome %+v, open %d", out, b.Open(key))
	}
	want(t, b, "#0 1/5:*=2 -2 black+[a]-[]")
	out = grantAll(b, 2, on(key, 3, "b"))
	want(t, b, "#0 black+[b]-[]")
	b.Answer(&pb.AllocateResponseProto{CompletedContainerStatuses: []*pb.ContainerStatusProto{completed(2, -100), completed(1, 1)}})
	want(t, b, "#0 black+[]-[a]") // there is room again
	b.Resync()
	want(t, b, "#0 1/5:*=1 black+[b bad]-[]")
	b.Answer(&pb.AllocateResponseProto{AllocatedContainers: []*pb.ContainerProto{on(key, 4, "a")}})
	want(t, b, "#0 black+[]-[b]") // nothing is wanted: the master's own remain
	if len(out.Granted) != 1 || b.Open(key) != 0 {
		t.Errorf("outcome %+v, open %d", out, b.Open(key))
	}
	b.RefusedBlacklist()
	b.Want(Ask{Key: key, Count: 1, PerNode: 1})
	want(t, b, "#0 1/5:*=1") // by giving back alone
}

// TestSpread fills hosts evenly, and gives up when that gets nothing.
func TestSpread(t *testing.T) {
	b := New(token.Token{})
	grantAll(b, 2)
	b.Want(Ask{Key: key, Count: 4, Spread: true})
	out := grantAll(b, 2, on(key, 1, "a"), on(key, 2, "a"), on(key, 3, "a"))
	if len(out.Granted) != 2 || len(out.Crowded) != 1 {
		t.Errorf("outcome %+v", out)
	}
	want(t, b, "#0 1/5:*=2 -3 black+[a]-[]")
	for range patience + 1 {
		grantAll(b, 2)
	}
	want(t, b, "#0 black+[]-[a]")
	out = grantAll(b, 2, on(key, 4, "a"), on(key, 5, "a"))
	if len(out.Granted) != 2 || b.Open(key) != 0 {
		t.Errorf("outcome %+v", out)
	}
}

// TestConstrained leaves the limit to the scheduler, and keeps it itself once that refuses.
func TestConstrained(t *testing.T) {
	b := New(token.Token{})
	b.Want(Ask{Key: key, Count: 3, MemoryMB: 64, PerNode: 1, Constrain: true, Label: "fast"})
	b.Want(Ask{Key: Key{2, 2}, Count: 1})
	r := b.Request()
	if len(r.Ask) != 1 || len(r.SchedulingRequests) != 1 {
		t.Fatalf("heartbeat %v", r)
	}
	q := r.SchedulingRequests[0]
	c := q.GetPlacementConstraint().GetSimpleConstraint()
	if q.GetAllocationRequestId() != 5 || q.GetResourceSizing().GetNumAllocations() != 3 || c.GetScope() != "node" || c.GetMaxCardinality() != 0 || len(c.TargetExpressions) != 2 {
		t.Errorf("request %v", q)
	}
	if !b.RefusedConstraints() || b.RefusedConstraints() {
		t.Error("the refusal is not told once")
	}
	want(t, b, "#0 1/5:*=3 2/2:*=1")
	out := grantAll(b, 2, on(key, 1, "a"), on(key, 2, "a"))
	if len(out.Crowded) != 1 {
		t.Errorf("outcome %+v", out)
	}
	two := &Ask{PerNode: 2}
	if m := constrainedRequest(two).GetPlacementConstraint().GetSimpleConstraint().GetMaxCardinality(); m != 2 {
		t.Errorf("two a host are %d", m)
	}
}

// TestGivenUp: what the ResourceManager gives up to place goes out again without constraints, and nothing else does.
func TestGivenUp(t *testing.T) {
	b := New(token.Token{})
	b.Want(Ask{Key: key, Count: 3, MemoryMB: 64, PerNode: 1, Constrain: true})
	b.Want(Ask{Key: Key{2, 2}, Count: 1})
	b.Request()
	out := b.Answer(&pb.AllocateResponseProto{AllocatedContainers: []*pb.ContainerProto{on(key, 1, "a")},
		RejectedSchedulingRequests: []*pb.RejectedSchedulingRequestProto{{Reason: pb.RejectionReasonProto_RRP_COULD_NOT_PLACE_ON_NODE.Enum()}}})
	if len(out.Granted) != 1 || len(out.Refused) != 1 {
		t.Errorf("outcome %+v", out)
	}
	want(t, b, "#0 1/5:*=2")
}

// TestResponseWraps: the number of the last answer goes back as it is, also around its end.
func TestResponseWraps(t *testing.T) {
	b := New(token.Token{})
	for _, n := range []int32{1<<31 - 2, 1<<31 - 1, 0, 1} {
		b.Request()
		b.Answer(&pb.AllocateResponseProto{ResponseId: &n})
		want(t, b, fmt.Sprintf("#%d", n))
	}
}

// TestContract tells containers that will be taken from those of which others do as well.
func TestContract(t *testing.T) {
	b := New(token.Token{})
	b.Request()
	out := b.Answer(&pb.AllocateResponseProto{Preempt: &pb.PreemptionMessageProto{Contract: &pb.PreemptionContractProto{
		Resource: []*pb.PreemptionResourceRequestProto{{Resource: &pb.ResourceRequestProto{NumContainers: proto.Int32(2), Capability: &pb.ResourceProto{Memory: proto.Int64(64), VirtualCores: proto.Int32(1)}}}}}}})
	if len(out.Wishes) != 1 || out.Wishes[0] != (Wish{64, 1, 2}) {
		t.Errorf("outcome %+v", out)
	}
}
