package flow

import "testing"

// TestKindAndTitle: a node without a name is not called a "sink sink 4".
func TestKindAndTitle(t *testing.T) {
	for want, n := range map[string]Node{"sink counts": {Kind: "sink", Name: "counts", ID: 4}, "sink 4": {Kind: "sink", ID: 4}} {
		if got := n.KindAndTitle(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
