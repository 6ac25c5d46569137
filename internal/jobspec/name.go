package jobspec

import (
	"strings"
	"unicode"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// maxName is the most bytes of the name of a source, step or sink. The operators that are made of it add a word of ours.
const maxName = flow.MaxName - 32

// checkNames refuses names that can't be shown, or are too long for metrics.
func (p *planner) checkNames() {
	f := p.file
	if f.Name.IsSet() && f.Name.Value == "" {
		p.doc.Failf(f.Name.Place(), "the name is empty")
	}
	if strings.ContainsFunc(f.Name.Value, unicode.IsControl) {
		p.doc.Failf(f.Name.Place(), "the name %q has control characters, which would garble terminals and logs", flow.Cut(f.Name.Value, flow.MaxName))
	}
	p.checkName(f.Name, flow.MaxName)
	if f.Sources != nil {
		for _, e := range f.Sources.Entries {
			p.checkName(e.Key, maxName)
		}
	}
	for _, s := range f.Steps {
		p.checkName(s.Name, maxName)
	}
	if f.Sinks != nil {
		for _, e := range f.Sinks.Entries {
			p.checkName(e.Key, maxName)
		}
	}
}

func (p *planner) checkName(name strict.String, most int) {
	if len(name.Value) > most {
		p.doc.Failf(name.Place(), "%v", flow.TooLong(name.Value, most))
	}
}
