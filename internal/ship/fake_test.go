package ship

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
)

// memory is a file system in memory.
type memory struct {
	user string
	now  time.Time
	hook func(call, name string) error // called before each call; nil: none

	mu    sync.Mutex // guards files
	files map[string]node
}

type node struct {
	hdfs.Info
	data string
}

func newMemory(user string) *memory {
	m := &memory{user: user, now: time.UnixMilli(1_000_000_000_000), files: map[string]node{}}
	m.files["/"] = node{Info: hdfs.Info{Path: "/", Dir: true, Mode: 0o755, Owner: "hdfs"}}
	return m
}

func (m *memory) before(call, name string) error {
	if m.hook != nil {
		return m.hook(call, name)
	}
	return nil
}

func (m *memory) Stat(name string) (hdfs.Info, error) {
	if err := m.before("stat", name); err != nil {
		return hdfs.Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.files[name]
	if !ok {
		return hdfs.Info{}, fmt.Errorf("cannot look at %s: %w", name, fs.ErrNotExist)
	}
	return n.Info, nil
}

func (m *memory) List(dir string) (out []hdfs.Info, err error) {
	if err := m.before("list", dir); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[dir]; !ok {
		return nil, fs.ErrNotExist
	}
	for name, n := range m.files {
		if path.Dir(name) == dir && name != "/" {
			out = append(out, n.Info)
		}
	}
	return out, nil
}

func (m *memory) ReadFile(name string, limit int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.files[name]
	if !ok || int64(len(n.data)) > limit {
		return nil, fs.ErrNotExist
	}
	return []byte(n.data), nil
}

func (m *memory) MkdirAll(dir string, perm fs.FileMode) error {
	if err := m.before("mkdir", dir); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for ; dir != "/"; dir = path.Dir(dir) {
		if _, ok := m.files[dir]; !ok {
			m.files[dir] = node{Info: hdfs.Info{Path: dir, Dir: true, Mode: perm, Owner: m.user, Modified: m.now}}
		}
	}
	return nil
}

func (m *memory) RemoveAll(name string) error {
	if err := m.before("remove", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for f := range m.files {
		if f == name || strings.HasPrefix(f, name+"/") {
			delete(m.files, f)
		}
	}
	return nil
}

func (m *memory) Rename(_ context.Context, from, to string, replace bool) error {
	if err := m.before("rename", from); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.files[from]
	if !ok {
		return fs.ErrNotExist
	}
	if _, ok := m.files[to]; ok && !replace {
		return fs.ErrExist
	}
	delete(m.files, from)
	n.Path = to
	m.files[to] = n
	return nil
}

func (m *memory) Upload(ctx context.Context, name string, perm fs.FileMode, open func() (io.ReadCloser, error), progress func(int64)) (hdfs.Info, error) {
	if _, err := m.Stat(name); err == nil {
		return hdfs.Info{}, fs.ErrExist
	}
	r, err := open()
	if err != nil {
		return hdfs.Info{}, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return hdfs.Info{}, err
	}
	if progress != nil {
		progress(int64(len(data)))
	}
	if err := m.before("upload", name); err != nil {
		return hdfs.Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[name]; ok {
		return hdfs.Info{}, fs.ErrExist
	}
	if _, ok := m.files[path.Dir(name)]; !ok {
		return hdfs.Info{}, fmt.Errorf("%s: %w", path.Dir(name), fs.ErrNotExist)
	}
	n := node{Info: hdfs.Info{Path: name, Mode: perm, Owner: m.user, Size: int64(len(data)), Modified: m.now}, data: string(data)}
	m.files[name] = n
	return n.Info, ctx.Err()
}

// put makes a file of somebody's.
func (m *memory) put(name, owner string, mode fs.FileMode, data string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = node{Info: hdfs.Info{Path: name, Owner: owner, Mode: mode, Size: int64(len(data)), Modified: m.now}, data: data}
}

// has lists the files and folders below a folder.
func (m *memory) has(dir string) (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.files {
		if strings.HasPrefix(name, dir+"/") {
			names = append(names, strings.TrimPrefix(name, dir+"/"))
		}
	}
	return names
}

// newStore is alice's staging folder in a new file system.
func newStore(t *testing.T) (*Store, *memory) {
	t.Helper()
	m := newMemory("alice")
	return &Store{FS: m, URI: "hdfs://ns", User: "alice", Root: "/user/alice/.heddle"}, m
}
