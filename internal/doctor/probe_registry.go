package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/schemaregistry"
)

// askRegistry asks the schema registry for the schemas that a job needs. Nothing is registered.
func (p *patient) askRegistry(ctx context.Context) (string, verdict.Verdict) {
	if p.cfg.Registry == nil {
		return "", verdict.Skip("no registry is configured (schema-registry.urls), and no job was named that needs one")
	}
	subjects := p.subjects()
	var names []string
	for _, s := range subjects {
		names = append(names, s.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*callTime)
	defer cancel()
	urls, answers, err := schemaregistry.Probe(ctx, p.cfg.Registry, names...)
	tried := "ask " + strings.Join(urls, ", ") + " for the latest schemas of " + strings.Join(names, ", ")
	if len(names) == 0 {
		tried = "ask " + strings.Join(urls, ", ") + " what kinds of schemas it has"
	}
	return tried, verdict.Registry(urls, subjects, answers, err)
}

// subjects are those that the job needs: where a connector does not name its own, those of the topics that it reads.
func (p *patient) subjects() (out []verdict.Subject) {
	kind, _ := p.cfg.Registry("schema-registry.kind")
	add := func(s verdict.Subject) {
		if !slices.ContainsFunc(out, func(o verdict.Subject) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	for _, n := range p.needed(flow.NeedSubject) {
		if n.Name != "" {
			add(verdict.Subject{Name: n.Name, Write: n.Write})
			continue
		}
		for _, t := range p.needed(flow.NeedTopic) {
			if t.Read && !t.Pattern {
				add(verdict.Subject{Name: schemaregistry.SubjectOf(t.Name, kind), Guessed: true})
			}
		}
	}
	return out
}
