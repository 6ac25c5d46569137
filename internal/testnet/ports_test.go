package testnet

import (
	"fmt"
	"net"
	"testing"
)

// TestFreePort takes many ports: no two are the same, each can be listened on, and none of them is one that a process elsewhere holds.
func TestFreePort(t *testing.T) {
	low, high := portRange()
	got, err := FreePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range got {
		if seen[p] || p < low || p >= high {
			t.Errorf("port %d: twice, or not from %d to %d", p, low, high)
		}
		seen[p] = true
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if err != nil {
			t.Fatal(err)
		}
		if takePort(p) {
			t.Errorf("port %d, which is taken, was free", p)
		}
		l.Close()
	}
}
