package conf

import (
	"fmt"

	"github.com/heddle-stream/heddle"
)

// builtin are the options of Heddle itself, in the order of the reference page: by the part of the name
// before the first dot, in order of use.
var builtin = []Option{
	{Name: "target", Type: Enum, Default: "local", Values: []string{"local", "standalone", "inproc"}, Common: true,
		Doc: "Where a job runs. local: an ApplicationMaster and agents as processes on this host. standalone: agents are started by hand or by a service manager, with heddle agent. inproc: everything in the command's own process, for debugging."},
	{Name: "parallelism", Type: Int, Default: "1", Unit: "subtasks", Min: "1", Max: "32768", Common: true,
		Doc: "Parallelism of operators for which the job sets none."},
	{Name: "max-parallelism", Type: Int, Default: "128", Unit: "key groups", Min: "1", Max: "32768",
		Doc: "Number of key groups of keyed operators for which the job sets none. It bounds their parallelism for good: state is cut by it."},
	{Name: "chaining", Type: Bool, Default: "true",
		Doc: "Whether operators that need no exchange between them share a task. Without, every operator is a task of its own, which shows more and is slower."},
	{Name: "flush-timeout", Type: Duration, Default: "20ms", Min: "0",
		Doc: "How long a record may wait for its segment to fill before it is sent. 0 sends at once, for the least latency."},
	{Name: "timezone", Type: String,
		Doc: "IANA time zone, such as Europe/Paris, of timestamps that name none. Unset, such a timestamp is an error."},
	{Name: "timeout", Type: Duration, Default: "0", Min: "0", Common: true,
		Doc: "How long an attached run waits for the end of its job. After it, the command ends with exit code 4 and the job goes on; with target inproc it ends. 0: no limit."},
	{Name: "state-dir", Type: String,
		Doc: "Directory of the applications started from this host. Unset: heddle in $XDG_STATE_HOME or ~/.local/state."},

	{Name: "agents", Type: Int, Default: "2", Unit: "processes", Min: "1", Max: "10000", Common: true,
		Doc: "Agents to start, at least. More are started if the job needs more slots."},
	{Name: "agents.max", Type: Int, Default: "0", Unit: "processes", Min: "0",
		Doc: "Most agents to be had at a time. 0: as many as the job needs; with target local, 64."},
	{Name: "agents.spare", Type: Int, Default: "0", Unit: "processes", Min: "0", Max: "10000",
		Doc: "Agents to keep beyond those that are needed, so that a lost one is replaced at once. agents.max limits them too."},
	{Name: "agents.max-memory", Type: Bytes,
		Doc: "Most memory of all agents together, by their agent.memory. Unset: no limit."},
	{Name: "agents.max-cpu", Type: Int, Default: "0", Unit: "cores", Min: "0",
		Doc: "Most cores of all agents together, by their agent.cpu. 0: no limit."},
	{Name: "agents.failures", Type: Int, Default: "0", Unit: "agents", Min: "0", Max: "100000",
		Doc: "Agents that may fail within agents.failure-window. One more, and no agents are asked for any more: the job fails when it lacks slots."},
	{Name: "agents.failure-window", Type: Duration, Default: "10m", Min: "0",
		Doc: "How long a failed agent counts. 0: for ever."},
	{Name: "agents.host-failures", Type: Int, Default: "0", Unit: "agents", Min: "0",
		Doc: "Agents of one host that may fail within agents.failure-window. One more, and the host is excluded: no new agents and slots there, those in use stay. 0: any number."},
	{Name: "agents.host-exclusion", Type: Duration, Default: "10m", Min: "1s",
		Doc: "How long a host stays excluded."},
	{Name: "slots.max", Type: Int, Default: "0", Unit: "slots", Min: "0",
		Doc: "Most slots of all agents together. 0: no limit."},
	{Name: "agent.cpu", Type: Int, Default: "0", Unit: "cores", Min: "0", Max: "1024",
		Doc: "Cores of an agent, for agents.max-cpu and for resource managers. 0: not said."},
	{Name: "agent.slots", Type: Int, Default: "2", Unit: "slots", Min: "1", Max: "1024", Common: true,
		Doc: "Equal slots that each agent is cut into. A slot runs one subtask of each vertex of a slot sharing group."},
	{Name: "agent.memory", Type: Bytes, Min: "32MiB",
		Doc: "Memory limit of an agent, given to Go's garbage collector as a soft limit. Unset: none."},
	{Name: "agent.heartbeat-interval", Type: Duration, Default: "1s", Min: "10ms",
		Doc: "How often an agent reports to the ApplicationMaster."},
	{Name: "agent.heartbeat-timeout", Type: Duration, Default: "10s", Min: "100ms",
		Doc: "After such a silence, an agent counts as lost, and an agent gives up its ApplicationMaster."},
	{Name: "agent.register-timeout", Type: Duration, Default: "30s", Min: "100ms",
		Doc: "How long an agent that was started may take to register."},
	{Name: "agent.idle-timeout", Type: Duration, Default: "30s", Min: "0",
		Doc: "How long an agent without tasks is kept before it is given back."},
	{Name: "slot.selection", Type: Enum, Default: "default", Values: []string{"default", "evenly-spread"},
		Doc: "Which free slot a request gets. default: the first that fits. evenly-spread: on the agent with most slots left."},
	{Name: "slot.request-timeout", Type: Duration, Default: "30s", Min: "100ms",
		Doc: "How long a job waits for its slots before it fails."},

	{Name: "appmaster.bind", Type: String, Default: "127.0.0.1",
		Doc: "Address on which the ApplicationMaster accepts agents."},
	{Name: "appmaster.port", Type: String, Default: "0",
		Doc: "Port for agents: one, a list or a range, such as 9000,9010-9020. 0: any free one."},
	{Name: "web.bind", Type: String, Default: "127.0.0.1",
		Doc: "Address of the REST API and the dashboard."},
	{Name: "web.port", Type: String, Default: "0",
		Doc: "Port of the REST API and the dashboard: one, a list or a range. 0: any free one."},

	{Name: "exchange.bind", Type: String, Default: "127.0.0.1",
		Doc: "Address on which an agent accepts records from other agents."},
	{Name: "exchange.port", Type: String, Default: "0",
		Doc: "Port for records: one, a list or a range. 0: any free one."},
	{Name: "exchange.advertise", Type: String,
		Doc: "Host, or host:port, told to other agents. Unset: the address that is listened on."},
	{Name: "exchange.tls", Type: Bool, Default: "false",
		Doc: "Whether records are encrypted between agents, by mutual TLS under the application's own CA. Connections prove themselves in any case."},
	{Name: "exchange.segment-bytes", Type: Bytes, Default: "32KiB", Min: "1KiB", Max: "16MiB",
		Doc: "Size of a segment: what credit counts and a data frame carries at most."},
	{Name: "exchange.memory", Type: Bytes, Default: "64MiB", Min: "1MiB",
		Doc: "Memory for all segments of an agent."},
	{Name: "exchange.exclusive", Type: Int, Default: "2", Unit: "segments", Min: "0", Max: "1024",
		Doc: "Segments that each channel has for itself."},
	{Name: "exchange.floating", Type: Int, Default: "32", Unit: "segments", Min: "0", Max: "65536",
		Doc: "Segments that a gate lends to channels with a backlog, beside their own."},
	{Name: "exchange.max-per-channel", Type: Int, Default: "32", Unit: "segments", Min: "1", Max: "65536",
		Doc: "Most segments that one channel may hold."},
	{Name: "exchange.max-per-subpartition", Type: Int, Default: "32", Unit: "segments", Min: "1", Max: "65536",
		Doc: "Most segments that a producer may fill ahead for one consumer."},
	{Name: "exchange.max-connections", Type: Int, Default: "1", Unit: "connections", Min: "1", Max: "64",
		Doc: "Connections between two agents. More help where one core cannot serve a link."},
	{Name: "exchange.connect-timeout", Type: Duration, Default: "10s", Min: "10ms",
		Doc: "Time limit of one attempt to connect."},
	{Name: "exchange.connect-retries", Type: Int, Default: "3", Min: "0", Max: "100",
		Doc: "Further attempts after a failed one."},
	{Name: "exchange.connect-backoff", Type: Duration, Default: "200ms", Min: "0",
		Doc: "Pause before the first further attempt. It doubles each time."},
	{Name: "exchange.handshake-timeout", Type: Duration, Default: "10s", Min: "10ms",
		Doc: "Time limit for both sides of a new connection to prove themselves."},
	{Name: "exchange.partition-request-timeout", Type: Duration, Default: "10s", Min: "10ms",
		Doc: "How long a request waits at the producer's agent for its partition to appear."},
	{Name: "exchange.keepalive-interval", Type: Duration, Default: "10s", Min: "10ms",
		Doc: "After such a silence, a connection is probed."},
	{Name: "exchange.keepalive-timeout", Type: Duration, Default: "30s", Min: "20ms",
		Doc: "After such a silence, a connection counts as lost."},
	{Name: "exchange.idle-timeout", Type: Duration, Default: "1m", Min: "10ms",
		Doc: "After such a time without channels, a connection is closed."},

	{Name: "kafka.brokers", Type: List,
		Doc: "Brokers to reach the Kafka cluster by, as host:port; the others are found through them. A job's source or sink may name others."},
	{Name: "kafka.client-id", Type: String, Default: "heddle",
		Doc: "Name by which brokers know Heddle's connections, in their logs and quotas."},
	{Name: "kafka.discovery-interval", Type: Duration, Default: "5m", Min: "0",
		Doc: "How often a source looks for new partitions and topics. 0: only at the start."},
	{Name: "kafka.unavailable-timeout", Type: Duration, Default: "2m", Min: "1s",
		Doc: "How long a partition may stay without an answering leader before the job fails."},
	{Name: "kafka.tls.enabled", Type: Bool, Default: "false",
		Doc: "Whether connections to brokers are encrypted."},
	{Name: "kafka.tls.ca-file", Type: String,
		Doc: "PEM file of the authorities to trust. Unset: those of the system."},
	{Name: "kafka.tls.cert-file", Type: String,
		Doc: "PEM file of the client's certificate, for mutual TLS."},
	{Name: "kafka.tls.key-file", Type: String,
		Doc: "PEM file of that certificate's key."},
	{Name: "kafka.tls.server-name", Type: String,
		Doc: "Name expected in a broker's certificate. Unset: the host it is dialed by."},
	{Name: "kafka.sasl.mechanism", Type: Enum, Values: []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"},
		Doc: "How to authenticate to brokers. Unset: not at all."},
	{Name: "kafka.sasl.user", Type: String,
		Doc: "User to authenticate as."},
	{Name: "kafka.sasl.password", Type: String, Secret: true,
		Doc: "Password of that user."},
	{Name: "kafka.sasl.password-file", Type: String,
		Doc: "File that holds the password, for hosts where it must not be in a configuration. It is read where it is used: on every host."},

	{Name: "log.level", Type: Enum, Default: "info", Values: []string{"debug", "info", "warn", "error"},
		Doc: "Least level that the logs of ApplicationMaster and agents hold."},
	{Name: "log.format", Type: Enum, Default: "text", Values: []string{"text", "json"},
		Doc: "Form of those logs."},
}

// Builtin returns the registry of Heddle's own options and those that the linked connectors have declared.
func Builtin() (*Registry, error) {
	all := builtin[:len(builtin):len(builtin)]
	for _, d := range heddle.DeclaredOptions() {
		t, ok := declaredTypes[d.Type]
		if !ok {
			return nil, fmt.Errorf("cannot declare option %s: there is no type %q", d.Name, d.Type)
		}
		all = append(all, Option{Name: d.Name, Type: t, Default: d.Default, Unit: d.Unit, Doc: d.Doc, Secret: d.Secret})
	}
	return NewRegistry(all...)
}

var declaredTypes = map[heddle.OptionType]Type{
	heddle.StringOption: String, heddle.BoolOption: Bool, heddle.IntOption: Int,
	heddle.DurationOption: Duration, heddle.BytesOption: Bytes, heddle.ListOption: List,
}
