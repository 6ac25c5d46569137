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
	lower := strings.ToLower(file)
	if !isArchive(lower) {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil // whoever sends it says so
	}
	defer f.Close()
	if strings.HasSuffix(lower, ".zip") || strings.HasSuffix(lower, ".jar") {
		var st os.FileInfo
		if st, err = f.Stat(); err == nil {
			err = checkZip(f, st.Size())
		}
	} else {
		err = checkTar(f, !strings.HasSuffix(lower, ".tar"))
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

// tree is what an archive holds, as far as it matters to where its entries end up.
type tree struct {
	links map[string]bool // names of symbolic links
	names []string        // of all entries
}

// add refuses an entry, and a link by where it leads.
func (t *tree) add(name, link string, hard bool) error {
	clean := path.Clean(strings.TrimSuffix(name, "/"))
	if name != "" && !filepath.IsLocal(clean) {
		return &outsideError{name, ""}
	}
	t.names = append(t.names, clean)
	if link == "" {
		return nil
	}
	to := link
	if !hard { // hard links are named from the archive's root
		to = path.Join(path.Dir(clean), link)
		if t.links == nil {
			t.links = map[string]bool{}
		}
		t.links[clean] = true
	}
	if path.IsAbs(link) || !filepath.IsLocal(to) || turnsBack(link) {
		return &outsideError{name, link}
	}
	return nil
}

// turnsBack reports whether a path goes up after it went down: if it went down a link, up is elsewhere than it seems.
func turnsBack(link string) bool {
	down := false
	for part := range strings.SplitSeq(link, "/") {
		if part == ".." && down {
			return true
		}
		down = down || part != ".." && part != "." && part != ""
	}
	return false
}

// behindLinks refuses entries whose own path goes by one of the archive's links: where they and what is below them end up is not what their names say.
func (t *tree) behindLinks() error {
	for _, name := range t.names {
		for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if t.links[dir] {
				return &outsideError{name, ""}
			}
		}
	}
	return nil
}

func checkZip(r io.ReaderAt, size int64) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return err
	}
	var t tree
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
		if err := t.add(f.Name, link, false); err != nil {
			return err
		}
	}
	return t.behindLinks()
}

func checkTar(r io.Reader, zipped bool) error {
	if zipped {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		defer z.Close()
		r = z
	}
	var all tree
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if err != nil { // the end, or what is no archive from here on
			return errors.Join(all.behindLinks(), err)
		}
		link := ""
		if h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink {
			link = h.Linkname
		}
		if err := all.add(h.Name, link, h.Typeflag == tar.TypeLink); err != nil {
			return err
		}
	}
}
