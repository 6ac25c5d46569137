// Package hdfsfiles lets jobs read and write files in HDFS: it is the heddle.FileSystem of the scheme hdfs.
package hdfsfiles

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
)

// FileSystem is all HDFS file systems that a configuration knows. It is for concurrent use.
type FileSystem struct {
	// Immutable.
	conf  *hconf.Conf
	how   hdfs.Config
	umask fs.FileMode

	mu   sync.Mutex          // guards open
	open map[string]*cluster // by the URI's authority, "" for the default file system
}

// cluster is one file system.
type cluster struct {
	connect func() (*hdfs.FS, error)
}

// New makes the file system. how is how to connect; its NameNodes are found in conf.
func New(conf *hconf.Conf, how hdfs.Config) (*FileSystem, error) {
	f := &FileSystem{conf: conf, how: how, umask: 0o022, open: map[string]*cluster{}}
	mask, err := conf.String("fs.permissions.umask-mode")
	if err != nil {
		return nil, err
	}
	if n, err := strconv.ParseUint(mask, 8, 32); err == nil && n <= 0o777 {
		f.umask = fs.FileMode(n)
	}
	return f, nil
}

// split cuts a URI into the authority, which may be empty, and the path.
func split(uri string) (prefix, authority, name string, err error) {
	rest, ok := strings.CutPrefix(uri, "hdfs://")
	authority, name, slash := strings.Cut(rest, "/")
	if !ok || !slash {
		return "", "", "", fmt.Errorf("%q is no path in HDFS: it must be of the form hdfs:///path or hdfs://nameservice/path", uri)
	}
	return "hdfs://" + authority, authority, path.Clean("/" + name), nil
}

// at returns the file system of a URI and the path in it.
func (f *FileSystem) at(uri string) (c *hdfs.FS, prefix, name string, err error) {
	prefix, authority, name, err := split(uri)
	if err != nil {
		return nil, "", "", err
	}
	f.mu.Lock()
	one, ok := f.open[authority]
	if !ok {
		one = &cluster{sync.OnceValues(func() (*hdfs.FS, error) { return f.connect(authority) })}
		f.open[authority] = one
	}
	f.mu.Unlock()
	c, err = one.connect()
	if err != nil { // the next call tries anew
		f.mu.Lock()
		if f.open[authority] == one {
			delete(f.open, authority)
		}
		f.mu.Unlock()
	}
	return c, prefix, name, f.advise(err)
}

// Close closes the connections that were made. It may be used again.
func (f *FileSystem) Close() {
	f.mu.Lock()
	open := f.open
	f.open = map[string]*cluster{}
	f.mu.Unlock()
	for _, one := range open {
		if c, err := one.connect(); err == nil {
			_ = c.Close()
		}
	}
}

func (f *FileSystem) connect(authority string) (*hdfs.FS, error) {
	where, err := f.conf.DefaultFS()
	if authority != "" {
		if where, err = f.conf.HDFS("hdfs://" + authority); err != nil {
			err = fmt.Errorf("hdfs://%s: %w", authority, err)
		}
	}
	if err != nil {
		return nil, err
	}
	how := f.how
	how.NameNodes = where.NameNodes
	return hdfs.Open(how)
}

// advise adds to an error what can be done about it.
func (f *FileSystem) advise(err error) error {
	if advice := hdfs.Advice(err, f.how.User); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	return err
}

// Find implements heddle.FileSystem.
func (f *FileSystem) Find(_ context.Context, pattern string) ([]heddle.FoundFile, error) {
	c, prefix, name, err := f.at(pattern)
	if err != nil {
		return nil, err
	}
	found, err := c.Glob(name)
	if err != nil {
		return nil, f.advise(err)
	}
	if len(found) == 1 && found[0].Path == name && found[0].Dir {
		if found, err = c.List(name); err != nil {
			return nil, f.advise(err)
		}
	}
	var out []heddle.FoundFile
	for _, i := range found {
		if !i.Dir {
			out = append(out, heddle.FoundFile{Path: prefix + i.Path, Size: i.Size, Block: i.Block})
		}
	}
	return out, nil
}

// Remove implements heddle.FileRemover.
func (f *FileSystem) Remove(_ context.Context, uri string) error {
	c, _, name, err := f.at(uri)
	if err != nil {
		return err
	}
	return f.advise(c.RemoveAll(name))
}

// Locate implements heddle.FileLocator.
func (f *FileSystem) Locate(ctx context.Context, uri string) ([]heddle.FileBlock, error) {
	c, _, name, err := f.at(uri)
	if err != nil {
		return nil, err
	}
	blocks, err := c.Blocks(ctx, name)
	if err != nil {
		return nil, f.advise(err)
	}
	out := make([]heddle.FileBlock, len(blocks))
	for i, b := range blocks {
		out[i] = heddle.FileBlock{From: b.From, To: b.To, Hosts: b.Hosts}
	}
	return out, nil
}

// Open implements heddle.FileSystem.
func (f *FileSystem) Open(ctx context.Context, uri string, offset int64) (io.ReadCloser, error) {
	c, _, name, err := f.at(uri)
	if err != nil {
		return nil, err
	}
	r, err := c.OpenAt(ctx, name, offset)
	if err != nil {
		return nil, f.advise(err)
	}
	return reader{r, f}, nil
}

// reader adds advice to errors.
type reader struct {
	*hdfs.Reader
	f *FileSystem
}

// Read implements io.Reader.
func (r reader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = r.f.advise(err)
	}
	return n, err
}

// Create implements heddle.FileSystem. Until it is whole, the file is called .name.….inprogress, which neither sources nor Hadoop's tools see.
func (f *FileSystem) Create(_ context.Context, uri string, replace bool) (heddle.PendingFile, error) {
	c, _, name, err := f.at(uri)
	if err != nil {
		return nil, err
	}
	dir := path.Dir(name)
	if err := c.MkdirAll(dir, 0o777&^f.umask); err != nil {
		return nil, f.advise(err)
	}
	switch _, err := c.Stat(name); {
	case err == nil && !replace:
		return nil, errThere
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, f.advise(err)
	}
	w, err := c.Create(path.Join(dir, pendingPrefix(name)+rand.Text()[:8]+pendingSuffix), 0o666&^f.umask)
	if err != nil {
		return nil, f.advise(err)
	}
	return &pending{f: f, c: c, w: w, name: name, replace: replace}, nil
}

var errThere = errors.New("it exists; remove it, write to another directory, or use Overwrite (in a job file: overwrite: true)")

const pendingSuffix = ".inprogress"

func pendingPrefix(name string) string { return "." + path.Base(name) + "." }

// pending is a file that is being written.
type pending struct {
	f       *FileSystem
	c       *hdfs.FS
	w       *hdfs.Writer
	name    string
	replace bool
}

// Write implements io.Writer.
func (p *pending) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	return n, p.f.advise(err)
}

// Sync implements heddle.PendingFile.
func (p *pending) Sync() error { return p.f.advise(p.w.Flush()) }

// Commit implements heddle.PendingFile. What writers that were killed left of the same file is removed.
func (p *pending) Commit(ctx context.Context) error {
	err := p.w.Finish(ctx, p.name, p.replace)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("another job has written it meanwhile: %w", errThere)
	}
	if err != nil {
		return p.f.advise(err)
	}
	entries, err := p.c.List(path.Dir(p.name))
	if err != nil {
		return nil // it is only tidying
	}
	for _, e := range entries {
		if base := path.Base(e.Path); strings.HasPrefix(base, pendingPrefix(p.name)) && strings.HasSuffix(base, pendingSuffix) {
			_ = p.c.RemoveAll(e.Path)
		}
	}
	return nil
}

// Close implements heddle.PendingFile.
func (p *pending) Close() error { return p.f.advise(p.w.Close()) }
