package flow

import "testing"

// sparseFollower follows the first record of the batch that it is asked about, every 10 ms.
type sparseFollower struct {
	Follower
	asked, read int
}

func (f *sparseFollower) Due(_ int, now int64) (int, bool, int64) {
	f.asked++
	return 0, true, now + 10
}
func (f *sparseFollower) Drawn(int) (int, bool)     { return 0, false }
func (f *sparseFollower) Read(Arrival) TraceContext { f.read++; return TraceContext{} }
func (f *sparseFollower) Done(error)                {}

// TestTracerRests: between two records to be followed, a batch costs a comparison, and a clock that is set back does not end the following.
func TestTracerRests(t *testing.T) {
	f := &sparseFollower{}
	tr := NewTracer(f)
	out := &collect[int]{}
	for _, step := range []struct {
		now   int64
		asked int
	}{{100, 1}, {101, 1}, {109, 1}, {110, 2}, {111, 2}, {50, 3}, {59, 3}, {60, 4}} {
		if err := pushRead(tr, out, "split", Batch[int]{Recs: []int{1, 2, 3}}, step.now); err != nil {
			t.Fatal(err)
		}
		if f.asked != step.asked || f.read != step.asked {
			t.Errorf("at %d it was asked %d times and %d records were followed, want %d", step.now, f.asked, f.read, step.asked)
		}
	}
	if len(out.recs) != 8*3 {
		t.Errorf("%d records came through", len(out.recs))
	}
}
