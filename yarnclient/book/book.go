package book

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Key names an ask. One key has one capability.
type Key struct {
	Priority int32
	Request  int64
}

// Ask is how many containers of a kind are still wanted.
type Ask struct {
	Key      Key
	Count    int
	MemoryMB int64
	VCores   int32
	Custom   map[string]int64 // other kinds of resources by name, in the cluster's units
	Label    string           // node label; "": the queue's default
	Nodes    []string         // preferred hosts
	Racks    []string         // of the preferred hosts, or preferred by themselves
	Strict   bool             // nowhere but on the preferred hosts and racks
	PerNode  int              // most containers of the key on one host; 0: any number
	Spread   bool             // over as many hosts as there are, as long as that does not hold grants up
	// Constrain leaves PerNode to the scheduler, by a placement constraint. It needs a scheduler that takes those; one that
	// refuses is not asked so again. Preferred hosts and racks can't be had with it.
	Constrain bool
}

// Grant is a container that the ResourceManager gave.
type Grant struct {
	Container yarnid.Container
	Key       Key
	Node      string // host:port of its NodeManager
	HTTP      string // host:port of its web service
	MemoryMB  int64
	VCores    int32
	Token     token.Token // to start it with
}

// Done is a container that has ended.
type Done struct {
	Container   yarnid.Container
	ExitStatus  int
	Diagnostics string
}

// Node is a node whose state changed.
type Node struct {
	ID, HTTP string
	State    pb.NodeStateProto
	Health   string
	Timeout  uint32 // seconds until a decommissioning node is gone
}

// Preempted is a container that the ResourceManager wants back.
type Preempted struct {
	Container yarnid.Container
	Strict    bool // it will be taken; else giving back others of the same size would do
}

// Wish is resources that the ResourceManager wants back, whichever containers they are in.
type Wish struct {
	MemoryMB int64
	VCores   int32
	Count    int
}

// Outcome is what a heartbeat's answer brings.
type Outcome struct {
	Granted   []Grant            // that were wanted
	Kept      []Grant            // of earlier attempts; their tokens are empty
	Surplus   []yarnid.Container // that nobody asked for; they go back
	Crowded   []yarnid.Container // on hosts that had their most already; they go back and are asked for again
	Completed []Done
	Nodes     []Node
	Preempt   []Preempted
	Wishes    []Wish // what would do instead of containers of Preempt that are not strict
	Updated   []*pb.UpdatedContainerProto
	Refused   []*pb.RejectedSchedulingRequestProto
	NewToken  *token.Token // replaces the master's own
	Headroom  *pb.ResourceProto
	Cluster   int  // nodes of the cluster
	Resync    bool // the master must register again
	Shutdown  bool // the master must end
}

// Rejected is an ask that the ResourceManager will not take. It is dropped.
type Rejected struct {
	Key Key
}

// Book is the account. It is not for concurrent use.
type Book struct {
	response int32
	progress float32
	tracking *string

	asks  map[Key]*Ask
	dirty map[Key]bool
	named map[Key]map[string]bool // resource names that were asked for under a key, apart from "*"
	alone bool                    // asks are sent one a heartbeat, since one of several is bad

	live     map[yarnid.Container]where // granted and not completed
	recent   []yarnid.Container         // completed lately, a ring
	recentAt int
	ended    map[yarnid.Container]bool // the elements of recent

	toRelease []yarnid.Container        // not sent yet
	releasing map[yarnid.Container]bool // released and not completed

	black    map[string]bool // hosts that the master excludes
	told     map[string]bool // hosts that the ResourceManager was told to exclude, or is in the message in flight
	noBlack  bool            // it does not take a blacklist
	cluster  int             // nodes; 0: not known
	hungry   map[Key]int     // heartbeats since the last grant, or since the ask changed, while something is wanted
	refusesC bool            // the scheduler does not take placement constraints

	nmTokens       map[string]token.Token
	amrm           token.Token
	flight         *pb.AllocateRequestProto // sent and not answered
	flightAsks     []Key
	flightReleases []yarnid.Container
	flightTold     map[string]bool // told before the message in flight
}

// where is a container's key and host.
type where struct {
	key  Key
	host string
}

// remembered is how many completed containers are known as such, so that a completion told twice is reported once.
const remembered = 4096

// New returns an empty account of a master that holds a token.
func New(amrm token.Token) *Book {
	return &Book{
		asks: map[Key]*Ask{}, dirty: map[Key]bool{}, named: map[Key]map[string]bool{},
		live: map[yarnid.Container]where{}, ended: map[yarnid.Container]bool{}, releasing: map[yarnid.Container]bool{},
		black: map[string]bool{}, told: map[string]bool{}, hungry: map[Key]int{}, nmTokens: map[string]token.Token{}, amrm: amrm,
	}
}

// Want sets how many containers are still wanted under a key. Zero withdraws the ask.
func (b *Book) Want(a Ask) {
	a.Count = max(a.Count, 0)
	old, ok := b.asks[a.Key]
	if !ok && a.Count == 0 || ok && same(*old, a) {
		return
	}
	b.asks[a.Key] = &a
	b.dirty[a.Key] = true
	delete(b.hungry, a.Key)
}

func same(a, b Ask) bool {
	return a.Count == b.Count && a.MemoryMB == b.MemoryMB && a.VCores == b.VCores && a.Label == b.Label && a.Strict == b.Strict &&
		a.PerNode == b.PerNode && a.Spread == b.Spread && a.Constrain == b.Constrain &&
		maps.Equal(a.Custom, b.Custom) && slices.Equal(a.Nodes, b.Nodes) && slices.Equal(a.Racks, b.Racks)
}

// Open is how many containers are still wanted under a key.
func (b *Book) Open(k Key) int {
	if a := b.asks[k]; a != nil {
		return a.Count
	}
	return 0
}

// Pending reports whether anything is wanted or not sent yet, so that heartbeats should be frequent.
func (b *Book) Pending() bool {
	for _, a := range b.asks {
		if a.Count > 0 {
			return true
		}
	}
	return b.Unsent()
}

// Unsent reports whether the next heartbeat has something to say.
func (b *Book) Unsent() bool {
	return len(b.dirty)+len(b.toRelease) > 0 || !maps.Equal(b.told, b.excluded())
}

// Live is how many containers are granted and not completed, those to be given back among them.
func (b *Book) Live() int { return len(b.live) }

// Release gives a container back. It is said again after a resync, until the container is reported as completed.
func (b *Book) Release(c yarnid.Container) {
	if b.releasing[c] || b.ended[c] {
		return
	}
	b.releasing[c] = true
	b.toRelease = append(b.toRelease, c)
}

// Blacklist sets the hosts to get no containers on.
func (b *Book) Blacklist(hosts []string) {
	b.black = map[string]bool{}
	for _, h := range hosts {
		b.black[h] = true
	}
}

// Progress sets what part of the work is done, from 0 to 1.
func (b *Book) Progress(p float32) { b.progress = p }

// TrackingURL sets the address of the master's pages.
func (b *Book) TrackingURL(u string) { b.tracking = &u }

// NMToken returns the token for a node's NodeManager.
func (b *Book) NMToken(node string) (token.Token, bool) {
	t, ok := b.nmTokens[node]
	return t, ok
}

// Request returns the next heartbeat's message, and after a lost answer the same again.
func (b *Book) Request() *pb.AllocateRequestProto {
	if b.flight != nil {
		return b.flight
	}
	r := &pb.AllocateRequestProto{ResponseId: proto.Int32(b.response), Progress: proto.Float32(b.progress), TrackingUrl: b.tracking}
	b.flightAsks = nil
	for _, k := range slices.SortedFunc(maps.Keys(b.dirty), compareKeys) {
		if a := b.asks[k]; b.constrained(a) {
			r.SchedulingRequests = append(r.SchedulingRequests, constrainedRequest(a))
		} else {
			r.Ask = append(r.Ask, b.requests(k)...)
		}
		b.flightAsks = append(b.flightAsks, k)
		delete(b.dirty, k)
		if b.alone {
			break
		}
	}
	b.alone = b.alone && len(b.dirty) > 0
	for _, c := range b.toRelease {
		r.Release = append(r.Release, c.Proto())
	}
	b.flightReleases, b.toRelease = b.toRelease, nil
	b.flightTold = b.told
	b.told = b.excluded()
	if add, remove := without(b.told, b.flightTold), without(b.flightTold, b.told); len(add)+len(remove) > 0 {
		r.BlacklistRequest = &pb.ResourceBlacklistRequestProto{BlacklistAdditions: add, BlacklistRemovals: remove}
	}
	b.flight = r
	return r
}

func compareKeys(x, y Key) int {
	return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(x.Request, y.Request))
}

// requests returns what is to be said about a key: its total, its preferred hosts and racks, and zero for those no longer preferred.
func (b *Book) requests(k Key) []*pb.ResourceRequestProto {
	a := b.asks[k]
	capability := a.capability()
	one := func(name string, n int, relax bool) *pb.ResourceRequestProto {
		r := &pb.ResourceRequestProto{
			Priority: &pb.PriorityProto{Priority: proto.Int32(k.Priority)}, ResourceName: &name, Capability: capability,
			NumContainers: proto.Int32(int32(n)), RelaxLocality: &relax, AllocationRequestId: proto.Int64(k.Request),
		}
		if a.Label != "" && name == "*" {
			r.NodeLabelExpression = &a.Label
		}
		return r
	}
	var out []*pb.ResourceRequestProto
	before, now := b.named[k], map[string]bool{}
	for _, h := range a.Nodes {
		out = append(out, one(h, a.Count, true))
		now[h] = true
	}
	for _, rack := range a.Racks {
		// With strict hosts the rack is named for them, and is no place by itself.
		out = append(out, one(rack, a.Count, !a.Strict || len(a.Nodes) == 0))
		now[rack] = true
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !now[name] {
			out = append(out, one(name, 0, true))
		}
	}
	out = append(out, one("*", a.Count, !a.Strict))
	b.named[k] = now
	return out
}

// capability is what each container of an ask has.
func (a *Ask) capability() *pb.ResourceProto {
	p := &pb.ResourceProto{Memory: &a.MemoryMB, VirtualCores: &a.VCores}
	for _, name := range slices.Sorted(maps.Keys(a.Custom)) {
		v := a.Custom[name]
		p.ResourceValueMap = append(p.ResourceValueMap, &pb.ResourceInformationProto{Key: &name, Value: &v, Type: pb.ResourceTypesProto_COUNTABLE.Enum()})
	}
	return p
}
