package cli

import (
	"testing"
	"time"
)

// TestExchangeWithout has options at 0, where that means none: netstack's zero value would be its default.
func TestExchangeWithout(t *testing.T) {
	x := exchangeConfig(config(t, map[string]string{
		"exchange.exclusive": "0", "exchange.floating": "0", "exchange.connect-retries": "0", "exchange.connect-backoff": "0", "exchange.overdraft": "0",
	}))
	for what, got := range map[string]int{
		"exclusive": x.ExclusivePerChannel, "floating": x.FloatingPerGate, "retries": x.ConnectRetries, "backoff": int(x.ConnectBackoff), "overdraft": x.Overdraft,
	} {
		if got >= 0 {
			t.Errorf("%s: got %d, which is netstack's default or more", what, got)
		}
	}
	if x := exchangeConfig(config(t, nil)); x.ConnectBackoff != 200*time.Millisecond {
		t.Errorf("a backoff of %v by default", x.ConnectBackoff)
	}
}

// TestExchangeBindsIPv6 takes an address of IPv6 with brackets, as addresses with a port have them, and without.
func TestExchangeBindsIPv6(t *testing.T) {
	for _, bind := range []string{"::1", "[::1]"} {
		x := exchangeConfig(config(t, map[string]string{"exchange.bind": bind}))
		if err := x.Check(); err != nil || x.Listen != "[::1]:0" {
			t.Errorf("%s: listens on %s, %v", bind, x.Listen, err)
		}
	}
}

// TestExchangeMemoryBindsSmallOnes sets memory for less than one segment: it is not taken for netstack's default, which is 1024 of them.
func TestExchangeMemoryBindsSmallOnes(t *testing.T) {
	for memory, want := range map[string]int{"8MiB": 1, "16MiB": 1, "40MiB": 2} {
		x := exchangeConfig(config(t, map[string]string{"exchange.segment-bytes": "16MiB", "exchange.memory": memory}))
		if x.MemorySegments != want {
			t.Errorf("%s of memory are %d segments of 16 MiB, want %d", memory, x.MemorySegments, want)
		}
	}
}
