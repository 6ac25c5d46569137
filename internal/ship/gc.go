package ship

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
)

// usesPrefix begins the name of the entry of an application's folder that names its program.
const usesPrefix = "uses-"

// asidePrefix begins the name of a program that is about to be removed.
const asidePrefix = ".gc-"

// Collection says what gc may take.
type Collection struct {
	// Ended reports whether an application is over for sure. One that this ResourceManager does not know may be another cluster's
	// that shares the folder.
	Ended func(app string) bool
	Now   time.Time
	// Age is how old a folder or program must be: a younger one may be of an application that is not submitted yet.
	Age    time.Duration
	DryRun bool // only look
}

// Collected is what gc took, or with DryRun would take.
type Collected struct {
	Apps, Programs []hdfs.Info
	Bytes          int64 // of the programs
	Kept           int   // programs that were left
}

// GC removes the folders of applications that have ended and programs that none of the others names.
func (s *Store) GC(ctx context.Context, c Collection) (out Collected, err error) {
	apps, err := s.list(s.appsDir())
	if err != nil {
		return out, err
	}
	programs, err := s.list(s.binDir())
	if err != nil {
		return out, err
	}
	gone := map[string]bool{}
	for _, app := range apps {
		name := path.Base(app.Path)
		if !c.Ended(name) || c.Now.Sub(app.Modified) < c.Age {
			continue
		}
		gone[app.Path] = true
		if !c.DryRun {
			if err := s.FS.RemoveAll(app.Path); err != nil {
				return out, err
			}
		}
		out.Apps = append(out.Apps, app)
	}
	used, err := s.used(gone)
	if err != nil {
		return out, err
	}
	for _, p := range programs {
		sum := path.Base(p.Path)
		if used[strings.TrimPrefix(sum, asidePrefix)] || c.Now.Sub(p.Modified) < c.Age {
			out.Kept++
			continue
		}
		if !c.DryRun {
			removed, err := s.removeProgram(ctx, p, gone)
			if err != nil {
				return out, err
			}
			if !removed {
				out.Kept++
				continue
			}
		}
		out.Programs = append(out.Programs, p)
		out.Bytes += p.Size
	}
	return out, nil
}

// removeProgram removes a program unless an application names it by now. It is put aside first: who names it after that does not find it and
// stores it anew, and for who named it before, it is put back as it was.
func (s *Store) removeProgram(ctx context.Context, p hdfs.Info, gone map[string]bool) (bool, error) {
	sum := path.Base(p.Path)
	if strings.HasPrefix(sum, ".") { // left by one that was interrupted: a part of a program, or one put aside
		return true, s.FS.RemoveAll(p.Path)
	}
	aside := path.Join(path.Dir(p.Path), asidePrefix+sum)
	if err := s.FS.Rename(ctx, p.Path, aside, false); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			return false, nil // another gc is at it
		}
		return false, err
	}
	used, err := s.used(gone)
	if err != nil || used[sum] {
		if berr := s.FS.Rename(ctx, aside, p.Path, false); berr != nil && !errors.Is(berr, fs.ErrExist) {
			return false, errors.Join(err, berr)
		}
		if err != nil {
			return false, err
		}
		return false, s.FS.RemoveAll(aside)
	}
	return true, s.FS.RemoveAll(aside)
}

// used returns the programs that applications name.
func (s *Store) used(gone map[string]bool) (map[string]bool, error) {
	apps, err := s.list(s.appsDir())
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, app := range apps {
		if gone[app.Path] {
			continue
		}
		entries, err := s.list(app.Path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if sum, ok := strings.CutPrefix(path.Base(e.Path), usesPrefix); ok {
				used[sum] = true
			}
		}
	}
	return used, nil
}

// list returns what is in a folder, sorted; nothing for one that is not there.
func (s *Store) list(dir string) ([]hdfs.Info, error) {
	entries, err := s.FS.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.SortFunc(entries, func(a, b hdfs.Info) int { return strings.Compare(a.Path, b.Path) })
	return entries, err
}
