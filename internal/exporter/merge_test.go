package exporter

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// TestTypesThatDiffer: an application that has a figure as another type than others, by its version or by ill will, takes nobody's away.
func TestTypesThatDiffer(t *testing.T) {
	m := newMerged()
	for app, text := range map[string]string{
		"one":   "# HELP a so\n# TYPE a gauge\na 1\n# TYPE h gauge\nh 1\n# TYPE same counter\nsame 1\n",
		"two":   "# TYPE a counter\na 2\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 3\nh_sum 2\nh_count 3\n# TYPE same counter\nsame 2\n",
		"three": "a 3\n",
	} {
		if err := m.add([]byte(text), &Target{App: app}); err != nil {
			t.Errorf("%s: %v", app, err)
		}
	}
	var b bytes.Buffer
	if err := m.write(&b); err != nil {
		t.Fatal(err)
	}
	lines := slices.Sorted(strings.Lines(b.String()))
	want := []string{
		"# TYPE same counter\n", "a{app=\"one\"} 1\n", "a{app=\"three\"} 3\n", "a{app=\"two\"} 2\n", "h_bucket{app=\"two\",le=\"+Inf\"} 3\n",
		"h_count{app=\"two\"} 3\n", "h_sum{app=\"two\"} 2\n", "h{app=\"one\"} 1\n", "same{app=\"one\"} 1\n", "same{app=\"two\"} 2\n",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%q\nwant\n%q", lines, want)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := parser.TextToMetricFamilies(&b); err != nil {
		t.Errorf("what is written can't be read: %v", err)
	}
}

// TestNamesInQuotes: names that Prometheus reads since version 3 only would have an older one refuse the figures of all applications.
func TestNamesInQuotes(t *testing.T) {
	for _, text := range []string{"{\"a b\"} 1\n", "a{\"l l\"=\"x\"} 1\n", "{\"ä\",x=\"y\"} 1\n"} {
		m := newMerged()
		if err := m.add([]byte(text), &Target{App: "mine"}); err == nil || len(m.families) > 0 {
			t.Errorf("%q is served: %v, %v", text, m.families, err)
		}
	}
	if err := newMerged().add([]byte("a{x=\"ä \\\"q\\\"\"} 1\n"), &Target{App: "mine"}); err != nil {
		t.Errorf("a value with any text is refused: %v", err)
	}
}

// FuzzAdd: an application, which may be anybody's, can pass its figures off for another's by no text.
func FuzzAdd(f *testing.F) {
	f.Add([]byte("a{app=\"other\"} 1\n"))
	f.Add([]byte("# TYPE a histogram\na_bucket{le=\"1\"} 1\na_count 1\na_sum 1\n"))
	f.Add([]byte("a{app=\"other\",exported_app=\"x\"} 1\n"))
	f.Add([]byte("heddle_job_state{heddle_job_name=\"x\",job=\"y\"} 1\n"))
	f.Add([]byte("# TYPE heddle_app_up counter\nheddle_app_up{app=\"other\"} 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := newMerged()
		if m.add(text, &Target{App: "mine"}) != nil {
			return
		}
		for name, families := range m.families {
			for _, metric := range families[0].GetMetric() {
				seen := map[string]bool{}
				for _, l := range metric.GetLabel() {
					if seen[l.GetName()] || l.GetName() == labelApp && l.GetValue() != "mine" {
						t.Errorf("%q: %s has the labels %v", text, name, metric.GetLabel())
					}
					seen[l.GetName()] = true
				}
			}
			if len(families) != 1 {
				t.Errorf("%q: %s is of %d types", text, name, len(families))
			}
		}
		m.gauge(appUp, "", nil, 1)
		m.gauge(appTook, "", nil, 1)
		if err := m.write(&bytes.Buffer{}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
