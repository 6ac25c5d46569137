package hdfs

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
)

// closedError is what a dial fails with.
type closedError struct{}

func (closedError) Error() string { return "the port is closed" }

// TestConnectError: why no NameNode could be reached is told as an error of its own kind, and once.
func TestConnectError(t *testing.T) {
	f, err := Open(Config{NameNodes: []string{"nn1:8020", "nn2:8020"}, User: "alice", Dial: func(context.Context, string) (net.Conn, error) { return nil, closedError{} }})
	if err == nil {
		_, err = f.Stat("/x")
	}
	if _, ok := errors.AsType[closedError](err); !ok || strings.Count(err.Error(), "the port is closed") != 1 {
		t.Errorf("%v", err)
	}
}
