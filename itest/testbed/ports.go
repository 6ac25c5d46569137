package testbed

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/testnet"
)

// FreePort is testnet.FreePort, which ends the test if there is none.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := testnet.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
