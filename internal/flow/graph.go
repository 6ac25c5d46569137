package flow

import (
	"context"
	"log/slog"
	"time"
)

// Graph is a job as its author wrote it: operators and the streams between them.
// Package heddle builds it; internal/jobgraph compiles it into vertices and subtasks.
// Every process of an application builds the same Graph and finds its operators by Node.ID.
type Graph struct {
	Name  string
	Nodes []*Node // Nodes[i].ID == i; an edge leads from a lower to a higher id, save where the author made a cycle
	Errs  []error // what went wrong while building; reported together by the compiler

	// Defaults of the job, 0 or "" where its author set none.
	Parallelism, MaxParallelism int

	SlotGroups []SlotGroup // those that the author said something of, in that order
}

// SlotGroup is what the author says of a slot sharing group.
type SlotGroup struct {
	Name      string
	Resources Resources // of each slot of the group
	Where     string    // file:line of the author's call, for errors
}

// Resources are what a slot must have. What is zero is not asked for: where all is, any slot will do.
type Resources struct {
	CPU    float64          // cores
	Memory int64            // bytes; rounded up to MiB
	Custom map[string]int64 // other resources that agents have, by name, such as gpu
}

// Add gives n the next id and puts it into the graph.
func (g *Graph) Add(n *Node) *Node {
	n.ID = len(g.Nodes)
	n.graph = g
	g.Nodes = append(g.Nodes, n)
	return n
}

// Node is one operator of a Graph.
type Node struct {
	ID     int
	Kind   string // "source", "map", "window", "sink", …: one word, for plans and errors
	Name   string // shown to people; by default the kind and the id
	UID    string // stable across versions of the program; "" until set
	Detail string // what else distinguishes the operator, such as "tumbling 1m"; part of the fingerprint
	Where  string // file:line of the author's call, for errors

	Parallelism    int    // 0: the job's
	MaxParallelism int    // number of key groups; 0: the job's
	SlotGroup      string // slot sharing group; "": that of its inputs, else "default"
	CoLocation     string // co-location group; "": none
	NoChain        bool   // never chain to the operators before it
	NoChainNext    bool   // never chain the operators after it

	In      []Edge    // all ports together; several edges on one port are a union
	Outputs []Type    // record type of each output port: 0 is the main one, others are side outputs
	Keyed   bool      // holds keyed state: its input must be partitioned by key
	Source  Source    // nil unless the node is a source
	Align   Alignment // of a source: how its splits wait for others
	Sink    bool      // has no outputs that anybody must consume
	Sole    string    // what the node must be the only one of the job to write; "": nothing
	New     Factory   // instantiates the operator for one subtask
	// Check returns what only typed code can find wrong, such as state that can't be encoded; nil if there is nothing to check.
	// The compiler calls it.
	Check func() error
	// Needs are what outside of the job the connector and format of a source or sink must be let to use, as far as they say.
	Needs []Need
	// Ready asks the connector and format of a source or sink, before tasks are deployed, whether they will be able to work; nil if they don't know.
	Ready func(ctx context.Context, option func(name string) (string, bool)) error

	graph *Graph // that it is in
}

// Edge is one input of a node.
type Edge struct {
	From     *Node
	FromPort int
	ToPort   int
	Part     Partitioning
}

// PartitionKind says which consumer subtask gets a record.
type PartitionKind uint8

const (
	Forward   PartitionKind = iota // subtask i to subtask i: needs equal parallelism; the only kind that may be chained
	Hash                           // by key group of the record's key
	Rebalance                      // round robin over all consumers
	Rescale                        // round robin over the consumers near the producer: each side's subtasks in contiguous blocks
	Broadcast                      // every record to all consumers
	Custom                         // by a function of the author's
)

func (k PartitionKind) String() string {
	return [...]string{"forward", "hash", "rebalance", "rescale", "broadcast", "custom"}[k]
}

// Partitioning is a PartitionKind with what it needs to know.
// Impl is for the typed writer: a *KeyBy[T] for Hash, a func(T, int) int for Custom, else nil.
type Partitioning struct {
	Kind PartitionKind
	Impl any
	// Auto marks a forward edge that nobody asked for: the compiler makes it a rebalance where parallelism differs.
	Auto bool
}

// Factory makes the instance of a node for one subtask. outs[i] is the Out[U] of output port i
// (never nil: a port that nobody reads gets a discarding Out).
type Factory func(rt Runtime, outs []any) (Instance, error)

// Instance is a running operator in its untyped form.
type Instance struct {
	Inputs []any        // the Out[T] of each input port; empty for a source
	Op     Operator     // life cycle
	Source SourceDriver // nil unless a source
}

// Operator is the life cycle of an operator instance. The task's goroutine calls it.
type Operator interface {
	// Open is called before the first record, consumers before producers. ctx is cancelled when the task is.
	Open(ctx context.Context) error
	// Timer is called when the processing time last asked for by Runtime.SetTimer has come.
	// It may emit. now is in milliseconds since the Unix epoch.
	Timer(now int64) error
	// Close is called once after Open was, in any state of the task. It may not emit.
	// (What an operator still has to emit, it emits before it passes on Control End; a sink flushes there too.)
	Close() error
}

// Flusher is an Operator that holds output which should not wait long (batches being filled).
// The task calls Flush when its input runs dry and at the flush timeout.
type Flusher interface {
	Flush() error
}

// Runtime is what a task offers the operators it runs.
type Runtime interface {
	JobName() string
	Node() *Node
	Subtask() int
	Parallelism() int
	MaxParallelism() int // number of key groups
	// Now is the processing time, milliseconds since the Unix epoch; virtual in heddletest.
	Now() int64
	// SetTimer asks for Operator.Timer at or soon after at. One timer an operator: the last call counts; MaxTime clears it.
	SetTimer(at int64)
	// Wake makes the task poll its source again. It is the one method that any goroutine may call, at any time, and never blocks.
	Wake()
	// Counter returns the counter of that name of this operator, made on first use. Call it in Open, not per record.
	Counter(name string) *Counter
	// Option returns a configuration value that a connector declared, and whether it is set or has a default.
	Option(name string) (string, bool)
	Logger() *slog.Logger
	// FlushTimeout is how long a record may wait for its batch or segment to fill.
	FlushTimeout() time.Duration
}

// Type is a record type in its untyped form: what the engine needs to move records of it
// without knowing them. TypeOf makes one. It is the bridge between typed and untyped code;
// its methods do type assertions, once, when a chain is built.
type Type interface {
	// Name is the Go type, such as "string" or "main.Click".
	Name() string
	// Err is nil, or says why records of this type can't be sent from process to process, naming type and field.
	Err() error
	// NewWriter returns the Out[T] that partitions records into segments, and its untyped side.
	NewWriter(WriterConfig) (out any, w Writer, err error)
	// NewReader returns what decodes segments of this type into out, an Out[T].
	NewReader(out any) (SegmentReader, error)
	// Tee returns an Out[T] that passes everything to each of outs; for none, it discards.
	Tee(outs []any) (any, error)
	// Counted returns an Out[T] that counts records and batches and passes on to out.
	Counted(out any, records *Counter) (any, error)
}

// WriterConfig is what a typed writer needs.
type WriterConfig struct {
	Part           Partitioning
	Channels       int // consumers that this producer reaches
	Subtask        int // the producer's index: where round robin begins
	MaxParallelism int // key groups of the consumer
	Parallelism    int // of the consumer
	Segments       SegmentOut
	Records, Bytes *Counter
	Tracer         *Tracer // follows records that are written; nil: none
	Edge           int     // what the Tracer's Follower knows the writer by
}

// Writer is the untyped side of a typed writer.
type Writer interface {
	// Flush sends every segment that holds a record.
	Flush() error
	// Pending reports whether a segment holds a record.
	Pending() bool
}

// SegmentOut is the exchange as a typed writer sees it. At most one segment a channel is open.
type SegmentOut interface {
	// Get opens a segment for channel ch: zero or more bytes of room, the first byte 8-byte aligned.
	// It blocks until there is one (this is back-pressure) or the task is cancelled.
	Get(ch int) ([]byte, error)
	// Put sends the first n bytes of the open segment of ch; n > 0.
	Put(ch, n int) error
	// Control sends c on channel ch, after what was Put there before.
	Control(ch int, c Control) error
}

// SegmentLender is a SegmentOut that may go beyond its limits for a writer in the midst of a record.
type SegmentLender interface {
	// GetMore is Get for the segment in which a record goes on.
	GetMore(ch int) ([]byte, error)
}

// SegmentReader decodes the segments that a Writer of the same Type wrote and pushes their records.
type SegmentReader interface {
	// Consume decodes one segment. payload is borrowed for the call, 8-byte aligned. Malformed input is an error, never a panic.
	Consume(payload []byte) error
	Controller
}
