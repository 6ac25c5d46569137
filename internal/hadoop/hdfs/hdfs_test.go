package hdfs

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
)

// What needs a real NameNode is tested by package itest/yarn.

func TestMain(m *testing.M) {
	// The library's goroutine that renews leases ends up to a second after Close.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/colinmarc/hdfs/v2/internal/rpc.(*NamenodeConnection).renewLeases"))
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestBlackHole has a NameNode that accepts and never answers: calls end in bounded time.
func TestBlackHole(t *testing.T) {
	l := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, nc); nc.Close() }()
		}
	}()
	start := time.Now()
	f, err := Open(Config{NameNodes: []string{l.Addr().String()}, User: "alice", Timeout: 100 * time.Millisecond})
	if err == nil {
		_, err = f.Stat("/x")
	}
	if err == nil || time.Since(start) > 10*time.Second {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
	if f != nil {
		_ = f.Close()
	}
	_ = l.Close()
	<-done
}

func TestUnreachable(t *testing.T) {
	if _, err := Open(Config{}); err == nil {
		t.Error("opened without a NameNode")
	}
	l := listen(t)
	_ = l.Close()
	f, err := Open(Config{NameNodes: []string{l.Addr().String()}, User: "alice", Timeout: time.Second})
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("got %v", err)
	}
	if f != nil {
		_ = f.Close()
	}
}

// TestRename never replaces a file.
func TestRename(t *testing.T) {
	l := listen(t)
	s := hrpctest.Serve(l, hrpctest.Config{Simple: true, Handle: func(r *hrpctest.Request) (proto.Message, error) {
		var m pb.Rename2RequestProto
		if err := r.Decode(&m); err != nil || r.Method != "rename2" || r.Protocol != protocol || r.User != "alice" || m.GetOverwriteDest() {
			return nil, errors.New("unexpected request")
		}
		switch m.GetDst() {
		case "/there":
			return nil, &hrpc.RemoteError{Class: "org.apache.hadoop.fs.FileAlreadyExistsException", Message: "rename destination /there already exists"}
		case "/forbidden":
			return nil, &hrpc.RemoteError{Class: hrpc.ClassAccessControl, Message: "Permission denied"}
		}
		return &pb.Rename2ResponseProto{}, nil
	}})
	defer s.Close()
	f := &FS{rpc: hrpc.New(hrpc.Config{Protocol: protocol, Addrs: []string{l.Addr().String()}, Auth: []hrpc.Authenticator{hrpc.Simple("alice")}})}
	defer f.Close()
	for to, want := range map[string]error{"/new": nil, "/there": fs.ErrExist, "/forbidden": fs.ErrPermission} {
		if err := f.Rename(t.Context(), "/tmp", to, false); !errors.Is(err, want) {
			t.Errorf("to %s: %v, want %v", to, err, want)
		}
	}
}
