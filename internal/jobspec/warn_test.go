package jobspec

import (
	"slices"
	"testing"
)

// TestWarnsOfGroupWithoutOperator: a step that nobody needs takes its slot sharing group with it, which is told.
func TestWarnsOfGroupWithoutOperator(t *testing.T) {
	const head, tail = "name: j\nsource: { generator: { count: 10, record: { k: n } } }\nsteps:\n  - set: { score: k * 2 }\n    slot_group: models\n",
		"  - key_by: k\n  - window: { global: true, aggregate: { c: count() } }\n    slot_group: default\nsink: { discard: {} }\n"
	for steps, want := range map[string][]string{
		head + tail: {"j.yaml:4: slot_group models has no effect: this step takes no operator, since nothing reads what it makes or it computes nothing"},
		head + "  - filter: score > 3\n    slot_group: default\n" + tail: nil,
	} {
		var got []string
		if _, err := Load("j.yaml", []byte(steps), Options{Warn: func(text string) { got = append(got, text) }}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\nwarnings %q, want %q", steps, got, want)
		}
	}
}
