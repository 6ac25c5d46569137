package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Cap is how much of a log is kept.
type Cap struct {
	Size  int64 // of the file that is written to; 0: any
	Files int   // older ones, named .1 (the newest), .2, …; 0: none

	Dirs []string // only files below one of these are touched: others are somebody else's
}

// Between two looks at the files: what grows fast is looked at more often.
const (
	keepInterval  = 5 * time.Second
	leastInterval = 200 * time.Millisecond
)

// interval is the time until the next look, if a file of at most size grew to seen within the last, so that it grows no longer than about size.
func interval(last time.Duration, size, seen int64) time.Duration {
	if seen <= size {
		return min(keepInterval, 2*last)
	}
	return max(leastInterval, min(keepInterval, time.Duration(float64(last)*float64(size)/float64(seen))))
}

// Keep keeps the files of descriptors below their cap until ctx ends: it copies one that has grown too long aside and empties it.
// Whoever writes to it, a user's own print or the trace of a crash too, goes on writing to the same file. The descriptors are set
// to append, so that they write at the file's new end. What is no regular file is left alone.
func Keep(ctx context.Context, log *slog.Logger, c Cap, descriptors ...*os.File) {
	if c.Size <= 0 {
		return
	}
	files := map[string]*os.File{}
	for _, d := range descriptors {
		if path, ok := c.pathOf(d); ok {
			files[path] = d
		}
	}
	if len(files) == 0 {
		return
	}
	wait := keepInterval
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		longest := int64(0)
		for path, f := range files {
			if info, err := f.Stat(); err == nil {
				longest = max(longest, info.Size())
			}
			if err := c.apply(path, f); err != nil {
				log.Error("cannot keep a log below its cap", "file", path, "err", err)
				delete(files, path)
			}
		}
		wait = interval(wait, c.Size, longest)
		timer.Reset(wait)
	}
}

// pathOf returns the path of a regular file that a descriptor writes to, and has it append.
func (c *Cap) pathOf(f *os.File) (string, bool) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return "", false
	}
	if is, err := os.Stat(path); err != nil || !os.SameFile(is, info) {
		return "", false // it was removed or renamed
	}
	if !slices.ContainsFunc(c.Dirs, func(dir string) bool { return below(path, dir) }) {
		return "", false
	}
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETFL, 0)
	if errno != 0 {
		return "", false
	}
	_, _, errno = syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFL, flags|syscall.O_APPEND)
	return path, errno == 0
}

// below reports whether a file is in a folder or one of its folders.
func below(path, dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(real, path)
	return err == nil && filepath.IsLocal(rel)
}

// apply moves the content of a file aside if it is longer than the cap.
func (c Cap) apply(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() <= c.Size {
		return err
	}
	if c.Files > 0 {
		for i := c.Files - 1; i >= 1; i-- {
			err := os.Rename(Aside(path, i), Aside(path, i+1))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := copyTo(path, Aside(path, 1), info.Mode().Perm()); err != nil {
			return err
		}
	}
	return os.Truncate(path, 0)
}

// Aside is the name of what was moved aside of a log; 1: last.
func Aside(path string, i int) string { return fmt.Sprintf("%s.%d", path, i) }

func copyTo(from, to string, mode os.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
