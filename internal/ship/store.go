package ship

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/yarnclient"
)

// FileSystem is what is asked of HDFS; *hdfs.FS has it.
type FileSystem interface {
	Stat(name string) (hdfs.Info, error)
	List(dir string) ([]hdfs.Info, error)
	// ReadFile fails for a file of more than limit bytes.
	ReadFile(name string, limit int64) ([]byte, error)
	MkdirAll(dir string, perm fs.FileMode) error
	RemoveAll(name string) error
	// Rename fails with fs.ErrExist if there is a file of the new name, unless it is to be replaced.
	Rename(ctx context.Context, from, to string, replace bool) error
	// Upload makes a file appear whole or not at all, and fails with fs.ErrExist if there is one.
	Upload(ctx context.Context, name string, perm fs.FileMode, open func() (io.ReadCloser, error), progress func(done int64)) (hdfs.Info, error)
}

// Store is a staging folder in HDFS. It is for concurrent use if its file system is.
type Store struct {
	FS   FileSystem
	URI  string // of the file system, such as hdfs://nameservice
	User string // who we are to HDFS
	// Root is our folder there.
	Root string
	// Provided is a folder of programs that others keep for everybody; "" for none.
	Provided string
	// Owners are users beside us whose programs are run.
	Owners []string
	// Public lets nodes share programs stored here among users. Everybody can then read them.
	Public bool
}

// Progress is told what is being sent and how far that is. It is called from several goroutines.
type Progress func(what string, done, size int64)

func (p Progress) of(what string, size int64) func(int64) {
	return func(done int64) {
		if p != nil {
			p(what, done, size)
		}
	}
}

func (s *Store) binDir() string  { return path.Join(s.Root, "bin") }
func (s *Store) appsDir() string { return path.Join(s.Root, "apps") }

// HistoryDir is the folder of the reports of applications, those that have ended too.
func (s *Store) HistoryDir() string { return path.Join(s.Root, "history") }

// AppDir is an application's folder.
func (s *Store) AppDir(app string) string { return path.Join(s.appsDir(), app) }

// perm is the mode of folders and programs.
func (s *Store) perm() fs.FileMode {
	if s.Public {
		return 0o755
	}
	return 0o700
}

// StoreBinary keeps a program under its SHA-256 and returns it as a resource of containers, called heddle there, and whether it was there already.
// What is there is used only if nobody else can have put or changed it, since it runs as us. It is never overwritten or touched: running
// applications name its very size and time.
func (s *Store) StoreBinary(ctx context.Context, e *Executable, progress Progress) (r yarnclient.LocalResource, reused bool, err error) {
	if s.Provided != "" {
		info, err := s.FS.Stat(path.Join(s.Provided, e.SHA256))
		if err == nil && s.trust(info, e.Size, s.Provided) == nil {
			return s.program(info), true, nil
		}
	}
	if err := s.makeDir(s.binDir(), s.perm()); err != nil {
		return r, false, err
	}
	name := path.Join(s.binDir(), e.SHA256)
	info, err := s.FS.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = s.FS.Upload(ctx, name, s.perm(), e.open, progress.of("program", e.Size))
		if errors.Is(err, fs.ErrExist) { // somebody was faster: theirs is used
			reused = true
			info, err = s.FS.Stat(name)
		}
	} else {
		reused = err == nil
	}
	if err == nil {
		err = s.trust(info, e.Size, s.binDir(), s.Root)
	}
	if err != nil {
		return r, false, err
	}
	return s.program(info), reused, nil
}

// program is a stored program as a resource.
func (s *Store) program(info hdfs.Info) yarnclient.LocalResource {
	r := s.resource(programLink, info, yarnclient.Private)
	if s.open(info) {
		r.Visibility = yarnclient.Public
	}
	return r
}

// open reports whether everybody may read a program, and so may share it on a node. In the user's own home nothing is made so.
func (s *Store) open(info hdfs.Info) bool {
	dir := path.Dir(info.Path)
	if dir != s.Provided && !s.Public || info.Mode&0o005 != 0o005 {
		return false
	}
	for ; dir != "/" && dir != "."; dir = path.Dir(dir) {
		if d, err := s.FS.Stat(dir); err != nil || d.Mode&0o001 == 0 {
			return false
		}
	}
	return true
}

func (s *Store) resource(name string, info hdfs.Info, v yarnclient.Visibility) yarnclient.LocalResource {
	return yarnclient.LocalResource{Name: name, URI: s.URI + info.Path, Visibility: v, Size: info.Size, Modified: info.Modified}
}

// makeDir makes a folder; where it may not, it says what is needed.
func (s *Store) makeDir(dir string, perm fs.FileMode) error {
	err := s.FS.MkdirAll(dir, perm)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; user %s needs a folder to write in: have an administrator make %s and give it to %s (hdfs dfs -mkdir -p, hdfs dfs -chown), or set yarn.staging-dir to a folder that %s may write",
			err, s.User, path.Dir(s.Root), s.User, s.User)
	}
	return err
}

// trust refuses a stored program that others can have put or changed.
func (s *Store) trust(file hdfs.Info, size int64, dirs ...string) error {
	all := []hdfs.Info{file}
	for _, d := range dirs {
		dir, err := s.FS.Stat(d)
		if err != nil {
			return err
		}
		all = append(all, dir)
	}
	owners := append([]string{s.User}, s.Owners...)
	for _, i := range all {
		what := i.Path
		if what == file.Path {
			what = "it"
		}
		if !slices.Contains(owners, i.Owner) {
			return fmt.Errorf("cannot use %s in HDFS: %s belongs to %s, who could have planted it; set yarn.staging-dir to another folder, or add %s to yarn.staging-owners if you trust that user", file.Path, what, i.Owner, i.Owner)
		}
		if i.Mode&0o022 != 0 {
			return fmt.Errorf("cannot use %s in HDFS: others may write %s (mode %o), and could have planted what is there; run hdfs dfs -chmod go-w %s", file.Path, what, i.Mode, i.Path)
		}
	}
	if file.Dir || file.Size != size {
		return fmt.Errorf("cannot use %s in HDFS: it is not the file that its name says (%d bytes, want %d); remove it", file.Path, file.Size, size)
	}
	return nil
}

// open returns a reader of the program that fails at its end if it has changed since it was looked at.
func (e *Executable) open() (io.ReadCloser, error) {
	file, err := os.Open(e.Path)
	if err != nil {
		return nil, err
	}
	return &checked{File: file, want: e.SHA256, sum: sha256.New()}, nil
}

// checked is a file whose content is to have a certain sum.
type checked struct {
	*os.File
	want string
	sum  hash.Hash
}

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.File.Read(b)
	c.sum.Write(b[:n])
	if err == io.EOF && hex.EncodeToString(c.sum.Sum(nil)) != c.want {
		return n, fmt.Errorf("%s has changed meanwhile; run the command again", c.Name())
	}
	return n, err
}

// bytesOf makes a reader of data, as often as one is asked for.
func bytesOf(data []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}
