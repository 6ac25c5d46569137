package hdfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
)

// Store keeps a local file in HDFS once, as dir/<SHA-256 of its content>, and returns how HDFS describes it and whether it was there. What is there is
// used only if nobody else can have put or changed it: the file and its folder belong to us or one of trusted, and no
// other may write either. Stored programs run as whoever stored them, so that a planted one must not be used.
func (f *FS) Store(ctx context.Context, dir, local string, trusted []string, progress func(done, size int64)) (info Info, reused bool, err error) {
	sum, size, err := hashFile(local)
	if err != nil {
		return Info{}, false, fmt.Errorf("cannot store %s in HDFS: %w", local, err)
	}
	if err := f.MkdirAll(dir, 0o700); err != nil {
		return Info{}, false, err
	}
	name := path.Join(dir, sum)
	info, err = f.Stat(name)
	if err == nil {
		return info, true, f.trust(info, size, trusted)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Info{}, false, err
	}
	open := func() (io.ReadCloser, error) { return os.Open(local) }
	told := func(done int64) {
		if progress != nil {
			progress(done, size)
		}
	}
	info, err = f.Upload(ctx, name, 0o700, open, told)
	if errors.Is(err, fs.ErrExist) { // somebody was faster: theirs is used
		if info, err = f.Stat(name); err == nil {
			return info, true, f.trust(info, size, trusted)
		}
	}
	if err == nil {
		err = f.trust(info, size, trusted)
	}
	return info, false, err
}

func hashFile(name string) (sum string, size int64, err error) {
	file, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	h := sha256.New()
	if size, err = io.Copy(h, file); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// trust refuses a stored file that others can have put or changed.
func (f *FS) trust(file Info, size int64, trusted []string) error {
	dir, err := f.Stat(path.Dir(file.Path))
	if err != nil {
		return err
	}
	return trusts(file, dir, size, append([]string{f.cfg.User}, trusted...))
}

func trusts(file, dir Info, size int64, owners []string) error {
	for _, i := range []Info{file, dir} {
		if !slices.Contains(owners, i.Owner) {
			return fmt.Errorf("cannot use %s in HDFS: %s belongs to %s, who could have planted it; use another staging folder, or name that user as trusted", file.Path, i.Path, i.Owner)
		}
		if i.Mode&0o022 != 0 {
			return fmt.Errorf("cannot use %s in HDFS: others may write %s (its mode is %o), and could have planted it; run hdfs dfs -chmod go-w %s", file.Path, i.Path, i.Mode, i.Path)
		}
	}
	if file.Dir || file.Size != size {
		return fmt.Errorf("cannot use %s in HDFS: it is not the file that its name says (%d bytes, want %d); remove it", file.Path, file.Size, size)
	}
	return nil
}
