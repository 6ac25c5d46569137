package ship

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
)

// epoch is the time of files in archives: the same content gives the same archive.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// pack makes an archive of files.
func pack(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: epoch})
		if err == nil {
			_, err = f.Write(files[name])
		}
		if err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot pack the application's files: %w", err)
	}
	return b.Bytes(), nil
}

// packFolder writes an archive of a local folder into a temporary file, which the caller removes.
func packFolder(dir string) (name string, err error) {
	out, err := os.CreateTemp("", "heddle-ship-*.zip")
	if err != nil {
		return "", fmt.Errorf("cannot pack %s: %w", dir, err)
	}
	defer func() {
		if cerr := out.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("cannot pack %s: %w", dir, cerr)
		}
		if err != nil {
			os.Remove(out.Name())
		}
	}()
	w := zip.NewWriter(out)
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		return packOne(w, p, filepath.ToSlash(rel))
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", fmt.Errorf("cannot pack %s: %w", dir, err)
	}
	return out.Name(), nil
}

// packOne adds a file, or what a link leads to, or an empty folder.
func packOne(w *zip.Writer, p, name string) error {
	st, err := os.Stat(p)
	if err != nil {
		return err
	}
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: epoch}
	h.SetMode(st.Mode())
	switch {
	case st.IsDir():
		if l, err := os.Lstat(p); err != nil || !l.IsDir() {
			return fmt.Errorf("%s is a link to a folder; send that folder itself", p)
		}
		h.Name += "/"
		_, err := w.CreateHeader(h)
		return err
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a folder", p)
	}
	in, err := os.Open(p)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := w.CreateHeader(h)
	if err == nil {
		_, err = io.Copy(f, in)
	}
	return err
}

// HadoopConf writes the Hadoop configuration of this host, variables replaced, for containers, which need not have one. Passwords stay here.
func HadoopConf(c *hconf.Conf) ([]byte, error) {
	return c.Marshal(func(key string) bool {
		key = strings.ToLower(key)
		return !strings.Contains(key, "password") && !strings.Contains(key, "secret") && !strings.Contains(key, "access.key") && !strings.Contains(key, "account.key")
	})
}
