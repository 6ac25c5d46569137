package ship

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// checkArchive refuses a local archive with a name or a link that leads out of the folder it is unpacked into: NodeManagers before Hadoop 3.2.3 and 3.3.3 follow
// them (CVE-2022-26612), and what they write is another's. What can't be read as an archive is left to the NodeManager.
func checkArchive(file string) error {
	var err error
	switch lower := strings.ToLower(file); {
	case strings.HasSuffix(lower, ".zip"), strings.HasSuffix(lower, ".jar"):
		err = checkZip(file)
	case isArchive(lower):
		err = checkTar(file, !strings.HasSuffix(lower, ".tar"))
	}
	if out, ok := errors.AsType[*outsideError](err); ok {
		return out
	}
	return nil
}

// outsideError is of an entry that leads out.
type outsideError struct{ name, to string }

func (e *outsideError) Error() string {
	if e.to == "" {
		return fmt.Sprintf("its entry %q would be unpacked outside of its own folder; make the archive without such names", e.name)
	}
	return fmt.Sprintf("its entry %q is a link to %q, outside of the archive's own folder; make the archive without such links", e.name, e.to)
}

// checkEntry refuses an entry, and a link by where it leads.
func checkEntry(name, link string, hard bool) error {
	clean := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if clean != "" && !filepath.IsLocal(clean) {
		return &outsideError{name, ""}
	}
	if link == "" {
		return nil
	}
	to := link
	if !hard { // hard links are named from the archive's root
		to = path.Join(path.Dir(clean), link)
	}
	if path.IsAbs(link) || !filepath.IsLocal(to) {
		return &outsideError{name, link}
	}
	return nil
}

func checkZip(file string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		link := ""
		if f.Mode()&fs.ModeSymlink != 0 {
			r, err := f.Open()
			if err != nil {
				return err
			}
			b, err := io.ReadAll(io.LimitReader(r, 4096))
			if err = errors.Join(err, r.Close()); err != nil {
				return err
			}
			link = string(b)
		}
		if err := checkEntry(f.Name, link, false); err != nil {
			return err
		}
	}
	return nil
}

func checkTar(file string, zipped bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if zipped {
		z, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		defer z.Close()
		r = z
	}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if err != nil {
			return err // the end, or what is no archive
		}
		link := ""
		if h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink {
			link = h.Linkname
		}
		if err := checkEntry(h.Name, link, h.Typeflag == tar.TypeLink); err != nil {
			return err
		}
	}
}
