package exporter

import (
	"bytes"
	"testing"
)

// FuzzAdd: an application, which may be anybody's, can pass its figures off for another's by no text.
func FuzzAdd(f *testing.F) {
	f.Add([]byte("a{app=\"other\"} 1\n"))
	f.Add([]byte("# TYPE a histogram\na_bucket{le=\"1\"} 1\na_count 1\na_sum 1\n"))
	f.Add([]byte("a{app=\"other\",exported_app=\"x\"} 1\n"))
	f.Add([]byte("# TYPE heddle_app_up counter\nheddle_app_up{app=\"other\"} 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := newMerged()
		if m.add(text, []label{{labelApp, "mine"}}) != nil {
			return
		}
		for name, family := range m.families {
			for _, metric := range family.GetMetric() {
				seen := map[string]bool{}
				for _, l := range metric.GetLabel() {
					if seen[l.GetName()] || l.GetName() == labelApp && l.GetValue() != "mine" {
						t.Errorf("%q: %s has the labels %v", text, name, metric.GetLabel())
					}
					seen[l.GetName()] = true
				}
			}
		}
		m.gauge(appUp, "", nil, 1)
		m.gauge(appTook, "", nil, 1)
		if err := m.write(&bytes.Buffer{}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
