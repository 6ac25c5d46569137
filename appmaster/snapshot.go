package appmaster

import (
	"time"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// Snapshot is the state of an application at one moment. It never changes; the master publishes new ones.
type Snapshot struct {
	App      string     `json:"app"`
	Job      string     `json:"job"`
	State    string     `json:"state"`             // created, waiting, running, failing, restarting, canceling, finished, failed, canceled
	Waiting  string     `json:"waiting,omitempty"` // what the job waits for
	Since    time.Time  `json:"since"`
	Started  time.Time  `json:"started"`
	Time     time.Time  `json:"time"` // of the snapshot
	Attempt  int        `json:"attempt"`
	Cause    *Cause     `json:"cause,omitempty"`
	Vertices []Vertex   `json:"vertices"`
	Edges    []Edge     `json:"edges"`
	Agents   []Agent    `json:"agents"`
	Sources  []Source   `json:"sources"`
	Warnings []Warning  `json:"warnings,omitempty"` // the latest, oldest first
	Slots    SlotCounts `json:"slots"`

	MasterAttempt uint32          `json:"master_attempt"`
	Supply        Supply          `json:"supply"`
	Pending       []plane.Pending `json:"pending,omitempty"` // what the job waits for, and why it has not got it

	Containers Containers `json:"containers"`

	Held     []Container   `json:"held,omitempty"`     // agents' containers: those there are, and of those that ended the latest
	States   []StateChange `json:"states,omitempty"`   // of the job, the latest, oldest first
	Failures []Cause       `json:"failures,omitempty"` // of the job, the latest, oldest first
	Process  Process       `json:"process"`            // the ApplicationMaster's own

	Alignment []AlignmentGroup `json:"alignment,omitempty"`

	Tokens *Tokens `json:"tokens,omitempty"` // for services outside; absent: none are needed
}

// AlignmentGroup is a group of sources that wait for each other in event time.
type AlignmentGroup struct {
	Group   string          `json:"group"`
	Sources []AlignedSource `json:"sources"`
	Mark    *int64          `json:"mark,omitempty"`    // event time of the slowest, in milliseconds; absent: there is none to wait for, or it is not known
	Slowest string          `json:"slowest,omitempty"` // vertex name and subtask
	Waiting int             `json:"waiting"`           // splits that are too far ahead of it
}

// AlignedSource is a source of an AlignmentGroup.
type AlignedSource struct {
	Vertex     int    `json:"vertex"`
	Name       string `json:"name"`
	MaxDriftMs int64  `json:"max_drift_ms"` // how far a split may be ahead
}

// Containers count agents since this ApplicationMaster began.
type Containers struct {
	Asked    int `json:"asked"` // in all, less what was withdrawn
	Granted  int `json:"granted"`
	Released int `json:"released"` // told to go since nobody needed them
	Ended    int `json:"ended"`
	Failed   int `json:"failed"` // of those that ended, by their own fault
}

// Supply is where agents come from.
type Supply struct {
	Asked     int              `json:"asked"` // agents asked for and not granted
	Starting  int              `json:"starting"`
	Alive     int              `json:"alive"`
	Probation int              `json:"probation"`
	Limit     int              `json:"limit,omitempty"`    // of agents; 0: none
	Failed    int              `json:"failed"`             // agents that failed and still count
	Excluded  []string         `json:"excluded,omitempty"` // hosts that get no agents for now
	Starved   string           `json:"starved,omitempty"`  // why no more agents will come
	Left      *cluster.Profile `json:"left,omitempty"`     // where slots are cut as they are asked for: what no slot has
}

// SlotCounts sums up slots.
type SlotCounts struct {
	Needed int `json:"needed"` // by the job
	Total  int `json:"total"`  // of the agents that are there
	Free   int `json:"free"`
}

// Cause is why a job failed, or fails.
type Cause struct {
	Kind     string    `json:"kind"`
	Message  string    `json:"message"`
	Operator string    `json:"operator,omitempty"`
	Vertex   string    `json:"vertex,omitempty"`
	Subtask  *int      `json:"subtask,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Host     string    `json:"host,omitempty"`
	Time     time.Time `json:"time"`
	LastLogs []string  `json:"last_logs,omitempty"` // of the agent that was lost
}

// Vertex is a chain of operators and its subtasks.
type Vertex struct {
	ID          int            `json:"id"`
	Name        string         `json:"name"`
	Parallelism int            `json:"parallelism"`
	SlotGroup   string         `json:"slot_group"`
	Tasks       map[string]int `json:"tasks"` // how many are in which state
	RecordsIn   int64          `json:"records_in"`
	RecordsOut  int64          `json:"records_out"`
	InRate      float64        `json:"in_rate"` // records a second, over the last few seconds
	OutRate     float64        `json:"out_rate"`
	Watermark   *int64         `json:"watermark,omitempty"` // the lowest of its subtasks; absent: some have none
	Busy        float64        `json:"busy"`                // shares of the running time, 0 to 1
	Blocked     float64        `json:"blocked"`
	Operators   []Operator     `json:"operators"`
	Subtasks    []Subtask      `json:"subtasks"`
}

// Operator is an operator with its counters, summed over subtasks.
type Operator struct {
	ID       int              `json:"id"`
	Name     string           `json:"name"`
	Kind     string           `json:"kind"`
	Counters map[string]int64 `json:"counters"`
}

// Edge is a connection between vertices.
type Edge struct {
	From         int    `json:"from"`
	To           int    `json:"to"`
	Partitioning string `json:"partitioning"`
}

// Subtask is one task of a vertex.
type Subtask struct {
	Index      int       `json:"index"`
	Attempt    int       `json:"attempt"`
	State      string    `json:"state"`
	Since      time.Time `json:"since"`
	Agent      string    `json:"agent,omitempty"`
	Slot       int       `json:"slot"`
	Error      string    `json:"error,omitempty"`
	RecordsIn  int64     `json:"records_in"`
	RecordsOut int64     `json:"records_out"`
	Watermark  *int64    `json:"watermark,omitempty"`
	Busy       float64   `json:"busy"`
	Blocked    float64   `json:"blocked"`
	InQueued   int       `json:"in_queued"`  // segments received and not yet consumed
	OutQueued  int       `json:"out_queued"` // segments emitted and not yet sent
	InPool     float64   `json:"in_pool"`    // share in use of the segments its input could have from other agents
	OutPool    float64   `json:"out_pool"`   // share in use of the segments its output could have
	CreditIn   int       `json:"credit_in"`  // segments that producers of other agents may yet send
	CreditOut  int       `json:"credit_out"` // segments that consumers of other agents would take now
	Starved    int       `json:"starved"`    // channels to such consumers in which segments wait for credit

	BytesIn  int64      `json:"bytes_in"` // through the exchange
	BytesOut int64      `json:"bytes_out"`
	Time     TaskTime   `json:"time"`   // since the task began
	Recent   TaskShares `json:"recent"` // since the report before: Busy and Blocked are since the task began
	Hops     []Hop      `json:"hops,omitempty"`
}

// TaskTime is how a task has spent its running time, in seconds.
type TaskTime struct {
	Busy    float64 `json:"busy"`
	Idle    float64 `json:"idle"`    // waiting for input
	Blocked float64 `json:"blocked"` // waiting for room in the output: back-pressured
}

// TaskShares are parts of a span of time. They add up to 1, or are all 0 before the first report.
type TaskShares struct {
	Busy    float64 `json:"busy"`
	Idle    float64 `json:"idle"`
	Blocked float64 `json:"blocked"`
}

// Hop is how long one phase of the way through an edge to a subtask took, for the records that were followed.
type Hop struct {
	Edge  int     `json:"edge"`
	Phase string  `json:"phase"` // fill, credit, send_queue, wire, receive_queue, alignment
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean"` // seconds; P50 and P99 are upper bounds of their buckets
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`

	Buckets *telemetry.Buckets `json:"-"`
}

// Agent is an agent with its slots.
type Agent struct {
	ID          string    `json:"id"`
	Container   string    `json:"container"`
	Host        string    `json:"host"`
	Exchange    string    `json:"exchange,omitempty"`  // where its exchange accepts
	State       string    `json:"state"`               // starting, alive, probation, lost
	Why         string    `json:"why,omitempty"`       // of a probation or loss
	LastLogs    []string  `json:"last_logs,omitempty"` // of a lost one
	PID         int       `json:"pid,omitempty"`
	Heard       time.Time `json:"heard"`
	Slots       []Slot    `json:"slots"`
	RSS         int64     `json:"rss"`
	Heap        int64     `json:"heap"`
	Goroutines  int       `json:"goroutines"`
	Connections int       `json:"connections"`
	Segments    int64     `json:"segments"`
	SegmentsUse int64     `json:"segments_used"`
	ExchangeIn  int64     `json:"exchange_in"`
	ExchangeOut int64     `json:"exchange_out"`

	Memory           int64   `json:"memory"`                 // that Go has from the system
	MemoryLimit      int64   `json:"memory_limit,omitempty"` // 0: none
	GCs              int64   `json:"gcs"`
	GCPause          float64 `json:"gc_pause"` // seconds in all
	CPU              float64 `json:"cpu"`      // seconds used
	SegmentsFloating int64   `json:"segments_floating"`
	SegmentsReserved int64   `json:"segments_reserved"`       // set aside for inputs and outputs: the credit that is always there
	PlainBytes       int64   `json:"plain_bytes,omitempty"`   // that compression was tried on
	PackedBytes      int64   `json:"packed_bytes,omitempty"`  // what was sent of them
	DebloatDelay     float64 `json:"debloat_delay,omitempty"` // seconds that an input takes for what is in flight to it, the longest
	DebloatRoom      int64   `json:"debloat_room,omitempty"`  // bytes that a segment is filled with, the least
	RequestsWaiting  int64   `json:"requests_waiting,omitempty"`
	StrayFrames      int64   `json:"stray_frames,omitempty"`
	Channels         int64   `json:"channels"` // of other agents, consumed and served
	SpansExported    int64   `json:"spans_exported"`
	SpansDropped     int64   `json:"spans_dropped"`

	Resources cluster.Profile `json:"resources,omitzero"`
	Former    bool            `json:"former,omitempty"` // an earlier attempt of the master has started it
	Tokens    uint64          `json:"tokens,omitempty"` // version of the tokens that it uses; 0: those it was started with

	Granted time.Time `json:"granted,omitzero"` // when the driver had got it
	Started time.Time `json:"started,omitzero"` // when its process was started, by its own host's clock
	Joined  time.Time `json:"joined,omitzero"`  // when it registered
}

// Slot is one slot of an agent.
type Slot struct {
	Agent      string          `json:"agent"`
	Index      int             `json:"index"`
	Job        string          `json:"job,omitempty"` // "": free
	Allocation uint64          `json:"allocation,omitempty"`
	Resources  cluster.Profile `json:"resources,omitzero"`
	Tasks      []string        `json:"tasks,omitempty"` // vertex name and subtask
}

// Source is a source with its splits.
type Source struct {
	Vertex int     `json:"vertex"`
	Name   string  `json:"name"`
	Final  bool    `json:"final"`                        // no split will be added
	Failed int64   `json:"failed_discoveries,omitempty"` // looks for splits that came to nothing
	Splits []Split `json:"splits"`
}

// Split is one split of a source.
type Split struct {
	ID       string `json:"id"`
	Subtask  int    `json:"subtask"`
	Position int64  `json:"position"`            // next to be read; -1: unknown
	End      int64  `json:"end"`                 // where the input ends for now; -1: unknown
	Trouble  string `json:"trouble,omitempty"`   // why it can't be read for now
	Paused   bool   `json:"paused,omitempty"`    // it is ahead of other splits, and waits for them
	PausedNs int64  `json:"paused_ns,omitempty"` // how long it has done so, in all

	// Since its reader began, where that is measured.
	Records   int64 `json:"records,omitempty"`
	Bytes     int64 `json:"bytes,omitempty"`     // as they came from outside
	Fetches   int64 `json:"fetches,omitempty"`   // answers that brought something
	FetchNs   int64 `json:"fetch_ns,omitempty"`  // from request to answer, of those, in all
	Empty     int64 `json:"empty,omitempty"`     // answers that brought nothing
	Committed int64 `json:"committed,omitempty"` // the position that the outside world was last told; absent: none
}

// Warning is a fault that was survived.
type Warning struct {
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
}
