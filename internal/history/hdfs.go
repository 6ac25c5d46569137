package history

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/heddle-stream/heddle/internal/ship"
)

// maxReport bounds what is read of a report.
const maxReport = 64 << 20

// HDFS is a shelf in a user's staging folder. Open connects to that, and is called for each use: an ApplicationMaster uses it once in minutes,
// with tokens that change.
type HDFS struct {
	Open func() (*ship.Store, interface{ Close() error }, error)
}

// Path is where the report of an application is.
func (h HDFS) Path(app string) (name string, err error) {
	err = h.with(func(s *ship.Store) error {
		name = path.Join(s.HistoryDir(), Name(app))
		return nil
	})
	return name, err
}

func (h HDFS) with(do func(*ship.Store) error) error {
	s, conn, err := h.Open()
	if err != nil {
		return err
	}
	return errors.Join(do(s), conn.Close())
}

// Put implements Shelf.
func (h HDFS) Put(ctx context.Context, app string, data []byte) error {
	return h.with(func(s *ship.Store) error { return s.KeepReport(ctx, Name(app), data) })
}

// Get implements Shelf.
func (h HDFS) Get(_ context.Context, app string) (data []byte, err error) {
	err = h.with(func(s *ship.Store) (err error) {
		data, err = s.FS.ReadFile(path.Join(s.HistoryDir(), Name(app)), maxReport)
		return err
	})
	return data, err
}

// List implements Shelf.
func (h HDFS) List(context.Context) (out []Entry, err error) {
	err = h.with(func(s *ship.Store) error {
		infos, err := s.FS.List(s.HistoryDir())
		for _, i := range infos {
			if app := appOf(i.Path); app != "" {
				out = append(out, Entry{app, i.Path, i.Modified, i.Size})
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return out, err
}

// Remove implements Shelf.
func (h HDFS) Remove(_ context.Context, entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	return h.with(func(s *ship.Store) error {
		var errs []error
		for _, e := range entries {
			errs = append(errs, s.FS.RemoveAll(e.Path))
		}
		return errors.Join(errs...)
	})
}
