package agent

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// TestProfileInParts: a profile larger than a message comes in several, and one that can't be taken says why.
func TestProfileInParts(t *testing.T) {
	l := &link{out: newMailbox[*ctlpb.FromAgent]()}
	a := &agent{link: l, profiling: true}
	want := bytes.Repeat([]byte("0123456789abcdef"), profilePart/16*2+5)
	a.sendProfile(profileTaken{id: 3, data: want})
	var got []byte
	parts := l.out.take()
	for i, m := range parts {
		p := m.GetProfile()
		got = append(got, p.GetData()...)
		if p.GetId() != 3 || p.GetLast() != (i == len(parts)-1) || p.GetError() != "" {
			t.Errorf("part %d: id %d, last %v, error %q", i, p.GetId(), p.GetLast(), p.GetError())
		}
	}
	if !bytes.Equal(got, want) || len(parts) != 3 {
		t.Errorf("%d bytes in %d parts, want %d in 3", len(got), len(parts), len(want))
	}
	a.takeProfile(t.Context(), &ctlpb.Profile{Id: 4, Kind: "heap"})
	if parts := l.out.take(); len(parts) != 1 || parts[0].GetProfile().GetError() == "" || !parts[0].GetProfile().GetLast() {
		t.Errorf("a second at a time: %v", parts)
	}
	a.profiling, a.events = false, newMailbox[any]()
	a.cfg.Logger = slog.New(slog.DiscardHandler)
	a.takeProfile(t.Context(), &ctlpb.Profile{Id: 5, Kind: "stacks"})
	a.wg.Wait()
	for _, ev := range a.events.take() {
		if p, ok := ev.(profileTaken); !ok || p.id != 5 || p.err != nil || !bytes.Contains(p.data, []byte("goroutine ")) {
			t.Errorf("event %+v", ev)
		}
	}
}
