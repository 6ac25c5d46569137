package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"runtime"
	"strings"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/netstack"
)

var (
	// ErrCancelled is the cause with which a task that was cancelled fails its partitions.
	ErrCancelled = errors.New("the task was cancelled")

	errUnexpected = errors.New("unexpected control")
)

// Kinder is an error that knows its kind. Exchanges and connectors give it to theirs.
type Kinder interface {
	error
	ErrorKind() cluster.ErrorKind
}

// inOperator is an error that knows in which operator it happened.
type inOperator interface {
	error
	OperatorName() string
}

// failureOf classes err. at is the operator that ran, nil if none did or it is not known. Texts are cut to what may travel.
func failureOf(err error, at *operator) cluster.Failure { return classify(err, at).Fit() }

func classify(err error, at *operator) cluster.Failure {
	if f, ok := errors.AsType[cluster.Failure](err); ok {
		if f.Logged != "" {
			f.Logged = strings.ReplaceAll(err.Error(), f.Error(), f.Logged)
		}
		f.Message = err.Error()
		return f
	}
	f := cluster.Failure{Message: err.Error()}
	if text := flow.Logged(err); text != f.Message {
		f.Logged = text
	}
	f.Kind, f.Peer = kindOf(err)
	if op, ok := errors.AsType[inOperator](err); ok {
		f.Operator = op.OperatorName()
	} else if at != nil && f.Kind != cluster.Lost && f.Kind != cluster.Corrupt {
		f.Operator = at.node.Title()
	}
	return f
}

// kindOf classes err, and names the peer that went away, if one did. What nothing else is known of is the job's own fault.
func kindOf(err error) (kind cluster.ErrorKind, peer string) {
	if e, ok := errors.AsType[*netstack.RemoteError](err); ok {
		switch e.Kind {
		case cluster.NotFound, cluster.Denied, cluster.Corrupt:
			return e.Kind, e.Peer
		}
		return cluster.Lost, e.Peer // whatever befell the peer: it is not our failure
	}
	if e, ok := errors.AsType[*netstack.LocalError](err); ok {
		return e.Kind, ""
	}
	if _, ok := errors.AsType[*flow.SegmentError](err); ok {
		return cluster.Corrupt, ""
	}
	if k, ok := errors.AsType[Kinder](err); ok {
		return k.ErrorKind(), ""
	}
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cluster.NotFound, ""
	case errors.Is(err, fs.ErrPermission):
		return cluster.Denied, ""
	case isNet, errors.Is(err, context.DeadlineExceeded):
		return cluster.Unavailable, ""
	}
	return cluster.Invalid, ""
}

// FailureOf classes an error of New.
func FailureOf(err error) cluster.Failure { return failureOf(err, nil) }

// panicFailure describes what recover returned: a fault of ours or of a connector, since the functions of a job's
// author have their own net (flow names operator and record there). It must be called by the deferred function itself.
func panicFailure(p any, where string) cluster.Failure {
	site := panicSite()
	f := cluster.Failure{Kind: cluster.Internal, Message: fmt.Sprintf("panic in %s: %v%s", where, p, site)}
	if _, ok := p.(runtime.Error); !ok {
		f.Logged = fmt.Sprintf("panic in %s%s", where, site) // the value may hold a record
	}
	return f.Fit()
}

// panicSite is " at function (file:line)" of the innermost frame that is not the runtime's.
func panicSite() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	panicking := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf(" at %s (%s:%d)", f.Function, f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
		if !more {
			return ""
		}
	}
}
