package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
)

// located is a block as a NameNode describes it.
func located(offset, size uint64, hosts ...string) *pb.LocatedBlockProto {
	b := &pb.LocatedBlockProto{
		B:      &pb.ExtendedBlockProto{PoolId: new("BP-1"), BlockId: new(uint64(1)), GenerationStamp: new(uint64(1)), NumBytes: &size},
		Offset: &offset, Corrupt: new(false), BlockToken: &pb.TokenProto{Identifier: []byte{}, Password: []byte{}, Kind: new(""), Service: new("")},
	}
	for _, h := range hosts {
		port := new(uint32(1))
		b.Locs = append(b.Locs, &pb.DatanodeInfoProto{Id: &pb.DatanodeIDProto{IpAddr: new("10.0.0.1"), HostName: &h, DatanodeUuid: new("u"), XferPort: port, InfoPort: port, IpcPort: port}})
	}
	return b
}

func locations(blocks ...*pb.LocatedBlockProto) *pb.GetBlockLocationsResponseProto {
	return &pb.GetBlockLocationsResponseProto{Locations: &pb.LocatedBlocksProto{FileLength: new(uint64(0)), UnderConstruction: new(false), IsLastBlockComplete: new(true), Blocks: blocks}}
}

// nameNode answers getBlockLocations by the file's name.
func nameNode(r *hrpctest.Request) (proto.Message, error) {
	var m pb.GetBlockLocationsRequestProto
	if err := r.Decode(&m); err != nil || r.Method != "getBlockLocations" || r.Protocol != protocol || r.User != "alice" || m.GetOffset() != 0 || m.GetLength() != 1<<63-1 {
		return nil, errors.New("unexpected request")
	}
	lost := located(100, 50, "n9")
	lost.Corrupt = new(true)
	switch m.GetSrc() {
	case "/file":
		return locations(lost, located(0, 100, "n2", "N1.example.org", "n2", "")), nil
	case "/empty":
		return locations(), nil
	case "/huge":
		return locations(located(1<<62, 1<<62, "n1")), nil
	case "/negative":
		return locations(located(1<<63, 1, "n1")), nil
	case "/secret":
		return nil, &hrpc.RemoteError{Class: hrpc.ClassAccessControl, Message: "Permission denied"}
	case "/none":
		return nil, &hrpc.RemoteError{Class: "java.io.FileNotFoundException", Message: "File does not exist: /none"}
	}
	return &pb.GetBlockLocationsResponseProto{}, nil
}

// of is a file system whose NameNodes are given.
func of(t *testing.T, addrs ...string) *FS {
	f := &FS{cfg: Config{NameNodes: addrs}, rpc: hrpc.New(hrpc.Config{Protocol: protocol, Addrs: addrs, Auth: []hrpc.Authenticator{hrpc.Simple("alice")}, Retry: hrpc.Retry{Attempts: 5, Base: time.Millisecond}})}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestBlocks(t *testing.T) {
	l := listen(t)
	s := hrpctest.Serve(l, hrpctest.Config{Simple: true, Handle: nameNode})
	defer s.Close()
	f := of(t, l.Addr().String())
	for _, x := range []struct {
		name, want string
		err        error
		text       string
	}{
		{name: "/file", want: "[{0 100 [n2 N1.example.org]} {100 150 []}]"},
		{name: "/empty", want: "[]"},
		{name: "/secret", want: "[]", err: fs.ErrPermission, text: "/secret"},
		{name: "/none", want: "[]", err: fs.ErrNotExist, text: "/none"},
		{name: "/other", want: "[]", err: fs.ErrNotExist, text: l.Addr().String()},
		{name: "/huge", want: "[]", text: "4611686018427387904 bytes at 4611686018427387904"},
		{name: "/negative", want: "[]", text: "1 bytes at 9223372036854775808"},
	} {
		got, err := f.Blocks(t.Context(), x.name)
		if fmt.Sprint(got) != x.want || (err == nil) != (x.text == "") || err != nil && (!strings.Contains(err.Error(), x.text) || !errors.Is(err, x.err) && x.err != nil) {
			t.Errorf("%s: got %v, %v, want %s and an error with %q", x.name, got, err, x.want, x.text)
		}
	}
}

// TestBlocksStandby asks the other NameNode where the first is standby, and ends with the context where none answers.
func TestBlocksStandby(t *testing.T) {
	standby, active, silent := listen(t), listen(t), listen(t)
	no := func(*hrpctest.Request) (proto.Message, error) {
		return nil, &hrpc.RemoteError{Class: hrpc.ClassStandby, Message: "Operation category READ is not supported in state standby"}
	}
	s1 := hrpctest.Serve(standby, hrpctest.Config{Simple: true, Handle: no})
	defer s1.Close()
	s2 := hrpctest.Serve(active, hrpctest.Config{Simple: true, Handle: nameNode})
	defer s2.Close()
	got, err := of(t, standby.Addr().String(), active.Addr().String()).Blocks(t.Context(), "/file")
	if err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := of(t, silent.Addr().String()).Blocks(ctx, "/file"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
