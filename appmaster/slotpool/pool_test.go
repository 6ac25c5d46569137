package slotpool

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/internal/cluster"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestScripts runs the files in testdata/scripts. Commands, each of which prints what Due says after it:
//
//	new [evenly] [timeout=30s] [batch=1000]
//	request BULK GROUP*WIDTH… [replaces=BULK] [racks=…] [mem=0] [prev=AGENT/INDEX,…] [hosts=…] [agents=…]
//	offer AGENT*SLOTS… [mem=0] [host=h] [rack=]     allocations are numbered on
//	lost N… | release N… | withdraw BULK | starved | outlook
//	tick DURATION
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	m    *Machine
	now  time.Time
	next cluster.AllocationID
	asks map[int][]SlotRequest
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	opt := map[string][]string{}
	var words []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			words = append(words, a.Key)
		} else {
			opt[a.Key] = a.Vals
		}
	}
	atoi := func(w string) int {
		n, err := strconv.Atoi(w)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return n
	}
	mem := func() (p cluster.Profile) {
		if v := opt["mem"]; v != nil {
			p.MemoryMB = int64(atoi(v[0]))
		}
		return p
	}
	ids := func() (out []cluster.AllocationID) {
		for _, w := range words {
			out = append(out, cluster.AllocationID(atoi(w)))
		}
		return out
	}
	switch d.Cmd {
	case "new":
		cfg := Config{}
		if v := opt["batch"]; v != nil {
			cfg.MatchBatch = atoi(v[0])
		}
		if d.HasArg("evenly") {
			cfg.Strategy = EvenlySpread
		}
		if v := opt["timeout"]; v != nil {
			cfg.Timeout, _ = time.ParseDuration(v[0])
		}
		s.m, s.now, s.next, s.asks = New(cfg), epoch, 1, map[int][]SlotRequest{}
	case "request":
		r := Request{Bulk: atoi(words[0])}
		if v := opt["replaces"]; v != nil {
			r.Replaces = atoi(v[0])
		}
		for _, w := range words[1:] {
			group, width, _ := strings.Cut(w, "*")
			for i := range atoi(width) {
				r.Requests = append(r.Requests, SlotRequest{Group: group, Index: i, Profile: mem(), Hosts: opt["hosts"], Racks: opt["racks"]})
			}
		}
		for i, p := range opt["prev"] {
			if id, index, ok := strings.Cut(p, "/"); ok {
				r.Requests[i].Previous = cluster.SlotID{Agent: cluster.AgentID(id), Index: atoi(index)}
			}
		}
		for i := range r.Requests {
			for _, a := range opt["agents"] {
				r.Requests[i].Agents = append(r.Requests[i].Agents, cluster.AgentID(a))
			}
		}
		s.asks[r.Bulk] = r.Requests
		s.m.Handle(s.now, r)
	case "offer":
		host := "h"
		if v := opt["host"]; v != nil {
			host = v[0]
		}
		rack := ""
		if v := opt["rack"]; v != nil {
			rack = v[0]
		}
		var o Offer
		for _, w := range words {
			id, n, _ := strings.Cut(w, "*")
			for i := range atoi(n) {
				o.Slots = append(o.Slots, cluster.Slot{ID: cluster.SlotID{Agent: cluster.AgentID(id), Index: i}, Allocation: s.next, Profile: mem(), Host: host, Rack: rack})
				s.next++
			}
		}
		s.m.Handle(s.now, o)
		s.m.Handle(s.now, o) // doubled messages change nothing
	case "lost":
		s.m.Handle(s.now, Lost{ids()})
	case "release":
		s.m.Handle(s.now, Release{ids()})
	case "withdraw":
		s.m.Handle(s.now, Withdraw{atoi(words[0])})
	case "starved":
		s.m.Handle(s.now, Starved{"agent a1 exited with status 1"})
	case "outlook":
		s.m.Handle(s.now, Outlook{"1 agent of 2 slots is there, 1 has been starting for 29s"})
	case "tick":
		by, err := time.ParseDuration(words[0])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.now = s.now.Add(by)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	out := s.print(s.m.Due(s.now))
	for s.m.More() {
		out = strings.TrimPrefix(out, "ok\n") + "more\n" + strings.TrimPrefix(s.print(s.m.Due(s.now)), "ok\n")
	}
	if err := check(s.m); err != nil {
		out += fmt.Sprintf("INVARIANT BROKEN: %v\n", err)
	}
	return out
}

func (s *script) print(effects []Effect) string {
	var out strings.Builder
	for _, e := range effects {
		switch e := e.(type) {
		case Fulfilled:
			fmt.Fprintf(&out, "fulfilled %d:", e.Bulk)
			for i, g := range e.Slots {
				fmt.Fprintf(&out, " %s%d=%s#%d", s.asks[e.Bulk][i].Group, s.asks[e.Bulk][i].Index, g.ID, g.Allocation)
			}
		case Failed:
			fmt.Fprintf(&out, "failed %d: %v: %s", e.Bulk, e.Failure.Kind, e.Failure.Message)
		case Declare:
			out.WriteString("declare")
			for _, r := range e.Requirements {
				fmt.Fprintf(&out, " %d", r.Count)
				if r.Profile.MemoryMB > 0 {
					fmt.Fprintf(&out, "×%dMiB", r.Profile.MemoryMB)
				}
			}
		case Free:
			fmt.Fprintf(&out, "free %v", e.Allocations)
		}
		out.WriteByte('\n')
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

// check recomputes what the Machine keeps by increments.
func check(m *Machine) error {
	free, need := 0, map[cluster.Profile]int{}
	for row := range m.slots {
		s := &m.slots[row]
		switch {
		case s.Allocation == 0:
			continue
		case m.byAlloc[s.Allocation] != row:
			return fmt.Errorf("slot %v is not under its allocation", s.ID)
		case m.match.has(row): // its bulk counts
		case s.pos < 0:
			need[m.sizes[s.want]]++
		case int(m.agents[s.agent].freeOf(int(s.class)).rows[s.pos]) != row:
			return fmt.Errorf("slot %v is not where its agent has it", s.ID)
		default:
			free++
		}
	}
	inLists := 0
	for i := range m.agents {
		inLists += m.agents[i].frees()
	}
	if free != m.free || free != inLists {
		return fmt.Errorf("%d slots are free, the count says %d, the lists %d", free, m.free, inLists)
	}
	for _, b := range m.bulks {
		for _, r := range b.Requests {
			need[r.Profile]++
		}
	}
	got := map[cluster.Profile]int{}
	for _, r := range m.need {
		got[r.Profile] = r.Count
	}
	if !maps.Equal(got, need) {
		return fmt.Errorf("need is %v, kept as %v", need, got)
	}
	return nil
}

// TestInvariants plays scheduler and resource side against the pool.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(Config{Strategy: Strategy(rapid.IntRange(0, 1).Draw(t, "strategy")), MatchBatch: rapid.IntRange(1, 4).Draw(t, "batch")})
		now, bulks, next := epoch, 0, cluster.AllocationID(0)
		held, used := map[cluster.AllocationID]cluster.Slot{}, map[cluster.AllocationID]bool{}
		asked := map[int]Request{}
		declared := 0
		profile := rapid.Custom(func(t *rapid.T) cluster.Profile {
			return cluster.Profile{MemoryMB: int64(rapid.IntRange(0, 3).Draw(t, "mem"))}
		})
		some := func(t *rapid.T) (ids []cluster.AllocationID) {
			for _, id := range slices.Sorted(maps.Keys(held)) {
				if rapid.Bool().Draw(t, "it") {
					ids = append(ids, id)
				}
			}
			return ids
		}
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) {
				bulks++
				r := Request{Bulk: bulks}
				if rapid.IntRange(0, 4).Draw(t, "replaces") == 0 {
					r.Replaces = bulks - 1
					delete(asked, bulks-1)
				}
				for range rapid.IntRange(1, 4).Draw(t, "n") {
					q := SlotRequest{Profile: profile.Draw(t, "profile")}
					if rapid.Bool().Draw(t, "had one") {
						q.Previous = cluster.SlotID{Agent: cluster.AgentID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent")), Index: rapid.IntRange(0, 2).Draw(t, "index")}
					}
					r.Requests = append(r.Requests, q)
				}
				asked[bulks] = r
				m.Handle(now, r)
			},
			"offer": func(t *rapid.T) {
				id := cluster.AgentID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "agent"))
				var o Offer
				for i := range rapid.IntRange(1, 3).Draw(t, "n") {
					next++
					s := cluster.Slot{ID: cluster.SlotID{Agent: id, Index: i}, Allocation: next, Profile: profile.Draw(t, "profile"), Host: "h"}
					held[next] = s
					o.Slots = append(o.Slots, s)
				}
				m.Handle(now, o)
			},
			"lost": func(t *rapid.T) {
				ids := some(t)
				for _, id := range ids {
					delete(held, id)
					delete(used, id)
				}
				m.Handle(now, Lost{ids})
			},
			"release": func(t *rapid.T) {
				ids := some(t)
				for _, id := range ids {
					delete(used, id)
				}
				m.Handle(now, Release{ids})
			},
			"withdraw": func(t *rapid.T) {
				b := rapid.IntRange(0, bulks).Draw(t, "bulk")
				delete(asked, b)
				m.Handle(now, Withdraw{b})
			},
			"time": func(*rapid.T) { now = now.Add(7 * time.Second) },
			"": func(t *rapid.T) {
				effects := m.Due(now)
				for m.More() && rapid.Bool().Draw(t, "go on") { // else events come between the steps of a match
					effects = append(effects, m.Due(now)...)
				}
				more := m.More()
				for _, e := range effects {
					switch e := e.(type) {
					case Fulfilled:
						r := asked[e.Bulk]
						delete(asked, e.Bulk)
						for i, s := range e.Slots {
							if used[s.Allocation] {
								t.Fatalf("slot %v is in two hands", s.ID)
							}
							if want := r.Requests[i].Profile; !want.Fits(held[s.Allocation].Profile) {
								t.Fatalf("slot %v does not fit %v", s, want)
							}
							used[s.Allocation] = true
						}
					case Failed:
						delete(asked, e.Bulk)
					case Declare:
						declared = 0
						for _, r := range e.Requirements {
							declared += r.Count
						}
					case Free:
						for _, id := range e.Allocations {
							if used[id] {
								t.Fatalf("gave back %d, which is in use", id)
							}
							delete(held, id)
						}
					}
				}
				if err := check(m); err != nil {
					t.Fatal(err)
				}
				if !more {
					if again := m.Due(now); len(again) > 0 {
						t.Fatalf("Due has more to say at once: %v", again)
					}
				}
				want := len(used)
				for _, r := range asked {
					want += len(r.Requests)
				}
				if declared != want {
					t.Fatalf("declared %d slots, want %d", declared, want)
				}
			},
		})
	})
}

// settle lets Due have its say until there is no more.
func settle(m *Machine) []Effect {
	out := m.Due(epoch)
	for m.More() {
		out = append(out, m.Due(epoch)...)
	}
	return out
}

// TestMatch compares match with trying everything: it finds a full match where there is one.
func TestMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := rapid.SliceOfN(rapid.Int64Range(0, 4), 1, 5)
		slots, wants := mem.Draw(t, "slots"), mem.Draw(t, "wants")
		m := New(Config{Strategy: Strategy(rapid.IntRange(0, 1).Draw(t, "strategy"))})
		var offer Offer
		for i, s := range slots {
			offer.Slots = append(offer.Slots, cluster.Slot{ID: cluster.SlotID{Agent: cluster.AgentID(fmt.Sprint(i % 2)), Index: i}, Allocation: cluster.AllocationID(i + 1), Profile: cluster.Profile{MemoryMB: s}})
		}
		requests := make([]SlotRequest, len(wants))
		for i, w := range wants {
			requests[i].Profile.MemoryMB = w
		}
		m.Handle(epoch, Request{Bulk: 1, Requests: requests})
		m.Handle(epoch, offer)
		got := false
		for _, e := range settle(m) {
			_, ok := e.(Fulfilled)
			got = got || ok
		}
		if got != possible(slots, wants) {
			t.Fatalf("match = %v for %v out of %v", got, wants, slots)
		}
	})
}

func possible(slots, wants []int64) bool {
	if len(wants) == 0 {
		return true
	}
	for i, s := range slots {
		if s >= wants[0] && possible(slices.Delete(slices.Clone(slots), i, i+1), wants[1:]) {
			return true
		}
	}
	return false
}

// BenchmarkSlots offers 100,000 slots of 10,000 agents, matches them in one bulk and gives them back one by one.
func BenchmarkSlots(b *testing.B) {
	const agents, slots = 10_000, 10
	var o Offer
	requests := make([]SlotRequest, agents*slots)
	for i := range requests {
		id := cluster.SlotID{Agent: cluster.AgentID(fmt.Sprint("agent-", i/slots)), Index: i % slots}
		o.Slots = append(o.Slots, cluster.Slot{ID: id, Allocation: cluster.AllocationID(i + 1)})
	}
	for _, prev := range []bool{false, true} {
		b.Run(fmt.Sprintf("previous=%v", prev), func(b *testing.B) {
			for i := range requests {
				requests[i].Previous = cluster.SlotID{}
				if prev {
					requests[i].Previous = o.Slots[len(o.Slots)-1-i].ID
				}
			}
			for b.Loop() {
				m := New(Config{Strategy: EvenlySpread})
				m.Handle(epoch, Request{Bulk: 1, Requests: requests})
				m.Handle(epoch, o)
				var all []cluster.Slot
				for _, e := range settle(m) {
					if f, ok := e.(Fulfilled); ok {
						all = f.Slots
					}
				}
				for _, s := range all {
					m.Handle(epoch, Release{[]cluster.AllocationID{s.Allocation}})
					m.Due(epoch)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/agents/slots, "ns/slot")
		})
	}
}
