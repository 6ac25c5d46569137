package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
)

// tarball packs the folder as it is. The same files give the same bytes.
func (r release) tarball(files []string) error {
	top := "heddle-" + r.plain() + "-linux-" + r.arch
	return r.create(top+".tar.gz", func(out *os.File) error {
		z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
		if err != nil {
			return err
		}
		w := tar.NewWriter(z)
		for _, name := range files {
			if err := r.tarOne(w, name, path.Join(top, name)); err != nil {
				return err
			}
		}
		return errors.Join(w.Close(), z.Close())
	})
}

func (r release) tarOne(w *tar.Writer, name, as string) error {
	in, err := os.Open(filepath.Join(r.root, name))
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: as, Size: st.Size(), Mode: int64(mode(name)), ModTime: r.at, Uname: "root", Gname: "root"}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}
