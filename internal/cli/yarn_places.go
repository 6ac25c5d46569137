package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
)

// stagedFiles are at least stored for an application: its folder, one in it, and its archive.
const stagedFiles = 3

// places refuses what HDFS would refuse later: staging or sinks in an encryption zone, or in folders whose quota has no room. What can't be looked at is left
// to fail by itself.
func (sub *submission) places(ctx context.Context) error {
	def, err := sub.h.conf.DefaultFS()
	if err != nil {
		return nil
	}
	if p, err := sub.fs.Place(ctx, sub.store.Root); err == nil {
		if err := p.Takes(stagedFiles, 0); err != nil {
			return precondition(fmt.Errorf("cannot store the application's files in %s: %w", sub.store.Root, err),
				"set --yarn.staging-dir to another folder", hdfs.Advice(err, sub.h.user))
		}
	}
	for _, n := range sub.needs {
		if n.Kind != flow.NeedPath || !n.Write || !strings.HasPrefix(n.Name, "hdfs://") {
			continue
		}
		if err := sub.sinkPlace(ctx, n.Name, def); err != nil {
			return precondition(fmt.Errorf("cannot write to %s: %w", n.Name, err), hdfs.Advice(err, sub.h.user))
		}
	}
	return nil
}

// sinkPlace looks at one sink's folder.
func (sub *submission) sinkPlace(ctx context.Context, uri string, def hconf.FileSystem) error {
	p, _, err := sub.placeOf(ctx, uri, def)
	if err != nil {
		return nil
	}
	return p.Takes(1, 0)
}

// placeOf looks at a path of HDFS, or what is there of it, and tells which file system it is in.
func (sub *submission) placeOf(ctx context.Context, uri string, def hconf.FileSystem) (p hdfs.Place, where hconf.FileSystem, err error) {
	authority, dir, _ := strings.Cut(strings.TrimPrefix(uri, "hdfs://"), "/")
	where = def
	if authority != "" {
		if where, err = sub.h.conf.HDFS("hdfs://" + authority); err != nil {
			return p, where, err
		}
	}
	f := sub.fs
	if where.URI != sub.store.URI {
		how, err := sub.h.hdfs()
		if err != nil {
			return p, where, err
		}
		how.NameNodes = where.NameNodes
		if f, err = hdfs.Open(how); err != nil {
			return p, where, err
		}
		defer f.Close()
	}
	p, err = f.Place(ctx, "/"+dir)
	return p, where, err
}
