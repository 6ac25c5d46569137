package exporter

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Labels that every series gets.
const (
	labelApp   = "app"
	labelJob   = "job"
	labelQueue = "queue"
	labelUser  = "user"
)

// label is a name with a value.
type label struct{ name, value string }

// labels are those that tell a target's series from others'.
func (t *Target) labels() []label {
	out := []label{{labelApp, t.App}}
	for _, l := range []label{{labelJob, t.Job}, {labelQueue, t.Queue}, {labelUser, t.User}} {
		if l.value != "" { // none is the same as an empty one
			out = append(out, l)
		}
	}
	return out
}

// merged are the metrics of several applications: for each name one family of each type that they have it as.
type merged struct {
	families map[string][]*dto.MetricFamily
}

func newMerged() *merged { return &merged{map[string][]*dto.MetricFamily{}} }

// add adds an application's metrics, all or none. Where the name of its job is not known, they tell it.
func (m *merged) add(text []byte, t *Target) error {
	parser := expfmt.NewTextParser(model.LegacyValidation) // with names in quotes a Prometheus before 3 would refuse the whole page
	found, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("cannot understand its metrics: %w", err)
	}
	for name := range found {
		if ours(name) {
			return fmt.Errorf("cannot merge its metrics: %s is one of the exporter's own", name)
		}
	}
	if t.Job == "" {
		t.Job = jobOf(found["heddle_job_state"])
	}
	with := t.labels()
	for name, f := range found {
		for _, metric := range f.GetMetric() {
			metric.Label = labelled(metric.GetLabel(), with)
		}
		have := m.of(name, f.GetType(), f.Help)
		have.Metric = append(have.Metric, f.GetMetric()...)
	}
	return nil
}

// jobOf is the name of the job that a figure is of; "": it says none.
func jobOf(f *dto.MetricFamily) string {
	for _, metric := range f.GetMetric() {
		for _, l := range metric.GetLabel() {
			if l.GetName() == "heddle_job_name" {
				return l.GetValue()
			}
		}
	}
	return ""
}

// of returns the family of a name and type.
func (m *merged) of(name string, kind dto.MetricType, help *string) *dto.MetricFamily {
	for _, f := range m.families[name] {
		if f.GetType() == kind {
			return f
		}
	}
	f := &dto.MetricFamily{Name: &name, Help: help, Type: &kind}
	m.families[name] = append(m.families[name], f)
	return f
}

// ours reports whether a figure is the exporter's own, which no application can tell.
func ours(name string) bool {
	return strings.HasPrefix(name, "heddle_exporter_") || name == appUp || name == appTook
}

// labelled puts labels before those that there are. Of two of one name, the application's is renamed as Prometheus does.
func labelled(have []*dto.LabelPair, with []label) []*dto.LabelPair {
	out := pairs(with)
	for _, l := range have {
		for slices.ContainsFunc(out, func(x *dto.LabelPair) bool { return x.GetName() == l.GetName() }) {
			renamed := "exported_" + l.GetName()
			l.Name = &renamed
		}
		out = append(out, l)
	}
	return out
}

func pairs(labels []label) []*dto.LabelPair {
	out := make([]*dto.LabelPair, len(labels))
	for i := range labels {
		out[i] = &dto.LabelPair{Name: &labels[i].name, Value: &labels[i].value}
	}
	return out
}

// gauge adds a figure of the exporter's own.
func (m *merged) gauge(name, help string, with []label, v float64) {
	f := m.of(name, dto.MetricType_GAUGE, &help)
	f.Metric = append(f.Metric, &dto.Metric{Label: pairs(with), Gauge: &dto.Gauge{Value: &v}})
}

// write writes everything in the text format, in the order of names. What is of several types, since the applications are of several versions
// or one of them means ill, is written without any: Prometheus keeps the figures of all.
func (m *merged) write(w *bytes.Buffer) error {
	for _, name := range slices.Sorted(maps.Keys(m.families)) {
		families := m.families[name]
		for _, f := range families {
			begin := w.Len()
			if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
				return fmt.Errorf("cannot write %s: %w", name, err)
			}
			if len(families) > 1 {
				text := string(w.Bytes()[begin:])
				w.Truncate(begin)
				uncommented(w, text)
			}
		}
	}
	return nil
}

// uncommented writes the samples of a text.
func uncommented(w *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			w.WriteString(line)
		}
	}
}
