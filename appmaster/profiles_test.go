package appmaster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/profile"
)

// TestProfileRegistry: one at a time of a process; parts count only from whom they are expected; what is overdue, lost or too large is told; few are kept.
func TestProfileRegistry(t *testing.T) {
	now := time.UnixMilli(1e12)
	p := &profiles{allowed: true}
	a, err := p.begin("agent-1", profile.CPU, 30*time.Second, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.begin("agent-1", profile.Heap, 0, now); !errors.Is(err, ErrProfiling) {
		t.Errorf("a second at a time: %v", err)
	}
	b, err := p.begin("agent-2", profile.Heap, 0, now)
	if err != nil {
		t.Fatal(err)
	}
	p.part("agent-2", a.ID, []byte("forged"), true, "", now)
	p.part("agent-1", a.ID, []byte("one "), false, "", now)
	p.part("agent-1", a.ID, []byte("two"), true, "", now)
	p.part("agent-1", a.ID, []byte("late"), true, "", now)
	p.lost("agent-2", "gone", now)
	m := &master{}
	m.profiles.allowed, m.profiles.all = true, p.all
	if got := string(m.ProfileData(a.ID)); got != "" && got != "one two" {
		t.Errorf("got %q", got)
	}
	if s := fmt.Sprint(p.all[0].State, string(p.all[0].data), p.all[1].State, p.all[1].Error); s != "takenone twofailedgone" {
		t.Errorf("registry: %s (of %d)", s, b.ID)
	}
	c, _ := p.begin("agent-1", profile.Stacks, 0, now)
	for range profile.MaxSize>>20 + 1 {
		p.part("agent-1", c.ID, make([]byte, 1<<20), false, "", now)
	}
	if r := p.all[2]; r.State != ProfileFailed || !strings.Contains(r.Error, "larger") || r.data != nil {
		t.Errorf("too large: %+v", r.ProcessProfile)
	}
	if _, err := p.begin("agent-1", profile.Heap, 0, now); err != nil {
		t.Fatal(err)
	}
	if _, err := p.begin("agent-1", profile.Heap, 0, now.Add(2*profileGrace)); err != nil {
		t.Errorf("after one that never came: %v", err)
	}
	p.mu.Lock()
	p.tidy(now.Add(time.Hour))
	p.mu.Unlock()
	if len(p.all) != 1 {
		t.Errorf("%d are kept after an hour, want the one that has just failed", len(p.all))
	}
	if _, err := (&profiles{}).begin("agent-1", profile.Heap, 0, now); !errors.Is(err, ErrNoProfiles) {
		t.Errorf("switched off: %v", err)
	}
}

// TestMasterProfilesItself takes the stacks of the ApplicationMaster while the job runs, and refuses agents that there are not.
func TestMasterProfilesItself(t *testing.T) {
	d := &fakeDriver{behave: func(a *fakeAgent) { a.onTask = hang }}
	c := config(t, &fakeSource{discover: once(1)}, d)
	c.Profiles = true
	m, out := start(t, t.Context(), c)
	await(t, m, "all tasks running", running)
	if _, err := m.TakeProfile("agent-99", profile.Heap, 0); !errors.Is(err, ErrNoProcess) {
		t.Errorf("an agent that is not there: %v", err)
	}
	p, err := m.TakeProfile(MasterProcess, profile.Stacks, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if all := m.Profiles(); all[0].State != ProfileRunning {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if text := string(m.ProfileData(p.ID)); !strings.Contains(text, "appmaster.(*master).loop(…)") {
		t.Errorf("the stacks lack the loop: %.500s", text)
	}
	if _, err := m.TakeProfile(MasterProcess, profile.CPU, time.Minute); err != nil {
		t.Error(err)
	}
	m.Cancel("that will do") // a profile does not hold the end up
	<-out
}

// TestContainersAreShown: an agent that was killed leaves its container with its times, its end and last words; the job's states and failure are kept.
func TestContainersAreShown(t *testing.T) {
	d := &fakeDriver{behave: func(a *fakeAgent) { a.onTask = hang }}
	m, out := start(t, t.Context(), config(t, &fakeSource{discover: once(1)}, d))
	await(t, m, "all tasks running", running)
	for _, c := range m.Snapshot().Held {
		if c.State != "alive" || c.Asked.IsZero() || c.Granted.Before(c.Asked) || c.Joined.Before(c.Granted) || c.Exit != nil {
			t.Errorf("an agent that runs: %+v", c)
		}
	}
	d.end("agent-2", errKilled)
	<-out
	s := m.Snapshot()
	var end *Container
	for i := range s.Held {
		if s.Held[i].Agent == "agent-2" {
			end = &s.Held[i]
		}
	}
	if end == nil || end.Exit == nil || end.State != "ended" || !end.Exit.Failed || end.Ended.Before(end.Joined) || !strings.Contains(end.Exit.Reason, "killed by signal 9") || len(end.Exit.LastLogs) != 1 {
		t.Errorf("the agent that was killed: %+v", end)
	}
	var states []string
	for _, st := range s.States {
		states = append(states, st.State)
	}
	if got := strings.Join(states, " "); got != "created waiting running failing failed" {
		t.Errorf("states: %s", got)
	}
	if len(s.Failures) != 1 || s.Failures[0].Agent != "agent-2" {
		t.Errorf("failures: %+v", s.Failures)
	}
	if s.Process.Goroutines == 0 || s.Process.Heap == 0 {
		t.Errorf("own figures: %+v", s.Process)
	}
}
