package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// cases are the known faults of other systems that concern slots, heartbeats and failover, with the tests that show what happens here:
// a file and what must be in it. TestSeeds meets most of them again, together and in any order.
var cases = map[string][2]string{
	"S-02": {"appmaster/plane/preview_test.go", "func TestPreview("},
	"S-04": {"itest/sim/testdata/scripts/S-04-slots-kept-until-all-ended.txt", ""},
	"S-05": {"appmaster/slotpool/pool_test.go", "func TestInvariants("}, // nothing times out a slot in use
	"S-06": {"agent/agent_test.go", "func TestSlotIsUsedOnce("},
	"S-08": {"itest/sim/testdata/scripts/S-08-stranger-refused.txt", ""},
	"S-09": {"itest/sim/testdata/scripts/S-09-frozen-agent.txt", ""},
	"S-11": {"itest/sim/testdata/scripts/S-11-two-bulks.txt", ""},
	"S-12": {"appmaster/slotmgr/invariants_test.go", "func TestInvariants("},
	"S-13": {"itest/sim/mass_test.go", "func TestMassCancel("},
	"S-14": {"itest/sim/testdata/scripts/S-14-previous-slots.txt", ""},
	"S-16": {"itest/sim/seeds_test.go", "func TestSeeds("},
	"S-17": {"itest/sim/testdata/scripts/S-17-excluded-host.txt", ""},
	"Y-02": {"itest/sim/testdata/scripts/Y-02-surplus.txt", ""},
	"Y-03": {"itest/sim/testdata/scripts/Y-02-surplus.txt", ""},
	"Y-05": {"itest/sim/testdata/scripts/Y-05-dying-containers.txt", ""},
	"Y-06": {"itest/sim/testdata/scripts/Y-06-dies-before-registering.txt", ""},
	"Y-07": {"itest/sim/seeds_test.go", "func TestSeeds("},
	"Y-09": {"itest/sim/testdata/scripts/Y-09-ends-told-twice.txt", ""},
	"Y-10": {"appmaster/driver/drivertest/drivertest.go", "ended before it was granted"},
	"Y-12": {"itest/sim/testdata/scripts/Y-12-never-registers.txt", ""},
	"Y-13": {"itest/sim/seeds_test.go", "func TestSeeds("},
	"Y-14": {"appmaster/driver/drivertest/drivertest.go", "func slowMaster("},
	"Y-15": {"appmaster/driver/drivertest/drivertest.go", "nothing outlives Stop"},
}

// TestCases checks that the tests are there.
func TestCases(t *testing.T) {
	for id, at := range cases {
		data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(at[0])))
		if err != nil || !strings.Contains(string(data), at[1]) {
			t.Errorf("%s: no %q in %s (%v)", id, at[1], at[0], err)
		}
	}
	scripts, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`^[SY]-\d\d`)
	for _, path := range scripts {
		if id := named.FindString(filepath.Base(path)); id != "" {
			if _, ok := cases[id]; !ok {
				t.Errorf("%s is of a case that is not listed", path)
			}
		}
	}
}
