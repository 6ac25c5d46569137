package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// Access is what somebody wants to do with a path, as Unix has it.
type Access uint8

// Kinds of access, to be combined.
const (
	AccessRead    Access = 4
	AccessWrite   Access = 2
	AccessExecute Access = 1
)

func (a Access) String() string {
	out := []byte("---")
	for i, x := range []Access{AccessRead, AccessWrite, AccessExecute} {
		if a&x != 0 {
			out[i] = "rwx"[i]
		}
	}
	return string(out)
}

// CheckAccess asks the NameNode whether we may do something with a path, whoever decides that: permissions, ACLs or a policy of Ranger's. Nothing is changed.
func (f *FS) CheckAccess(ctx context.Context, name string, a Access) error {
	if f.web != nil {
		return f.overWeb(ctx, "get "+a.String()+" access to "+name, func(ctx context.Context) error { return f.web.access(ctx, name, a) })
	}
	mode := pb.AclEntryProto_FsActionProto(a)
	err := f.rpc.Call(ctx, "checkAccess", &pb.CheckAccessRequestProto{Path: &name, Mode: &mode}, &pb.CheckAccessResponseProto{})
	if err != nil {
		return fmt.Errorf("cannot get %v access to %s in HDFS (%s): %w", a, name, f.where(), known(err))
	}
	return nil
}

// known makes what HDFS answered an error of package fs, if it is like one.
func known(err error) error {
	switch hrpc.ClassOf(err) {
	case hrpc.ClassAccessControl:
		return fmt.Errorf("%w: %w", fs.ErrPermission, err)
	case "java.io.FileNotFoundException":
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

// QuotaUsage is how much of a folder's quotas is used. A quota of 0 is none.
type QuotaUsage struct {
	Names, NamesQuota int64 // files and folders
	Space, SpaceQuota int64 // bytes of disks, all replicas counted
}

// Quota returns the quotas of a folder itself, not of those above it.
func (f *FS) Quota(ctx context.Context, dir string) (QuotaUsage, error) {
	if f.web != nil {
		u, err := f.web.quota(ctx, dir)
		if err != nil {
			return u, fmt.Errorf("cannot learn the quota of %s in HDFS (%s): %w", dir, f.where(), err)
		}
		return u, nil
	}
	resp := &pb.GetQuotaUsageResponseProto{}
	if err := f.rpc.Call(ctx, "getQuotaUsage", &pb.GetQuotaUsageRequestProto{Path: &dir}, resp); err != nil {
		return QuotaUsage{}, fmt.Errorf("cannot learn the quota of %s in HDFS (%s): %w", dir, f.where(), known(err))
	}
	limit := func(n uint64) int64 { return max(0, int64(n)) } // none is the largest number, or -1
	u := resp.Usage
	return QuotaUsage{int64(u.GetFileAndDirectoryCount()), limit(u.GetQuota()), int64(u.GetSpaceConsumed()), limit(u.GetSpaceQuota())}, nil
}

// Answers asks one NameNode a small question, to see whether it can be reached, believes us, and is active. A standby's refusal is told by standby.
// Of cfg, NameNodes do not matter.
func Answers(ctx context.Context, cfg Config, addr string) (standby bool, err error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	c := hrpc.New(hrpc.Config{Protocol: protocol, Addrs: []string{addr}, Auth: cfg.auths(), Protection: cfg.Security.Protection, Dial: cfg.Dial,
		ConnectTimeout: cfg.Timeout, HandshakeTimeout: cfg.Timeout, CallTimeout: cfg.Timeout})
	root := "/"
	err = c.Call(ctx, "getFileInfo", &pb.GetFileInfoRequestProto{Src: &root}, &pb.GetFileInfoResponseProto{})
	if hrpc.ClassOf(err) == hrpc.ClassStandby {
		standby, err = true, nil
	}
	return standby, errors.Join(err, c.Close())
}
