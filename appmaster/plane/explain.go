package plane

import (
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// Pending is what a job waits for, and why it has not got it.
type Pending struct {
	Job     cluster.JobID `json:"job"`
	Asked   string        `json:"asked"` // such as "4 slots of 512 MiB"; or agents, if Slots is 0
	Slots   int           `json:"slots"` // of these; 0: it has all that it needs, but would not be given more
	Since   time.Time     `json:"since"`
	Reasons []Reason      `json:"reasons"` // the most telling one first
}

// Reason is why a request is pending.
type Reason struct {
	Code string `json:"code"`          // one of the list below
	Text string `json:"text"`          // for people
	Fix  string `json:"fix,omitempty"` // what would help; "": waiting
}

// Codes of reasons.
const (
	ReasonStarved   = "starved"    // no more agents will be asked for
	ReasonTooLarge  = "too-large"  // no agent can have such a slot
	ReasonLimit     = "limit"      // there may not be more agents, or slots
	ReasonTurn      = "turn"       // who came before lacks slots too
	ReasonHolding   = "holding"    // held back, to be spread evenly
	ReasonFormer    = "former"     // slots are still in use by tasks of an earlier attempt
	ReasonStarting  = "starting"   // agents are starting
	ReasonAsked     = "asked"      // agents were asked for and not granted
	ReasonProbation = "probation"  // agents that may be lost get no new slots
	ReasonExcluded  = "excluded"   // hosts on which agents keep failing get none
	ReasonMatching  = "matching"   // being worked at
	ReasonUnplaced  = "fragmented" // there is enough in all, but no agent has enough of it left
)

// Explain says for each job that waits for slots what it waits for and why; and, of jobs that have all that they need, that
// agents which fail are not replaced any more, so that it is known before slots are lacking.
func (p *Plane) Explain(now time.Time) (out []Pending) {
	supply := p.Slots.Supply()
	for i := range p.Jobs {
		requests, since := p.Jobs[i].Pool.Waiting()
		if len(requests) == 0 {
			if state, _ := p.Jobs[i].Sched.State(); supply.Starved != "" && !state.Final() {
				out = append(out, Pending{
					Job: p.Jobs[i].ID, Asked: "agents in place of those that are gone", Since: supply.StarvedSince, Reasons: []Reason{starved(supply)},
				})
			}
			continue
		}
		out = append(out, Pending{
			Job: p.Jobs[i].ID, Asked: slotpool.Describe(requests), Slots: len(requests), Since: since,
			Reasons: p.reasons(now, i, requests, supply),
		})
	}
	return out
}

func (p *Plane) reasons(now time.Time, job int, requests []slotpool.SlotRequest, s slotmgr.Supply) (out []Reason) {
	add := func(is bool, code, fix, format string, args ...any) {
		if is {
			out = append(out, Reason{code, fmt.Sprintf(format, args...), fix})
		}
	}
	for _, q := range p.tooLarge(requests) {
		add(true, ReasonTooLarge, "raise what agents have, or ask for less", "no agent can have a slot of %v: an agent has %v", q, p.Slots.Expected())
	}
	if s.Starved != "" {
		out = append(out, starved(s))
	}
	there := s.Alive + s.Probation + s.Starting + s.Asked
	option := limits[s.LimitBy]
	add(s.Limit > 0 && there >= s.Limit, ReasonLimit, "raise "+option+", or lower the job's parallelism", "there are as many agents as may be: %d (%s)", s.Limit, option)
	add(s.Full, ReasonLimit, "raise slots.max, or lower the job's parallelism", "there are as many slots as may be: %d (slots.max)", s.Slots)
	for before := range job {
		if r, _ := p.Jobs[before].Pool.Waiting(); len(r) > 0 {
			add(true, ReasonTurn, "", "job %s came before and waits for %s", p.Jobs[before].ID, slotpool.Describe(r))
		}
	}
	add(s.Former > 0, ReasonFormer, "", "%s still in use by tasks of the attempt before, which were told to stop", are(s.Former, "slot"))
	if s.Starting > 0 {
		age := now.Sub(s.Since).Round(time.Second)
		add(true, ReasonStarting, "", "%s starting, for up to %v", are(s.Starting, "agent"), max(age, 0))
	}
	add(s.Asked > 0, ReasonAsked, "", "%s asked for and not granted", are(s.Asked, "agent"))
	add(s.Holding, ReasonHolding, "", "slots are held back for a moment, to be spread over the agents that are to come (slot.selection is evenly-spread)")
	add(s.Probation > 0, ReasonProbation, "", "%s on probation and gets no new slots: %s", are(s.Probation, "agent"), strings.Join(s.Suspects, "; "))
	add(len(s.Excluded) > 0, ReasonExcluded, "agents.host-failures and agents.host-exclusion", "agents keep failing on %s, which is excluded for now", strings.Join(s.Excluded, ", "))
	add(p.Jobs[job].Pool.More() || p.Slots.More(), ReasonMatching, "", "slots are being given")
	add(len(out) == 0 && s.Cut, ReasonUnplaced, "", "what is left of agents, %v in all, is in pieces that are too small", s.Left)
	return out
}

func starved(s slotmgr.Supply) Reason {
	return Reason{ReasonStarved, "no more agents will come: " + s.Starved, "the agents' logs say why they failed; agents.failures lets more of them fail"}
}

// tooLarge are the profiles, of those asked for, that no agent can have.
func (p *Plane) tooLarge(requests []slotpool.SlotRequest) (out []cluster.Profile) {
	seen := map[cluster.Profile]bool{}
	for i := range requests {
		if q := requests[i].Profile; !seen[q] {
			seen[q] = true
			if !p.Slots.CanServe(q) {
				out = append(out, q)
			}
		}
	}
	return out
}

func are(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

// CheckProfiles reports a slot sharing group that asks for more than an agent has, so that the job is refused before anything runs.
func CheckProfiles(g *jobgraph.Graph, agent cluster.Profile) error {
	for _, n := range g.SlotsNeeded() {
		if n.Profile.Fits(agent) {
			continue
		}
		var raise []string
		if n.Profile.MilliCPU > agent.MilliCPU {
			raise = append(raise, "agent.cpu")
		}
		if n.Profile.MemoryMB > agent.MemoryMB {
			raise = append(raise, "agent.memory")
		}
		if !(cluster.Profile{Custom: n.Profile.Custom}).Fits(agent) {
			raise = append(raise, "agent.resources")
		}
		has := "an agent has " + agent.String()
		if agent == (cluster.Profile{}) {
			has = "what an agent has is not said"
		}
		return fmt.Errorf("cannot place slot sharing group %s: each of its slots asks for %v, but %s; set %s to as much or more",
			n.Group, n.Profile, has, strings.Join(raise, " and "))
	}
	return nil
}
