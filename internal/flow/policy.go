package flow

import (
	"fmt"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// OnError says what becomes of a record for which a function returned an error.
// A panic is not an error: it fails the task whatever the policy.
type OnError uint8

const (
	Fail       OnError = iota // the task fails, naming operator and record
	Skip                      // the record is left out and counted in "skipped records"
	DeadLetter                // like Skip, and a DeadRecord goes out of the side output for them
)

// Policy is the error policy of an operator. The graph's builder may change it until the job runs.
type Policy struct {
	OnError OnError
	Port    int // DeadLetter: the output port, of type DeadRecord
}

// DeadRecord describes a record for which an operator's function returned an error.
type DeadRecord struct {
	Operator string
	Reason   string
	Record   string // the record, printed
	Value    []byte // a message's bytes, where it could not be decoded; else nil

	// Where the message was, if it came from a topic.
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte // nil: null, or the format does not look at keys
}

// Title is how the operator is called in plans, errors, logs and tests: its name, or kind and id.
func (n *Node) Title() string {
	if n.Name != "" {
		return n.Name
	}
	return n.Kind + " " + strconv.Itoa(n.ID)
}

// KindAndTitle names the node where its name alone does not say what it is.
func (n *Node) KindAndTitle() string {
	if n.Name == "" {
		return n.Title() // begins with the kind
	}
	return n.Kind + " " + n.Name
}

// at is the operator's title and place in the author's program.
func (n *Node) at() string {
	if n.Where == "" {
		return n.Title()
	}
	return n.Title() + " (" + n.Where + ")"
}

// OperatorError is an error of one of the author's functions: the operator it is in is part of the text, and can be asked for.
type OperatorError struct {
	Operator string // Node.Title
	Err      error
}

func (e *OperatorError) Error() string { return e.Err.Error() }
func (e *OperatorError) Unwrap() error { return e.Err }

// OperatorName returns the title of the operator.
func (e *OperatorError) OperatorName() string { return e.Operator }

// recordError is the failure of an author's function at a record.
func recordError(n *Node, err error, rec any) error {
	return failedAt(n, err, rec, notLogged)
}

// failedAt is an error at a record, and what logs tell of it.
func failedAt(n *Node, err error, rec any, logged string) error {
	return &OperatorError{n.Title(), &DataError{fmt.Errorf("operator %s: %w; record: %s", n.at(), err, show(rec, maxShown)), "operator " + n.at() + ": " + logged}}
}

// panicError turns what recover returned in an author's function into an error. It must be called by the deferred function itself.
func panicError(n *Node, p any, rec any) error {
	err := panicked(p, panicSite())
	return failedAt(n, err, rec, Logged(err))
}

// callError is panicError for a call that has no record, such as Open.
func callError(n *Node, what string, p any) error {
	return &OperatorError{n.Title(), fmt.Errorf("operator %s: %s: %w", n.at(), what, panicked(p, panicSite()))}
}

// panicSite is " at file:line" of where a panic began, seen from a deferred function: the innermost frame that is not the
// runtime's. Where the engine itself found fault with a call, that is the call.
func panicSite() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	panicking, first := false, ""
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(f.Function, "runtime."):
			site := " at " + path.Base(path.Dir(f.File)) + "/" + path.Base(f.File) + ":" + strconv.Itoa(f.Line)
			if !vocabulary(f) {
				if first != "" && strings.HasPrefix(f.Function, module+"/") {
					return first // no author's function is in between
				}
				return site
			}
			if first == "" {
				first = site
			}
		}
		if !more {
			return first
		}
	}
}

const module = "github.com/heddle-stream/heddle"

// vocabulary reports whether f is of what authors call: this package and package heddle.
func vocabulary(f runtime.Frame) bool {
	return !strings.HasSuffix(f.File, "_test.go") &&
		(strings.HasPrefix(f.Function, module+".") || strings.HasPrefix(f.Function, module+"/internal/flow."))
}
