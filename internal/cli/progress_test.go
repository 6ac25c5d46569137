package cli

import (
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

// TestRateBeginsAfresh shows that the rate is that of the attempt that runs, never one between two.
func TestRateBeginsAfresh(t *testing.T) {
	p := &progress{}
	for i, tt := range []struct {
		in   int64
		rate float64
	}{{1000, 0}, {3000, 2000}, {5000, 2000}, {100, 0}, {1100, 1000}, {2100, 1000}} {
		p.take(&appmaster.Snapshot{
			Time:     time.Unix(1000+int64(i), 0),
			Vertices: []appmaster.Vertex{{Operators: []appmaster.Operator{{Kind: "source", Counters: map[string]int64{"records_out": tt.in}}}}},
		})
		if p.figures.rate != tt.rate {
			t.Errorf("after snapshot %d the rate is %v, want %v", i, p.figures.rate, tt.rate)
		}
	}
}
