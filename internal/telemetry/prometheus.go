package telemetry

import (
	"strconv"
	"strings"
)

// PrometheusType is the media type of what AppendPrometheus writes.
const PrometheusType = "text/plain; version=0.0.4; charset=utf-8"

// prometheusUnits are the words that Prometheus's conventions put at a name's end for a unit.
var prometheusUnits = map[string]string{"s": "seconds", "By": "bytes", "1": "ratio", "ms": "milliseconds", "Cel": "celsius"}

// PrometheusName is the name that Prometheus's conventions make of a metric's: underscores, the unit's name, _total for counters.
func PrometheusName(f *Family) string {
	name := prometheusWord(f.Name)
	if unit := prometheusUnits[f.Unit]; unit != "" && !strings.HasSuffix(name, "_"+unit) && (f.Unit != "1" || f.Kind == Gauge) {
		name += "_" + unit
	}
	if f.Kind == Counter && !strings.HasSuffix(name, "_total") {
		name += "_total"
	}
	return name
}

func prometheusWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
}

// AppendPrometheus appends families in the text format 0.0.4.
func AppendPrometheus(b []byte, families []Family) []byte {
	types := [...]string{Gauge: "gauge", Counter: "counter", Histogram: "histogram"}
	for i := range families {
		f := &families[i]
		if len(f.Points) == 0 {
			continue
		}
		name := PrometheusName(f)
		b = append(append(append(append(b, "# HELP "...), name...), ' '), escapeHelp.Replace(f.Help)...)
		b = append(append(append(append(b, "\n# TYPE "...), name...), ' '), types[f.Kind]...)
		b = append(b, '\n')
		for j := range f.Points {
			p := &f.Points[j]
			if p.Hist == nil {
				b = appendSample(b, name, "", p.Labels, "", p.Value)
				continue
			}
			sum := uint64(0)
			for k, n := range p.Hist.Counts {
				sum += n
				bound := "+Inf"
				if k < len(p.Hist.Bounds) {
					bound = formatFloat(p.Hist.Bounds[k])
				}
				b = appendSample(b, name, "_bucket", p.Labels, bound, float64(sum))
			}
			b = appendSample(b, name, "_sum", p.Labels, "", p.Hist.Sum)
			b = appendSample(b, name, "_count", p.Labels, "", float64(sum))
		}
	}
	return b
}

var (
	escapeHelp  = strings.NewReplacer("\\", `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
)

// appendSample appends one line. le is the bound of a bucket, "" for none.
func appendSample(b []byte, name, suffix string, labels []Label, le string, v float64) []byte {
	b = append(append(b, name...), suffix...)
	sep := byte('{')
	label := func(name, value string) {
		b = append(append(append(b, sep), name...), `="`...)
		b = append(append(b, escapeLabel.Replace(strings.ToValidUTF8(value, "�"))...), '"')
		sep = ','
	}
	for _, l := range labels {
		label(prometheusWord(l.Name), l.Value)
	}
	if le != "" {
		label("le", le)
	}
	if sep == ',' {
		b = append(b, '}')
	}
	b = append(b, ' ')
	return append(append(b, formatFloat(v)...), '\n')
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
