package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// Place is where files are to be written, and what is special about that.
type Place struct {
	Dir       string // the folder, or the nearest above it that is there
	Encrypted bool   // it is in an encryption zone
	Locked    error  // why keys of an encryption zone can't be opened from here; nil: nothing is known against it
	Coded     string // the policy of erasure coding that new files get; "": they are replicated
	// Block is what HDFS wants to be free for each file that is being written, however short it becomes: a block, times the replicas.
	Block  int64
	Quotas []FolderQuota // of the folder and those above it, from the nearest on
}

// FolderQuota is a folder's.
type FolderQuota struct {
	Dir string
	QuotaUsage
}

// quotaPatience bounds the questions for quotas: a folder without one makes the NameNode count all that is in it.
const quotaPatience = 5 * time.Second

// Place looks at where files are to be written. Quotas are told as far as we may see them, and the NameNode is quick to say.
func (f *FS) Place(ctx context.Context, dir string) (Place, error) {
	dir = path.Clean(dir)
	var p Place
	err := f.each("look at "+dir, func(c *hdfs.Client) (err error) {
		if f.web != nil {
			p, err = f.web.place(ctx, dir)
		} else {
			p, err = placeOf(c, dir)
		}
		return err
	})
	if err != nil {
		return p, err
	}
	if p.Encrypted && f.web == nil {
		_, p.Locked = f.keyServer(ctx, p.Dir)
	}
	ctx, cancel := context.WithTimeout(ctx, quotaPatience)
	defer cancel()
	for at := p.Dir; strings.Count(at, "/") > 1; at = path.Dir(at) { // what is right below the root is everybody's, and large
		q, err := f.Quota(ctx, at)
		if err != nil {
			break
		}
		if q.NamesQuota > 0 || q.SpaceQuota > 0 {
			p.Quotas = append(p.Quotas, FolderQuota{at, q})
		}
	}
	return p, nil
}

// placeOf looks at a folder, or the nearest above it that is there.
func placeOf(c *hdfs.Client, dir string) (p Place, err error) {
	for p.Dir = dir; ; p.Dir = path.Dir(p.Dir) {
		st, err := c.Stat(p.Dir)
		if errors.Is(err, fs.ErrNotExist) && p.Dir != "/" {
			continue
		}
		if err != nil {
			return p, err
		}
		p.Encrypted, p.Coded = kindOf(st)
		break
	}
	def, err := c.ServerDefaults()
	if err == nil {
		p.Block = int64(def.Replication) * def.BlockSize
	}
	return p, err
}

// kindOf tells how a file or folder is kept, which new files in it take over.
func kindOf(st fs.FileInfo) (encrypted bool, coded string) {
	h, ok := st.(*hdfs.FileInfo)
	if !ok {
		return false, ""
	}
	raw, ok := h.Sys().(*hdfs.FileStatus)
	if !ok {
		return false, ""
	}
	// Of folders, the NameNode says it by a flag, and by a bit among the permissions before there were flags.
	const flag, bit = 2, 1 << 13
	encrypted = raw.GetFileEncryptionInfo() != nil || raw.GetFlags()&flag != 0 || raw.GetPermission().GetPerm()&bit != 0
	return encrypted, policyOf(raw)
}

// policies are Hadoop's own of erasure coding, of which the NameNode tells the number alone.
var policies = map[uint32]string{1: "RS-6-3-1024k", 2: "RS-3-2-1024k", 3: "RS-LEGACY-6-3-1024k", 4: "XOR-2-1-1024k", 5: "RS-10-4-1024k"}

// policyOf names the policy of erasure coding; "": files are replicated.
func policyOf(raw *hdfs.FileStatus) string {
	p := raw.GetEcPolicy()
	if p == nil || p.GetId() == 0 { // 0 is replication by name
		return ""
	}
	if name := p.GetName(); name != "" {
		return name
	}
	if name, ok := policies[p.GetId()]; ok {
		return name
	}
	return fmt.Sprintf("policy %d", p.GetId())
}

// placeError is a place that cannot be written to.
type placeError struct {
	kind Trouble
	text string
}

func (e *placeError) Error() string { return e.text }

// Takes reports why a number of files of so many bytes in all, replicas not counted, cannot be written there; nil: nothing is known against it.
func (p Place) Takes(files int, size int64) error {
	if p.Locked != nil {
		return p.Locked
	}
	for _, q := range p.Quotas {
		if left := q.NamesQuota - q.Names; q.NamesQuota > 0 && left < int64(files) {
			return &placeError{Quota, fmt.Sprintf("the quota of %s in HDFS is %d files and folders, of which %d are left, and %d are needed", q.Dir, q.NamesQuota, max(0, left), files)}
		}
		if left := q.SpaceQuota - q.Space; q.SpaceQuota > 0 && left < max(size, p.Block) {
			return &placeError{Quota, fmt.Sprintf("the quota of %s in HDFS is %d bytes with all replicas, of which %d are left, and %d must be free: HDFS counts a whole block for each replica of a file that is being written",
				q.Dir, q.SpaceQuota, max(0, left), max(size, p.Block))}
		}
	}
	return nil
}

// createSpecial makes a file that the library can't ask for, for it to go on with: in an encryption zone, or replicated where new files would be erasure-coded.
func (f *FS) createSpecial(ctx context.Context, c *hdfs.Client, name string, replication int, block int64, perm fs.FileMode) (*hdfs.FileWriter, error) {
	const create, replicate = 1, 0x80
	bits, flags, parents, copies, size, client := uint32(perm), uint32(create|replicate), false, uint32(replication), uint64(block), "heddle"
	made, req := &pb.CreateResponseProto{}, &pb.CreateRequestProto{Src: &name, Masked: &pb.FsPermissionProto{Perm: &bits}, ClientName: &client, CreateFlag: &flags, CreateParent: &parents,
		Replication: &copies, BlockSize: &size, CryptoProtocolVersion: []pb.CryptoProtocolVersionProto{pb.CryptoProtocolVersionProto_ENCRYPTION_ZONES}}
	err := f.rpc.Call(ctx, "create", req, made)
	for wait := 100 * time.Millisecond; strings.HasSuffix(hrpc.ClassOf(err), ".RetryStartFileException") && hrest.Pause(ctx, wait); wait *= 2 { // the NameNode had no key at hand
		err = f.rpc.Call(ctx, "create", req, made)
	}
	if err == nil {
		done := &pb.CompleteResponseProto{}
		err = f.rpc.Call(ctx, "complete", &pb.CompleteRequestProto{Src: &name, ClientName: &client}, done)
		if err == nil && !done.GetResult() {
			err = errors.New("the NameNode does not call the empty file complete")
		}
	}
	if hrpc.ClassOf(err) == "org.apache.hadoop.fs.FileAlreadyExistsException" {
		return nil, fs.ErrExist
	}
	if err != nil {
		return nil, known(err)
	}
	return c.Append(name)
}
