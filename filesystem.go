package heddle

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// FileSystem is where the files are to which the URIs of a scheme lead. Files and ToFiles use it for paths such as hdfs:///data/clicks.
// It is for concurrent use.
type FileSystem interface {
	// Find returns the files that match a pattern of path.Match, or are in the folder that it names. Folders are left out.
	Find(ctx context.Context, pattern string) ([]FoundFile, error)
	// Open opens a file at an offset. ctx ends with the reading.
	Open(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
	// Create begins a file, which nobody sees under its name before Commit. Unless it may replace one of that name, one that is
	// there is an error, now or at Commit.
	Create(ctx context.Context, name string, replace bool) (PendingFile, error)
}

// FoundFile is a file that FileSystem.Find found.
type FoundFile struct {
	Path  string // to open it by
	Size  int64
	Block int64 // if not 0, the file is kept in blocks of that size, and is best read so
}

// FileLocator is a FileSystem that knows which hosts keep a file. What reads it is put there, or near it, if it can be.
type FileLocator interface {
	// Locate returns what of a file is kept where. A job waits for it only some seconds, and does without it when it fails.
	Locate(ctx context.Context, name string) ([]FileBlock, error)
}

// FileBlock is a range of a file, and the hosts that keep it.
type FileBlock struct {
	From, To int64
	Hosts    []string
}

// PendingFile is a file that is being written. One goroutine uses it.
type PendingFile interface {
	io.Writer
	// Sync returns when all that was written is safe.
	Sync() error
	// Commit makes the file visible, whole, under its name.
	Commit(ctx context.Context) error
	// Close ends the writing. A file that was not committed is removed.
	Close() error
}

var fileSystems struct {
	mu   sync.Mutex
	open map[string]func() (FileSystem, error) // by scheme; guarded by mu
}

// RegisterFileSystem makes the files of a scheme, such as s3, known to jobs. A program calls it in main, before it runs a job. open is
// called, on every node, when a job first needs it. The command registers hdfs by itself.
func RegisterFileSystem(scheme string, open func() (FileSystem, error)) {
	once := sync.OnceValues(open)
	fileSystems.mu.Lock()
	defer fileSystems.mu.Unlock()
	if fileSystems.open == nil {
		fileSystems.open = map[string]func() (FileSystem, error){}
	}
	fileSystems.open[scheme] = once
}

// schemeOf returns the scheme of a URI, "" for a local path.
func schemeOf(name string) string {
	scheme, _, ok := strings.Cut(name, "://")
	if !ok || scheme == "" || strings.ContainsFunc(scheme, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '+' && r != '-' && r != '.'
	}) {
		return ""
	}
	return scheme
}

// fileSystem returns the file system of a URI.
func fileSystem(scheme string) (FileSystem, error) {
	fileSystems.mu.Lock()
	open := fileSystems.open[scheme]
	known := slices.Sorted(maps.Keys(fileSystems.open))
	fileSystems.mu.Unlock()
	if open != nil {
		return open()
	}
	text := "only paths of local files can be used here"
	if len(known) > 0 {
		text = "paths of local files can be used, and URIs that begin with " + strings.Join(known, ":// or ") + "://"
	}
	return nil, fmt.Errorf("nothing is known of files of the scheme %s: %s", scheme, text)
}

// visible reports whether a file of a folder is read with it.
func visible(name string) bool {
	base := path.Base(name)
	return base[0] != '.' && base[0] != '_'
}

// joinURI puts a name behind a folder's URI.
func joinURI(dir, name string) string { return strings.TrimRight(dir, "/") + "/" + name }
