package hdfs

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"slices"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// Block is a range of a file and where it is kept.
type Block struct {
	From, To int64
	Hosts    []string // of DataNodes that have it, by the names that they gave the NameNode
}

// Blocks returns where a file's blocks are, in their order. The library, which knows it, keeps it to itself. A range whose data is lost has no hosts.
func (f *FS) Blocks(ctx context.Context, name string) ([]Block, error) {
	if f.web != nil {
		out, err := f.web.blocks(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("cannot learn where %s is kept in HDFS (%s): %w", name, f.where(), err)
		}
		return out, nil
	}
	from, all := uint64(0), uint64(math.MaxInt64)
	resp := &pb.GetBlockLocationsResponseProto{}
	err := f.rpc.Call(ctx, "getBlockLocations", &pb.GetBlockLocationsRequestProto{Src: &name, Offset: &from, Length: &all}, resp)
	switch {
	case hrpc.ClassOf(err) == hrpc.ClassAccessControl:
		err = fmt.Errorf("%w: %w", fs.ErrPermission, err)
	case hrpc.ClassOf(err) == "java.io.FileNotFoundException":
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case err == nil && resp.Locations == nil:
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("cannot learn where %s is kept in HDFS (%s): %w", name, f.where(), err)
	}
	var out []Block
	for _, b := range resp.Locations.Blocks {
		if b.GetOffset() > math.MaxInt64 || b.B.GetNumBytes() > math.MaxInt64-b.GetOffset() {
			return nil, fmt.Errorf("cannot learn where %s is kept in HDFS (%s): the NameNode tells of %d bytes at %d", name, f.where(), b.B.GetNumBytes(), b.GetOffset())
		}
		out = append(out, Block{From: int64(b.GetOffset()), To: int64(b.GetOffset() + b.B.GetNumBytes()), Hosts: hostsOf(b)})
	}
	slices.SortStableFunc(out, func(a, b Block) int { return cmp.Compare(a.From, b.From) })
	return out, nil
}

// hostsOf are the hosts of a block, each once, though a host may run several DataNodes.
func hostsOf(b *pb.LocatedBlockProto) (hosts []string) {
	if b.GetCorrupt() {
		return nil
	}
	for _, at := range b.Locs {
		if host := at.GetId().GetHostName(); host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
