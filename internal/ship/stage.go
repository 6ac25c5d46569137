package ship

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/yarnclient"
)

// What containers have in their working directory.
const (
	programLink = "heddle" // the program
	bundleLink  = "app"    // the folder of Application.Files
)

// Application is what goes to the cluster with one application.
type Application struct {
	ID    string            // application_…
	Name  string            // of the program in containers; "": heddle
	Exe   *Executable       // the program to send; nil: Local is there already
	Local LocalBinary       // used without Exe
	Files map[string][]byte // small files by name, which containers have in the folder app of their working directory; no secrets
	Extra []Extra
}

// Staged is an application's files in HDFS.
type Staged struct {
	Dir       string                     // its folder in HDFS
	Resources []yarnclient.LocalResource // for the master's and the agents' containers alike
	Command   string                     // how bash starts the program in a container; without double quotes and dollar signs
	Reused    bool                       // the program was there
}

// StageApplication stores what an application needs. If it fails, its folder is removed.
func (s *Store) StageApplication(ctx context.Context, app Application, progress Progress) (staged Staged, err error) {
	if app.Name == "" {
		app.Name = programLink
	}
	staged = Staged{Dir: s.AppDir(app.ID), Command: "./" + app.Name}
	if app.Exe == nil {
		staged.Command = app.Local.Command()
	}
	defer func() {
		if err != nil {
			_ = s.FS.RemoveAll(staged.Dir)
		}
	}()
	// The folder names the program before the program is looked for, so that gc takes no program away that was found.
	first := path.Join(staged.Dir, "files")
	if app.Exe != nil {
		first = path.Join(staged.Dir, usesPrefix+app.Exe.SHA256)
	}
	if err := s.makeDir(s.Root, s.perm()); err != nil {
		return staged, err
	}
	if err := s.makeDir(first, 0o700); err != nil {
		return staged, err
	}
	root, err := s.FS.Stat(s.Root)
	if err != nil {
		return staged, err
	}
	if root.Owner != s.User {
		return staged, fmt.Errorf("cannot use the staging folder %s in HDFS: it belongs to %s, who could change what runs as %s; set yarn.staging-dir to another folder", s.Root, root.Owner, s.User)
	}
	parts, err := s.plan(app, &staged)
	if err != nil {
		return staged, err
	}
	staged.Resources, err = storeAll(ctx, parts, progress)
	return staged, err
}

// part stores one resource.
type part func(ctx context.Context, progress Progress) (yarnclient.LocalResource, error)

// plan lists what there is to store.
func (s *Store) plan(app Application, staged *Staged) ([]part, error) {
	bundle, err := pack(app.Files)
	if err != nil {
		return nil, err
	}
	var parts []part
	if app.Exe != nil {
		parts = append(parts, func(ctx context.Context, p Progress) (yarnclient.LocalResource, error) {
			r, reused, err := s.StoreBinary(ctx, app.Exe, p)
			r.Name, staged.Reused = app.Name, reused
			return r, err
		})
	}
	parts = append(parts, func(ctx context.Context, p Progress) (yarnclient.LocalResource, error) {
		info, err := s.FS.Upload(ctx, path.Join(staged.Dir, "app.zip"), 0o600, bytesOf(bundle), p.of("application", int64(len(bundle))))
		r := s.resource(bundleLink, info, yarnclient.Application)
		r.Archive = true
		return r, err
	})
	for _, e := range app.Extra {
		if e.Link == app.Name {
			return nil, fmt.Errorf("cannot send along %s: the program has the name %s in containers; give it another by #name behind it", e.Source, e.Link)
		}
		parts = append(parts, func(ctx context.Context, p Progress) (yarnclient.LocalResource, error) {
			r, err := s.extra(ctx, staged.Dir, e, p)
			if err != nil {
				err = fmt.Errorf("cannot send along %s: %w", e.Source, err)
			}
			return r, err
		})
	}
	if len(app.Extra) > 0 {
		if err := s.FS.MkdirAll(path.Join(staged.Dir, "files"), 0o700); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// storeAll stores parts at the same time, since most of it is waiting. The first failure ends the others.
func storeAll(ctx context.Context, parts []part, progress Progress) ([]yarnclient.LocalResource, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, errs := make([]yarnclient.LocalResource, len(parts)), make([]error, len(parts))
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	for i, store := range parts {
		wg.Go(func() {
			if out[i], errs[i] = store(ctx, progress); errs[i] != nil {
				once.Do(func() { first = errs[i] })
				cancel()
			}
		})
	}
	wg.Wait()
	return out, first
}

// extra stores one extra file, or describes one that is in HDFS.
func (s *Store) extra(ctx context.Context, dir string, e Extra, progress Progress) (yarnclient.LocalResource, error) {
	if e.Remote {
		return s.remote(e)
	}
	local, name := e.Source, e.Link
	if e.Dir {
		packed, err := packFolder(e.Source)
		if err != nil {
			return yarnclient.LocalResource{}, err
		}
		defer os.Remove(packed)
		local, name = packed, name+".zip"
	} else if e.Archive {
		if err := checkArchive(local); err != nil {
			return yarnclient.LocalResource{}, err
		}
	}
	if e.Archive && !isArchive(name) {
		name += path.Ext(e.Source) // by which NodeManagers know how to unpack it
		if len(e.Source) > 7 && e.Source[len(e.Source)-7:] == ".tar.gz" {
			name = e.Link + ".tar.gz"
		}
	}
	st, err := os.Stat(local)
	if err != nil {
		return yarnclient.LocalResource{}, err
	}
	info, err := s.FS.Upload(ctx, path.Join(dir, "files", name), 0o600, func() (io.ReadCloser, error) { return os.Open(local) }, progress.of(e.Link, st.Size()))
	r := s.resource(e.Link, info, yarnclient.Application)
	r.Archive = e.Archive
	return r, err
}

// remote describes a file that is in HDFS already.
func (s *Store) remote(e Extra) (yarnclient.LocalResource, error) {
	fsURI, name := splitURI(e.Source)
	if fsURI != "" && fsURI != s.URI {
		return yarnclient.LocalResource{}, fmt.Errorf("it is not in %s, where the application's files are; copy it there", s.URI)
	}
	info, err := s.FS.Stat(name)
	if err != nil {
		return yarnclient.LocalResource{}, err
	}
	if info.Dir {
		return yarnclient.LocalResource{}, errors.New("it is a folder; send an archive of it, or its files one by one")
	}
	r := s.resource(e.Link, info, yarnclient.Private)
	r.Archive = e.Archive
	return r, nil
}

// RemoveApplication removes an application's files. It is to be called when the application has ended for good: after its last attempt
// unregistered, or when it was never submitted.
func (s *Store) RemoveApplication(app string) error { return s.FS.RemoveAll(s.AppDir(app)) }

// Publish writes a small file of an application, such as its master's address, in the place of the one before: readers see the old one or the new.
func (s *Store) Publish(ctx context.Context, app, name string, data []byte) error {
	return s.replace(ctx, path.Join(s.AppDir(app), name), data)
}

// KeepReport writes a report of an application into the folder of those, in the place of the one before. Only we can read it.
func (s *Store) KeepReport(ctx context.Context, name string, data []byte) error {
	if err := s.makeDir(s.HistoryDir(), 0o700); err != nil {
		return err
	}
	return s.replace(ctx, path.Join(s.HistoryDir(), name), data)
}

func (s *Store) replace(ctx context.Context, to string, data []byte) error {
	next := to + ".next"
	_, err := s.FS.Upload(ctx, next, 0o600, bytesOf(data), nil)
	if errors.Is(err, fs.ErrExist) { // left by one that died
		if err = s.FS.RemoveAll(next); err == nil {
			_, err = s.FS.Upload(ctx, next, 0o600, bytesOf(data), nil)
		}
	}
	if err != nil {
		return err
	}
	return s.FS.Rename(ctx, next, to, true)
}

var _ FileSystem = (*hdfs.FS)(nil)
