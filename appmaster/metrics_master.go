package appmaster

import "github.com/heddle-stream/heddle/internal/telemetry"

// master are the figures of the ApplicationMaster's own process.
func (f *figures) master(p *Process) {
	const gauge, counter = telemetry.Gauge, telemetry.Counter
	if p.Goroutines == 0 {
		return // not told
	}
	f.add("heddle.appmaster.memory.rss", "By", "Memory that the ApplicationMaster's process occupies", gauge, float64(p.RSS))
	f.add("heddle.appmaster.memory.heap", "By", "Memory of its live and not yet collected objects", gauge, float64(p.Heap))
	f.add("heddle.appmaster.memory.total", "By", "Memory that Go has from the system there", gauge, float64(p.Memory))
	f.add("heddle.appmaster.gc.cycles", "{cycle}", "Garbage collections of the ApplicationMaster", counter, float64(p.GCs))
	f.add("heddle.appmaster.gc.pause", "s", "Time that they stopped it, estimated", counter, p.GCPause)
	f.add("heddle.appmaster.cpu.time", "s", "Processor time that it used", counter, p.CPU)
	f.add("heddle.appmaster.goroutines", "{goroutine}", "Goroutines of the ApplicationMaster", gauge, float64(p.Goroutines))
	f.add("heddle.appmaster.spans.exported", "{span}", "Spans that the ApplicationMaster sent to the collector", counter, float64(p.SpansExported))
	f.add("heddle.appmaster.spans.dropped", "{span}", "Those lost since the collector was slow or away", counter, float64(p.SpansDropped))
}

// tokens are the figures of tokens for services outside.
func (f *figures) tokens(s *Snapshot) {
	if s.Tokens == nil {
		return
	}
	f.add("heddle.tokens.version", "", "Version of the latest delegation tokens that agents were given", telemetry.Gauge, float64(s.Tokens.Version))
	for _, t := range s.Tokens.Held {
		if !t.Until.IsZero() && !t.Minor {
			f.add("heddle.tokens.remaining", "s", "Time until a delegation token that the job needs ends, as things are", telemetry.Gauge, t.Until.Sub(s.Time).Seconds(), label("kind", t.Kind), label("service", t.Service), label("source", t.Source))
		}
	}
}
