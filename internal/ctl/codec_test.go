package ctl

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

const bad = "a\xff\xfeb"

// A string that is no UTF-8 must not end the session, whichever it is: the cause of a failure is in the next message.
func TestSessionSurvivesBadStrings(t *testing.T) {
	got := make(chan *ctlpb.FromAgent, 10)
	secrets := serve(t, func(s ctlpb.Control_SessionServer) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Registered{Registered: &ctlpb.Registered{JobId: bad}}}); err != nil {
			return err
		}
		for {
			m, err := s.Recv()
			if err != nil {
				close(got)
				return nil
			}
			got <- m
		}
	})
	s, answer, err := Join(t.Context(), secrets, &ctlpb.Register{AgentId: "agent-1", Host: bad}, JoinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetJobId() != "a\uFFFDb" {
		t.Errorf("got job id %q", answer.GetJobId())
	}
	report := &ctlpb.TaskReport{
		Operators: []*ctlpb.OperatorReport{{Counters: map[string]int64{bad: 1, "fine": 2}}},
		Splits:    []*ctlpb.SplitReport{{Id: []byte(bad), Trouble: bad}},
	}
	before := proto.Clone(report)
	for _, m := range []*ctlpb.FromAgent{
		{M: &ctlpb.FromAgent_Heartbeat{Heartbeat: &ctlpb.Heartbeat{Tasks: []*ctlpb.TaskReport{report}}}},
		{M: &ctlpb.FromAgent_Task{Task: &ctlpb.TaskUpdate{
			Error: PBFailure(cluster.Failure{Message: strings.Repeat(bad, 4<<20), Operator: bad}), Report: report,
		}}},
		{M: &ctlpb.FromAgent_Released{Released: &ctlpb.PartitionsReleased{Partitions: []string{"x", bad}}}},
		{M: &ctlpb.FromAgent_Goodbye{Goodbye: &ctlpb.Goodbye{Reason: bad}}},
	} {
		if err := s.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	end := drain(s)
	_ = s.Close()
	<-end
	var all []*ctlpb.FromAgent
	for m := range got {
		all = append(all, m)
	}
	if len(all) != 4 {
		t.Fatalf("%d messages arrived, want 4", len(all))
	}
	r := all[0].GetHeartbeat().GetTasks()[0]
	if c := r.GetOperators()[0].GetCounters(); len(c) != 2 || c["a\uFFFDb"] != 1 || c["fine"] != 2 {
		t.Errorf("got counters %v", c)
	}
	if sp := r.GetSplits()[0]; string(sp.GetId()) != bad || sp.GetTrouble() != "a\uFFFDb" {
		t.Errorf("got split %q with trouble %q", sp.GetId(), sp.GetTrouble())
	}
	if f := Failure(all[1].GetTask().GetError()); len(f.Message) > cluster.MaxText || f.Operator != "a\uFFFDb" {
		t.Errorf("got %d bytes of text, operator %q", len(f.Message), f.Operator)
	}
	if p := all[2].GetReleased().GetPartitions(); len(p) != 2 || p[1] != "a\uFFFDb" {
		t.Errorf("got partitions %q", p)
	}
	if why := all[3].GetGoodbye().GetReason(); why != "a\uFFFDb" {
		t.Errorf("got reason %q", why)
	}
	if !proto.Equal(before, report) {
		t.Error("sending changed a message that others may share")
	}
}
