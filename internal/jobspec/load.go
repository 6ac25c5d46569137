package jobspec

import (
	"errors"
	"path/filepath"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// Options is what a file may leave to the configuration.
type Options struct {
	Timezone       string // IANA name for a file without timezone; "" sets none
	MaxParallelism int    // for a file without max_parallelism; 0: not known

	// ReadFile reads a file that the job file names, such as a schema; nil: none may be named.
	ReadFile func(name string) ([]byte, error)

	Warn func(text string) // is told what is right but has no effect; nil: nobody is
}

// Load makes a job of a file. name is for errors. An error about the file is a *strict.Error: it has everything that is wrong with it.
func Load(name string, data []byte, opts Options) (*heddle.Job, error) {
	p, err := check(name, data, opts)
	if err != nil {
		return nil, err
	}
	p.warn = opts.Warn
	return p.build()
}

// build makes the job of a plan that is right so far.
func (p *planner) build() (*heddle.Job, error) {
	for i := len(p.nodes) - 1; i >= 0; i-- {
		p.nodes[i].needed()
	}
	job := heddle.NewJob(p.file.Name.Value)
	if p.file.Parallelism.IsSet() {
		job.Parallelism(p.file.Parallelism.Value)
	}
	if p.file.MaxParallelism.IsSet() {
		job.MaxParallelism(p.file.MaxParallelism.Value)
	}
	b := &builder{job: job, plan: p}
	var sinks []*sinkNode
	for _, n := range p.nodes {
		if s, ok := n.(*sinkNode); ok {
			sinks = append(sinks, s)
			continue
		}
		b.node(n)
	}
	for _, s := range sinks { // last: they take what any step sends them
		b.node(s)
	}
	if err := p.doc.Err(); err != nil {
		return nil, err
	}
	p.setSlotGroups(job)
	return job, nil
}

// check does the passes that find what is wrong.
func check(name string, data []byte, opts Options) (*planner, error) {
	p := &planner{name: filepath.Base(name), file: &jobFile{}, streams: map[string]*stream{}, sinks: map[string]*sinkNode{}}
	p.files = opts.ReadFile
	p.doc = strict.Decode(name, data, p.file)
	p.limits(opts)
	p.checkSlotGroups()
	if opts.Timezone != "" {
		var err error
		if p.zone, err = flow.LoadZone(opts.Timezone); err != nil {
			return nil, errors.New(UnknownZone(opts.Timezone))
		}
	}
	if p.file.Timezone.IsSet() {
		p.zone = location(p.doc, p.file.Timezone)
	}
	p.checkNames()
	if p.doc.Failed() {
		return nil, p.doc.Err()
	}
	p.resolve()
	for _, n := range p.nodes {
		n.check(p)
	}
	if err := p.doc.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// limits reports a parallelism that is more than max_parallelism, where it stands.
func (p *planner) limits(opts Options) {
	f, most, hint := p.file, opts.MaxParallelism, "; lower it, or set max_parallelism"
	if f.MaxParallelism.IsSet() {
		most, hint = f.MaxParallelism.Value, "; lower the one or raise the other"
		if most > jobgraph.MaxKeyGroups {
			p.doc.Failf(f.MaxParallelism.Place(), "max_parallelism can be at most %d", jobgraph.MaxKeyGroups)
			return
		}
	}
	all := []strict.Int{f.Parallelism}
	if f.Source != nil {
		all = append(all, f.Source.Parallelism)
	}
	if f.Sources != nil {
		for _, e := range f.Sources.Entries {
			all = append(all, e.Value.Parallelism)
		}
	}
	for _, s := range f.Steps {
		all = append(all, s.Parallelism)
	}
	if f.Sink != nil {
		all = append(all, f.Sink.Parallelism)
	}
	if f.Sinks != nil {
		for _, e := range f.Sinks.Entries {
			all = append(all, e.Value.Parallelism)
		}
	}
	for _, n := range all {
		if n.IsSet() && most > 0 && n.Value > most {
			p.doc.Failf(n.Place(), "parallelism %d is more than max_parallelism, %d%s", n.Value, most, hint)
		}
	}
}
