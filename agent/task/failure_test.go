package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/netstack"
)

type brokerError struct{}

func (brokerError) Error() string                { return "no broker answers" }
func (brokerError) ErrorKind() cluster.ErrorKind { return cluster.Unavailable }

func TestFailureOf(t *testing.T) {
	at := &operator{node: &flow.Node{Kind: "map", Name: "m"}}
	plain := errors.New("bad record")
	for _, tt := range []struct {
		err      error
		kind     cluster.ErrorKind
		operator string
		peer     string
	}{
		{plain, cluster.Invalid, "m", ""},
		{&flow.OperatorError{Operator: "other", Err: plain}, cluster.Invalid, "other", ""},
		{&flow.OperatorError{Operator: "other", Err: brokerError{}}, cluster.Unavailable, "other", ""},
		{brokerError{}, cluster.Unavailable, "m", ""},
		{&flow.SegmentError{Err: plain}, cluster.Corrupt, "", ""},
		{fs.ErrNotExist, cluster.NotFound, "m", ""},
		{fs.ErrPermission, cluster.Denied, "m", ""},
		{&net.OpError{Op: "dial", Err: plain}, cluster.Unavailable, "m", ""},
		{context.DeadlineExceeded, cluster.Unavailable, "m", ""},
		{&netstack.LocalError{Kind: cluster.Internal, Err: plain}, cluster.Internal, "m", ""},
		{&netstack.RemoteError{Peer: "p", Kind: cluster.Lost, Err: plain}, cluster.Lost, "", "p"},
		{&netstack.RemoteError{Peer: "p", Kind: cluster.Invalid, Err: plain}, cluster.Lost, "", "p"},
		{&netstack.RemoteError{Peer: "p", Kind: cluster.Corrupt, Err: plain}, cluster.Corrupt, "", "p"},
		{cluster.Failure{Kind: cluster.Lost, Message: "gone", Peer: "q"}, cluster.Lost, "", "q"},
	} {
		for _, err := range []error{tt.err, fmt.Errorf("cannot go on: %w", tt.err)} {
			f := failureOf(err, at)
			if f.Kind != tt.kind || f.Operator != tt.operator || f.Peer != tt.peer || f.Message != err.Error() {
				t.Errorf("%v is classed as %#v, want %v in operator %q by peer %q", err, f, tt.kind, tt.operator, tt.peer)
			}
		}
	}
}

// What is thrown may be of any length and no text at all.
func TestFailuresFitToTravel(t *testing.T) {
	huge := strings.Repeat("\xffx", 1<<20)
	for name, f := range map[string]cluster.Failure{
		"error": FailureOf(fmt.Errorf("cannot map: %w", errors.New(huge+" at the end"))),
		"panic": func() (f cluster.Failure) {
			defer func() { f = panicFailure(recover(), "operator m") }()
			panic(huge)
		}(),
	} {
		if len(f.Message) > cluster.MaxText || !utf8.ValidString(f.Message) || f.Kind == cluster.Lost {
			t.Errorf("%s: %d bytes, %q…", name, len(f.Message), f.Message[:100])
		}
		if end := map[string]string{"error": "at the end", "panic": "failure_test.go:"}[name]; !strings.Contains(f.Message[len(f.Message)-40:], end) {
			t.Errorf("%s: the end of the text got lost: …%q", name, f.Message[len(f.Message)-40:])
		}
	}
}
