package flow

import (
	"context"
	"time"
)

// Split is a part of a source's input that one reader subtask reads: a Kafka partition, a file.
type Split struct {
	ID    string // unique within the source, such as "clicks-3"
	State []byte // where to begin and end, in the connector's own form; resolved, never symbolic

	// Where it is read best: the subtask that reads it is put there if it can be. Best first; empty: anywhere.
	Hosts []string
	Racks []string // of those hosts or of others, where no host can be had
}

// Source is a source in its untyped form.
type Source interface {
	// Enumerator makes the source's enumerator, in the ApplicationMaster. It may validate its settings
	// against the outside world (within ctx), so that a bad job is refused before it runs.
	Enumerator(ctx context.Context, env EnumeratorEnv) (Enumerator, error)
	// Bounded reports whether the source ends by itself.
	Bounded() bool
}

// EnumeratorEnv is what the master offers an enumerator.
type EnumeratorEnv struct {
	JobName string
	Node    *Node
	Readers int // parallelism of the source
	Option  func(name string) (string, bool)
	Warn    func(msg string) // shows a fault that was survived
	Debug   func(msg string) // notes what only those want to know who look for it; nil: nobody does
}

// Enumerator finds splits. One goroutine of the master calls it; calls never overlap.
type Enumerator interface {
	// Discover returns the splits found since the last call.
	Discover(ctx context.Context) (Discovery, error)
	// Owner returns the reader subtask, 0 ≤ owner < readers, that gets s.
	Owner(s Split, readers int) int
	Close() error
}

// Discovery is the answer of one Discover.
type Discovery struct {
	Added []Split
	Final bool          // no split will ever be added after these
	Next  time.Duration // when to call Discover again, unless Final
	// Failed says that the look came to nothing, as when the outside world did not answer: it is counted, and costs another try.
	Failed bool
}

// SourceStatus is what a poll of a source came to.
type SourceStatus uint8

const (
	SourceMore SourceStatus = iota // emitted, or may have more at once: poll again
	SourceWait                     // nothing now: poll again after Runtime.Wake, a timer or an added split
	SourceEnd                      // every split is read to its end and no more will come
)

// SourceDriver is a source operator as its task drives it. The task's goroutine calls it.
type SourceDriver interface {
	AddSplits([]Split) error
	// NoMoreSplits says that no split will be added after those given.
	NoMoreSplits() error
	// Poll reads and emits about one batch. At SourceEnd it has emitted everything, the last watermark included, but not End.
	Poll() (SourceStatus, error)
	// Splits reports where reading stands.
	Splits() []SplitStatus
}

// SplitStatus is the progress of one split, for people.
type SplitStatus struct {
	ID       string
	Position int64 // next offset, line or byte to be read; -1 unknown
	End      int64 // where the input ends for now; -1 unknown
	// Trouble is why the split can't be read for now, though the reader keeps trying; "" if all is well.
	Trouble string
	Paused  bool // it is ahead of other splits, and waits for them

	PausedFor time.Duration // how long it has waited for them, in all

	// What was read since the reader began, where it measures that.
	Records    int64
	Bytes      int64         // as they came from outside
	Fetches    int64         // answers that brought something
	FetchTime  time.Duration // from request to answer, of those, in all
	EmptyPolls int64         // answers that brought nothing
	Committed  int64         // the position that the outside world was last told; 0: none
}

// Pauser is a Reader or MessageReader that can leave a split alone for a while. What it has of the split waits, and nothing is lost.
// The task's goroutine calls it.
type Pauser interface {
	Pause(split string, on bool)
}

// pauserOf returns what can leave the splits of a reader alone, or nil. A decorator can if what it decorates does.
func pauserOf(r any) Pauser {
	p, ok := r.(Pauser)
	if u, wraps := r.(unwrapped); ok && wraps {
		_, ok = u.Unwrap().(Pauser)
	}
	if !ok {
		return nil
	}
	return p
}

// Reader reads splits into typed batches. Connectors implement it (as heddle.Reader).
// The task's goroutine calls every method; what a reader does in the background is its own affair,
// told by ReaderEnv.Wake.
type Reader[T any] interface {
	AddSplits([]Split) error
	NoMoreSplits() error
	// Poll emits at most about one batch of one split by emit, and says whether to poll again.
	// It must not block on the outside world: it answers SourceWait and calls Wake when there is something.
	Poll(emit Emit[T]) (SourceStatus, error)
	Splits() []SplitStatus
	Close() error
}

// Emit takes a batch of one split. ended reports that the split gives no more after it (the batch may then be empty).
type Emit[T any] func(split string, b Batch[T], ended bool) error

// ReaderEnv is what a task offers a reader.
type ReaderEnv struct {
	Runtime Runtime
	// Times says whether anybody downstream wants event times: a reader that has them then fills Batch.Times.
	Times bool
	// Dead takes what the author wants to see of an input that was left out, with its event time if there is one. A reader may call it within Poll.
	Dead func(d DeadRecord, time int64, timed bool) error
}

// Input is a typed source: what a connector gives package heddle.
type Input[T any] interface {
	Source
	// NewReader makes the reader of one subtask. ctx ends with the task.
	NewReader(ctx context.Context, env ReaderEnv) (Reader[T], error)
	// Describe is one line for plans, such as "kafka clicks".
	Describe() string
}

// Output is a typed sink: what a connector gives package heddle.
type Output[T any] interface {
	NewWriter(ctx context.Context, rt Runtime) (SinkWriter[T], error)
	Describe() string
}

// SinkWriter writes one subtask's records. The task's goroutine calls every method.
type SinkWriter[T any] interface {
	// Write takes a batch, borrowed for the call. A record may be on its way when it returns;
	// a delivery that failed is returned by a later call.
	Write(Batch[T]) error
	// Flush returns when everything written so far is delivered. It is called before a barrier passes and at the end.
	Flush(ctx context.Context) error
	Close() error
}

// Failing is a SinkWriter or MessageWriter that delivers in the background. It is asked now and then whether a delivery has failed, which would otherwise be
// told by the next Write, and there may be none for long.
type Failing interface {
	Failed() error
}

// Finisher is a SinkWriter or MessageWriter that does something once all input was written and flushed, such as
// giving a file its name. It is not called in a task that fails or is cancelled.
type Finisher interface {
	Finish(ctx context.Context) error
}
