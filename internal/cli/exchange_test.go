package cli

import "testing"

// TestExchangeMemoryBindsSmallOnes sets memory for less than one segment: it is not taken for netstack's default, which is 1024 of them.
func TestExchangeMemoryBindsSmallOnes(t *testing.T) {
	for memory, want := range map[string]int{"8MiB": 1, "16MiB": 1, "40MiB": 2} {
		x := exchangeConfig(config(t, map[string]string{"exchange.segment-bytes": "16MiB", "exchange.memory": memory}))
		if x.MemorySegments != want {
			t.Errorf("%s of memory are %d segments of 16 MiB, want %d", memory, x.MemorySegments, want)
		}
	}
}
