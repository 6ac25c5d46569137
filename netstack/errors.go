package netstack

import (
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// Errors that somebody decides on. They are found by errors.Is inside a LocalError or RemoteError.
var (
	// ErrPartitionNotFound: the partition did not appear at its producer's agent in time.
	ErrPartitionNotFound = errors.New("partition not found")
	// ErrPartitionGone: the partition was there, and its producer has released it.
	ErrPartitionGone = errors.New("partition is gone")
	// ErrClosed: this end was closed: the stack, the gate or the partition.
	ErrClosed = errors.New("closed")
)

// LocalError is a fault of this process, or something it was told to do.
type LocalError struct {
	Op   string // what could not be done
	Kind cluster.ErrorKind
	Err  error
}

func (e *LocalError) Error() string { return fmt.Sprintf("cannot %s: %v", e.Op, e.Err) }
func (e *LocalError) Unwrap() error { return e.Err }

// RemoteError is a fault of the other end of a channel: its task has failed, its process or the way to it is lost.
type RemoteError struct {
	Peer string // agent and address
	Op   string // what could not be done
	Kind cluster.ErrorKind
	Err  error
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("cannot %s: peer %s: %v", e.Op, e.Peer, e.Err)
}
func (e *RemoteError) Unwrap() error { return e.Err }

// kindOf returns the kind that err carries, or def.
func kindOf(err error, def cluster.ErrorKind) cluster.ErrorKind {
	if e, ok := errors.AsType[*RemoteError](err); ok {
		return e.Kind
	}
	if e, ok := errors.AsType[*LocalError](err); ok {
		return e.Kind
	}
	return def
}

// fault is err in its form for the wire.
func fault(code wire.Code, kind cluster.ErrorKind, err error) wire.Fault {
	return wire.Fault{Code: code, Kind: uint8(kind), Message: err.Error()}
}

// remote turns a peer's fault into an error.
func remote(peer, op string, f wire.Fault) *RemoteError {
	e := &RemoteError{Peer: peer, Op: op, Kind: cluster.ErrorKind(f.Kind)}
	switch f.Code {
	case wire.NotFound:
		e.Kind, e.Err = cluster.NotFound, fmt.Errorf("%w: %s", ErrPartitionNotFound, f.Message)
	case wire.Gone:
		e.Err = fmt.Errorf("%w: %s", ErrPartitionGone, f.Message)
	case wire.Refused:
		e.Kind, e.Err = cluster.Denied, fmt.Errorf("refused: %s", f.Message)
	case wire.Protocol:
		e.Err = fmt.Errorf("protocol error reported: %s", f.Message)
	default:
		e.Err = errors.New(f.Message)
	}
	return e
}
