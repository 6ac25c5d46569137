package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Shelf holds reports.
type Shelf interface {
	// Put stores an application's report in the place of the one before. Only the user may read it.
	Put(ctx context.Context, app string, data []byte) error
	// Get returns an application's report; an error is fs.ErrNotExist if there is none.
	Get(ctx context.Context, app string) ([]byte, error)
	// List returns all reports, in no order.
	List(ctx context.Context) ([]Entry, error)
	// Remove takes reports away.
	Remove(ctx context.Context, entries []Entry) error
}

// Prune removes what is beyond the limits, and returns it.
func Prune(ctx context.Context, s Shelf, now time.Time, l Limits) ([]Entry, error) {
	all, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	gone := Excess(all, now, l)
	return gone, s.Remove(ctx, gone)
}

// Dir is a shelf in a folder of this host.
type Dir string

// Put implements Shelf.
func (d Dir) Put(_ context.Context, app string, data []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("cannot keep the report of %s: %w", app, err)
	}
	f, err := os.CreateTemp(string(d), ".report-*") // readable for its owner alone
	if err != nil {
		return fmt.Errorf("cannot keep the report of %s: %w", app, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(string(d), Name(app)))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("cannot keep the report of %s: %w", app, err)
	}
	return nil
}

// Get implements Shelf.
func (d Dir) Get(_ context.Context, app string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(d), Name(filepath.Base(app))))
}

// List implements Shelf.
func (d Dir) List(context.Context) ([]Entry, error) {
	files, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []Entry
	for _, f := range files {
		app := appOf(f.Name())
		info, ierr := f.Info()
		if app == "" || ierr != nil { // it was removed meanwhile
			continue
		}
		out = append(out, Entry{app, filepath.Join(string(d), f.Name()), info.ModTime(), info.Size()})
	}
	return out, err
}

// Remove implements Shelf.
func (d Dir) Remove(_ context.Context, entries []Entry) error {
	var errs []error
	for _, e := range entries {
		if err := os.Remove(e.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
