package heddle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// FileRemover is a FileSystem that can remove files.
type FileRemover interface {
	// Remove removes a file. That it is not there is no error.
	Remove(ctx context.Context, name string) error
}

// leftover reports whether a file is a part of a run with more subtasks than this one, which no part of this run replaces.
func leftover(name string, parallelism int) bool {
	digits, ok := strings.CutPrefix(name, "part-")
	if !ok || len(digits) < 5 {
		return false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return err == nil && n >= uint64(parallelism)
}

// errLeftover says that the results of an earlier run would stand beside those of this one.
func errLeftover(name string) error {
	return fmt.Errorf("cannot write beside %s: it is of an earlier run with more subtasks; remove it, write to another directory, or use Overwrite (in a job file: overwrite: true)", name)
}

// leftovers finds the parts of an earlier run that none of this one replaces. The first subtask looks for all.
func (s *FileSink) leftovers(subtask, parallelism int) ([]string, error) {
	if subtask != 0 {
		return nil, nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot write files: %w", err)
	}
	var found []string
	for _, e := range entries {
		if leftover(e.Name(), parallelism) {
			found = append(found, filepath.Join(s.dir, e.Name()))
		}
	}
	if len(found) > 0 && !s.overwrite {
		return nil, errLeftover(found[0])
	}
	return found, nil
}

// removeLeftovers removes files of this host, once what replaces them is whole.
func removeLeftovers(names []string) error {
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove the part of an earlier run: %w", err)
		}
	}
	return nil
}

// remoteLeftovers is leftovers in another file system; remove removes one.
func (s *FileSink) remoteLeftovers(ctx context.Context, fsys FileSystem, subtask, parallelism int) (found []string, remove func(context.Context, string) error, err error) {
	if subtask != 0 {
		return nil, nil, nil
	}
	there, err := fsys.Find(ctx, strings.TrimSuffix(s.dir, "/"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("cannot write files to %s: %w", s.dir, err)
	}
	for _, f := range there {
		if leftover(path.Base(f.Path), parallelism) {
			found = append(found, f.Path)
		}
	}
	remover, ok := fsys.(FileRemover)
	if len(found) > 0 && (!s.overwrite || !ok) {
		return nil, nil, errLeftover(found[0])
	}
	if ok {
		remove = remover.Remove
	}
	return found, remove, nil
}
