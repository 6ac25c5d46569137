package appmaster

import (
	"strconv"

	"github.com/heddle-stream/heddle/internal/telemetry"
)

// Figures are all metrics of an application, made of a snapshot.
func Figures(s *Snapshot) []telemetry.Family {
	f := &figures{app: []telemetry.Label{{Name: "heddle.job.name", Value: s.Job}, {Name: "heddle.app.id", Value: s.App}}, index: map[string]int{}}
	f.application(s)
	f.master(&s.Process)
	f.tokens(s)
	for i := range s.Vertices {
		f.vertex(s, &s.Vertices[i])
	}
	for i := range s.Sources {
		f.source(s, &s.Sources[i])
	}
	for i := range s.Alignment {
		f.alignment(&s.Alignment[i])
	}
	for i := range s.Agents {
		f.agent(&s.Agents[i])
	}
	return f.families
}

// figures gathers points by family, in order of first use.
type figures struct {
	app      []telemetry.Label
	families []telemetry.Family
	index    map[string]int
}

func (f *figures) family(name, unit, help string, kind telemetry.Kind) *telemetry.Family {
	i, ok := f.index[name]
	if !ok {
		i = len(f.families)
		f.index[name] = i
		f.families = append(f.families, telemetry.Family{Name: name, Unit: unit, Help: help, Kind: kind})
	}
	return &f.families[i]
}

func (f *figures) add(name, unit, help string, kind telemetry.Kind, v float64, labels ...telemetry.Label) {
	fam := f.family(name, unit, help, kind)
	fam.Points = append(fam.Points, telemetry.Point{Labels: f.with(labels), Value: v})
}

func (f *figures) with(labels []telemetry.Label) []telemetry.Label {
	return append(f.app[:len(f.app):len(f.app)], labels...)
}

func label(name, value string) telemetry.Label { return telemetry.Label{Name: name, Value: value} }

func number(name string, v int) telemetry.Label { return label(name, strconv.Itoa(v)) }

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// jobStates are the states of a job, each of which is a figure of 0 or 1.
var jobStates = []string{"created", "waiting", "running", "failing", "restarting", "canceling", "finished", "failed", "canceled"}

func (f *figures) application(s *Snapshot) {
	const gauge, counter = telemetry.Gauge, telemetry.Counter
	for _, state := range jobStates {
		f.add("heddle.job.state", "", "Whether the job is in a state: 1 for the one it is in", gauge, flag(s.State == state), label("state", state))
	}
	f.add("heddle.job.uptime", "s", "Time since the ApplicationMaster began", gauge, s.Time.Sub(s.Started).Seconds())
	f.add("heddle.job.attempt", "", "Number of the job's present attempt, from 0", gauge, float64(s.Attempt))
	f.add("heddle.slots.needed", "{slot}", "Slots that the job needs", gauge, float64(s.Slots.Needed))
	f.add("heddle.slots.registered", "{slot}", "Slots of the agents that are there", gauge, float64(s.Slots.Total))
	f.add("heddle.slots.free", "{slot}", "Slots that nobody uses", gauge, float64(s.Slots.Free))
	f.add("heddle.containers.asked", "{container}", "Agents asked for, less what was withdrawn", gauge, float64(s.Containers.Asked))
	f.add("heddle.containers.granted", "{container}", "Agents granted", counter, float64(s.Containers.Granted))
	f.add("heddle.containers.released", "{container}", "Agents told to go since nobody needed them", counter, float64(s.Containers.Released))
	f.add("heddle.containers.ended", "{container}", "Agents that have ended", counter, float64(s.Containers.Ended))
	f.add("heddle.containers.failed", "{container}", "Agents that have ended by their own fault", counter, float64(s.Containers.Failed))
	f.add("heddle.job.warnings", "{warning}", "Faults that were survived and are shown, the latest few", gauge, float64(len(s.Warnings)))
}

func (f *figures) vertex(s *Snapshot, v *Vertex) {
	for i := range v.Subtasks {
		f.subtask(s, v, &v.Subtasks[i])
	}
	for _, o := range v.Operators {
		for name, n := range o.Counters {
			switch name {
			case recordsIn, recordsOut, bytesIn, bytesOut:
				continue
			}
			f.add("heddle.operator.figure", "", "What an operator counts beside records, such as late records; a function of the job may count what it likes",
				telemetry.Gauge, float64(n), number("heddle.vertex.id", v.ID), label("heddle.operator", o.Name), label("figure", name))
		}
	}
}

func (f *figures) subtask(s *Snapshot, v *Vertex, t *Subtask) {
	const gauge, counter = telemetry.Gauge, telemetry.Counter
	labels := []telemetry.Label{number("heddle.vertex.id", v.ID), label("heddle.vertex.name", v.Name), number("heddle.subtask", t.Index)}
	with := func(more ...telemetry.Label) []telemetry.Label {
		return append(labels[:len(labels):len(labels)], more...)
	}
	f.add("heddle.subtask.running", "", "Whether the subtask runs", gauge, flag(t.State == "running"), with(label("heddle.agent", t.Agent))...)
	f.add("heddle.subtask.records.in", "{record}", "Records that came in", counter, float64(t.RecordsIn), labels...)
	f.add("heddle.subtask.records.out", "{record}", "Records that went out", counter, float64(t.RecordsOut), labels...)
	f.add("heddle.subtask.io.in", "By", "Bytes that came in through the exchange", counter, float64(t.BytesIn), labels...)
	f.add("heddle.subtask.io.out", "By", "Bytes that went out through the exchange", counter, float64(t.BytesOut), labels...)
	for _, k := range []struct {
		state        string
		time, recent float64
	}{{"busy", t.Time.Busy, t.Recent.Busy}, {"idle", t.Time.Idle, t.Recent.Idle}, {"backpressured", t.Time.Blocked, t.Recent.Blocked}} {
		f.add("heddle.subtask.time", "s", "Running time by what the subtask did: busy, idle without input, backpressured by its output", counter, k.time, with(label("state", k.state))...)
		f.add("heddle.subtask.utilization", "1", "Shares of the time since the last report; they add up to 1", gauge, k.recent, with(label("state", k.state))...)
	}
	f.add("heddle.subtask.queue.in", "{segment}", "Segments received and not yet consumed", gauge, float64(t.InQueued), labels...)
	f.add("heddle.subtask.queue.out", "{segment}", "Segments emitted and not yet sent, for want of credit or of the connection", gauge, float64(t.OutQueued), labels...)
	f.add("heddle.subtask.pool.in.utilization", "1", "Share in use of the segments that the input could have from other agents; at 1 its producers have no credit left", gauge, t.InPool, labels...)
	f.add("heddle.subtask.pool.out.utilization", "1", "Share in use of the segments that the output could have; at 1 the subtask is held back", gauge, t.OutPool, labels...)
	f.add("heddle.subtask.credit.in", "{segment}", "Segments that producers of other agents may yet send: the credit that the input has given", gauge, float64(t.CreditIn), labels...)
	f.add("heddle.subtask.credit.out", "{segment}", "Segments that consumers of other agents would take now: the credit that the output has", gauge, float64(t.CreditOut), labels...)
	f.add("heddle.subtask.channels.starved", "{channel}", "Channels to other agents in which segments wait for credit, since their consumer is slow", gauge, float64(t.Starved), labels...)
	if t.Watermark != nil && *t.Watermark != maxTime {
		f.add("heddle.subtask.watermark", "s", "Event time up to which input is complete, in seconds since the Unix epoch", gauge, float64(*t.Watermark)/1000, labels...)
		f.add("heddle.subtask.watermark.lag", "s", "How far the watermark is behind the clock", gauge, float64(s.Time.UnixMilli()-*t.Watermark)/1000, labels...)
	}
	for _, h := range t.Hops {
		fam := f.family("heddle.exchange.latency", "s", "How long followed records took through the phases of an edge: in the producer's segment, for credit, in the send queue, on the wire, in the receive queue", telemetry.Histogram)
		fam.Points = append(fam.Points, telemetry.Point{Hist: h.Buckets, Labels: f.with(with(number("heddle.edge", h.Edge), label("phase", h.Phase)))})
	}
}

// maxTime is the watermark of an input that has ended.
const maxTime = 1<<63 - 1

func (f *figures) source(s *Snapshot, src *Source) {
	f.add("heddle.source.discovery.failures", "{discovery}", "Looks for new splits that came to nothing, and were tried again", telemetry.Counter, float64(src.Failed), label("heddle.source", src.Name))
	for _, p := range src.Splits {
		labels := []telemetry.Label{label("heddle.source", src.Name), label("split", p.ID), number("heddle.subtask", p.Subtask)}
		if p.Position >= 0 {
			f.add("heddle.split.position", "", "Offset, line or byte that is read next", telemetry.Gauge, float64(p.Position), labels...)
		}
		if p.End >= 0 {
			f.add("heddle.split.end", "", "Where the split ends for now", telemetry.Gauge, float64(p.End), labels...)
		}
		if p.Position >= 0 && p.End >= 0 {
			f.add("heddle.split.lag", "", "How much of the split is yet to be read", telemetry.Gauge, float64(max(0, p.End-p.Position)), labels...)
		}
		for _, c := range []struct {
			name, unit, help string
			value            float64
		}{
			{"heddle.split.records", "{record}", "Records read", float64(p.Records)},
			{"heddle.split.io", "By", "Bytes as they came from outside", float64(p.Bytes)},
			{"heddle.split.fetches", "{fetch}", "Answers that brought something", float64(p.Fetches)},
			{"heddle.split.fetches.empty", "{fetch}", "Answers that brought nothing", float64(p.Empty)},
			{"heddle.split.fetch.time", "s", "Time from request to answer, of those that brought something", seconds(p.FetchNs)},
		} {
			if p.Records > 0 || p.Fetches > 0 || p.Empty > 0 {
				f.add(c.name, c.unit, c.help, telemetry.Counter, c.value, labels...)
			}
		}
		if p.Committed > 0 {
			f.add("heddle.split.committed", "", "Position that the outside world was last told", telemetry.Gauge, float64(p.Committed), labels...)
		}
		f.add("heddle.split.paused", "", "Whether the split waits for others, being ahead in event time", telemetry.Gauge, flag(p.Paused), labels...)
		if p.PausedNs > 0 {
			f.add("heddle.split.paused.time", "s", "Time that the split has waited for others, being ahead in event time", telemetry.Counter, seconds(p.PausedNs), labels...)
		}
		f.add("heddle.split.troubled", "", "Whether the split can't be read for now", telemetry.Gauge, flag(p.Trouble != ""), labels...)
	}
}

func (f *figures) alignment(g *AlignmentGroup) {
	group := label("heddle.alignment.group", g.Group)
	if g.Mark != nil {
		f.add("heddle.alignment.mark", "s", "Event time of the slowest source subtask of the group, in seconds since the Unix epoch", telemetry.Gauge, float64(*g.Mark)/1000, group)
	}
	f.add("heddle.alignment.waiting", "{split}", "Splits that wait for the slowest of the group", telemetry.Gauge, float64(g.Waiting), group)
}

func (f *figures) agent(a *Agent) {
	const gauge, counter = telemetry.Gauge, telemetry.Counter
	labels := []telemetry.Label{label("heddle.agent", a.ID), label("host.name", a.Host)}
	f.add("heddle.agent.up", "", "Whether the agent is there", gauge, flag(a.State == "alive"), labels...)
	if a.State == "lost" || a.RSS == 0 && a.Heap == 0 {
		return
	}
	for _, p := range []struct {
		name, unit, help string
		kind             telemetry.Kind
		value            float64
	}{
		{"heddle.agent.memory.rss", "By", "Memory that the process occupies", gauge, float64(a.RSS)},
		{"heddle.agent.memory.heap", "By", "Memory of live and not yet collected objects", gauge, float64(a.Heap)},
		{"heddle.agent.memory.total", "By", "Memory that Go has from the system", gauge, float64(a.Memory)},
		{"heddle.agent.memory.limit", "By", "Limit that the garbage collector keeps to, 0 without", gauge, float64(a.MemoryLimit)},
		{"heddle.agent.gc.cycles", "{cycle}", "Garbage collections", counter, float64(a.GCs)},
		{"heddle.agent.gc.pause", "s", "Time that garbage collections stopped the process, estimated", counter, a.GCPause},
		{"heddle.agent.cpu.time", "s", "Processor time used", counter, a.CPU},
		{"heddle.agent.goroutines", "{goroutine}", "Goroutines", gauge, float64(a.Goroutines)},
		{"heddle.agent.exchange.connections", "{connection}", "Connections to other agents", gauge, float64(a.Connections)},
		{"heddle.agent.exchange.channels", "{channel}", "Channels from and to other agents", gauge, float64(a.Channels)},
		{"heddle.agent.exchange.segments", "{segment}", "Segments of the exchange's pool", gauge, float64(a.Segments)},
		{"heddle.agent.exchange.segments.used", "{segment}", "Segments in use", gauge, float64(a.SegmentsUse)},
		{"heddle.agent.exchange.segments.floating", "{segment}", "Segments lent beyond the exclusive ones: the credit that is out", gauge, float64(a.SegmentsFloating)},
		{"heddle.agent.exchange.segments.reserved", "{segment}", "Segments set aside for inputs and outputs", gauge, float64(a.SegmentsReserved)},
		{"heddle.agent.exchange.compression.plain", "By", "Bytes that compression was tried on", counter, float64(a.PlainBytes)},
		{"heddle.agent.exchange.compression.sent", "By", "Bytes that were sent of those", counter, float64(a.PackedBytes)},
		{"heddle.agent.exchange.debloat.delay", "s", "Longest time that an input takes for what is in flight to it, with exchange.debloat-target", gauge, a.DebloatDelay},
		{"heddle.agent.exchange.debloat.room", "By", "Least that a segment is filled with, with exchange.debloat-target", gauge, float64(a.DebloatRoom)},
		{"heddle.agent.exchange.requests.waiting", "{request}", "Requests of consumers for outputs that are not there yet", gauge, float64(a.RequestsWaiting)},
		{"heddle.agent.exchange.frames.stray", "{frame}", "Frames ignored since they were unknown or late", counter, float64(a.StrayFrames)},
		{"heddle.agent.exchange.io.in", "By", "Bytes received from other agents", counter, float64(a.ExchangeIn)},
		{"heddle.agent.exchange.io.out", "By", "Bytes sent to other agents", counter, float64(a.ExchangeOut)},
		{"heddle.agent.spans.exported", "{span}", "Spans sent to the collector", counter, float64(a.SpansExported)},
		{"heddle.agent.spans.dropped", "{span}", "Spans lost since the collector was slow or away", counter, float64(a.SpansDropped)},
	} {
		f.add(p.name, p.unit, p.help, p.kind, p.value, labels...)
	}
}
