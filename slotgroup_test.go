package heddle_test

import (
	"strings"
	"testing"

	"github.com/heddle-stream/heddle"
)

func TestSlotGroup(t *testing.T) {
	job := heddle.NewJob("j").SlotGroup("models", heddle.Resources{CPU: 2, Memory: 1 << 30, Custom: map[string]int64{"gpu": 1}})
	if g := job.Graph().SlotGroups; len(g) != 1 || g[0].Name != "models" || g[0].Resources.CPU != 2 || !strings.Contains(g[0].Where, "slotgroup_test.go:") {
		t.Errorf("slot groups %+v", g)
	}
	bad := heddle.NewJob("j")
	bad.SlotGroup("", heddle.Resources{}).SlotGroup("a", heddle.Resources{CPU: -1}).SlotGroup("b", heddle.Resources{Memory: -1}).SlotGroup("b", heddle.Resources{})
	var all []string
	for _, err := range bad.Graph().Errs {
		all = append(all, err.Error())
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"needs a name", "asks for -1 cores", "asks for -1 bytes", "were set before, at "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q among the mistakes:\n%s", want, text)
		}
	}
}
