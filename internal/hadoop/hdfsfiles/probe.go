package hdfsfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
)

// store is what is asked of HDFS; *hdfs.FS has it.
type store interface {
	Stat(name string) (hdfs.Info, error)
	List(dir string) ([]hdfs.Info, error)
	Glob(pattern string) ([]hdfs.Info, error)
	CheckAccess(ctx context.Context, name string, a hdfs.Access) error
}

// probedFiles is of how many of the files that a source finds it is asked whether they may be read.
const probedFiles = 20

// CheckRead reports why a job could not read the files that match a pattern, or are in the folder that it names, as Find finds them: there are none, or they may not be
// read. Of many files, some are asked about.
func (f *FileSystem) CheckRead(ctx context.Context, pattern string) error {
	c, _, name, err := f.at(pattern)
	if err != nil {
		return err
	}
	return f.advise(checkRead(ctx, c, name, pattern))
}

func checkRead(ctx context.Context, c store, name, uri string) error {
	found, err := c.Glob(name)
	if err != nil {
		return err
	}
	if len(found) == 1 && found[0].Path == name && found[0].Dir {
		if found, err = c.List(name); err != nil {
			return err
		}
	}
	n := 0
	for _, i := range found {
		base := path.Base(i.Path)
		if i.Dir || i.Path != name && (base[0] == '.' || base[0] == '_') {
			continue
		}
		if n++; n > probedFiles {
			return nil
		}
		if err := c.CheckAccess(ctx, i.Path, hdfs.AccessRead); err != nil {
			return err
		}
	}
	if n == 0 {
		return fmt.Errorf("none matches %s: %w", uri, fs.ErrNotExist)
	}
	return nil
}

// CheckWrite reports why a job could not write files into a folder: it, or the folder above it in which it is to be made, takes none from us, or is a file.
func (f *FileSystem) CheckWrite(ctx context.Context, dir string) error {
	c, _, name, err := f.at(dir)
	if err != nil {
		return err
	}
	return f.advise(checkWrite(ctx, c, name))
}

func checkWrite(ctx context.Context, c store, dir string) error {
	for {
		info, err := c.Stat(dir)
		switch {
		case err == nil && !info.Dir:
			return fmt.Errorf("%s in HDFS is a file, where a folder is wanted", dir)
		case err == nil:
			return c.CheckAccess(ctx, dir, hdfs.AccessWrite|hdfs.AccessExecute)
		case !errors.Is(err, fs.ErrNotExist) || dir == "/":
			return err
		}
		dir = path.Dir(dir)
	}
}
