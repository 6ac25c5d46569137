package ship

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostileArchives refuses archives that would write, or lead, outside of their folder in a container.
func TestHostileArchives(t *testing.T) {
	dir := t.TempDir()
	for name, x := range map[string]struct {
		entry, link string
		kind        byte
		says        string // "": it is fine
	}{
		"fine":             {"a/b.txt", "", tar.TypeReg, ""},
		"here":             {"./a/b.txt", "", tar.TypeReg, ""},
		"folder":           {"./", "", tar.TypeDir, ""},
		"odd name":         {"a/..b", "", tar.TypeReg, ""},
		"up and down":      {"a/../b", "", tar.TypeReg, ""},
		"up":               {"../b", "", tar.TypeReg, "outside"},
		"up later":         {"a/../../b", "", tar.TypeReg, "outside"},
		"absolute":         {"/etc/cron.d/x", "", tar.TypeReg, "outside"},
		"link within":      {"a/l", "../b", tar.TypeSymlink, ""},
		"link up":          {"a/l", "../../b", tar.TypeSymlink, "is a link to"},
		"absolute link":    {"l", "/etc/passwd", tar.TypeSymlink, "is a link to"},
		"hard link":        {"a/l", "b", tar.TypeLink, ""},
		"hard link up":     {"a/l", "../b", tar.TypeLink, "is a link to"},
		"absolute, a link": {"/l", "b", tar.TypeSymlink, "outside"},
	} {
		for _, ext := range archives {
			zipped := ext == ".zip" || ext == ".jar"
			if zipped && x.kind == tar.TypeLink {
				continue // there are none in zip
			}
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+strings.ToUpper(ext))
			writeArchive(t, file, ext, x.entry, x.link, x.kind)
			err := checkArchive(file)
			if (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) {
				t.Errorf("%s%s: %v, want %q", name, ext, err, x.says)
			}
			if !zipped && x.says != "" { // also behind what is fine
				if err := os.WriteFile(file, append([]byte("x"), 0), 0o600); err != nil || checkArchive(file) != nil {
					t.Errorf("%s%s: what is no archive is judged", name, ext)
				}
			}
		}
	}
}

// writeArchive writes an archive of an entry that is fine and another one.
func writeArchive(t *testing.T, file, ext, entry, link string, kind byte) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if ext == ".zip" || ext == ".jar" {
		w := zip.NewWriter(f)
		defer w.Close()
		if _, err := w.Create("first"); err != nil {
			t.Fatal(err)
		}
		h := &zip.FileHeader{Name: entry}
		if kind == tar.TypeSymlink {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		if strings.HasSuffix(entry, "/") {
			link = ""
		}
		out, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(out, link)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	var to io.Writer = f
	if ext != ".tar" {
		z := gzip.NewWriter(f)
		defer z.Close()
		to = z
	}
	w := tar.NewWriter(to)
	defer w.Close()
	for _, h := range []*tar.Header{{Name: "first", Typeflag: tar.TypeReg, Mode: 0o600}, {Name: entry, Linkname: link, Typeflag: kind, Mode: 0o600}} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHostileFolders: a folder is sent without links: what a file's leads to goes along, one to a folder is refused, and so is what is no file.
func TestHostileFolders(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "ship", "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "outside"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, "ship", name)); err != nil {
			t.Fatal(err)
		}
	}
	link("../../outside", "sub/file")
	packed, err := packFolder(filepath.Join(dir, "ship"))
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(packed)
	z, err := zip.OpenReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		if f.Mode()&fs.ModeSymlink != 0 || !filepath.IsLocal(f.Name) {
			t.Errorf("the archive holds %s, %v", f.Name, f.Mode())
		}
	}
	if len(z.File) != 2 || z.File[1].UncompressedSize64 != 4 {
		t.Errorf("the archive holds %d entries", len(z.File))
	}
	link("/", "root")
	if _, err := packFolder(filepath.Join(dir, "ship")); err == nil || !strings.Contains(err.Error(), "is a link to a folder") {
		t.Errorf("a link to a folder: %v", err)
	}
}

// TestLinksInTurn: links that are each within the archive and lead out together.
func TestLinksInTurn(t *testing.T) {
	type entry struct{ name, link string }
	for name, x := range map[string]struct {
		entries []entry
		ok      bool
	}{
		"behind a link":           {[]entry{{"a/b/up", "../.."}, {"a/b/up/out", "../../.."}}, false},
		"behind a later link":     {[]entry{{"a/l/x", ""}, {"a/l", "../b"}}, false},
		"through a link and up":   {[]entry{{"a/b/up", "../.."}, {"out", "a/b/up/.."}}, false},
		"up, down and up":         {[]entry{{"a/l", "../b/../.."}}, false},
		"links beside each other": {[]entry{{"lib/l.so", "l.so.1"}, {"lib/l.so.1", "./l.so.1.2"}, {"lib/l.so.1.2", ""}, {"current", "lib"}}, true},
	} {
		var tr tree
		var err error
		for _, e := range x.entries {
			err = errors.Join(err, tr.add(e.name, e.link, false))
		}
		if err = errors.Join(err, tr.behindLinks()); (err == nil) != x.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzArchive: bytes of a tar file, of which no entry that passes is outside, also when links are followed.
func FuzzArchive(f *testing.F) {
	for _, h := range [][2]string{{"a/b", ""}, {"a/l", "../b"}, {"../b", ""}, {"l", "/etc"}} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		kind := byte(tar.TypeReg)
		if h[1] != "" {
			kind = tar.TypeSymlink
		}
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: h[0], Linkname: h[1], Typeflag: kind, Mode: 0o600}), w.Close()); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), h[0], h[1], "x/y", "..")
	}
	f.Fuzz(func(t *testing.T, data []byte, name1, link1, name2, link2 string) {
		_ = checkTar(bytes.NewReader(data), false)
		_ = checkZip(bytes.NewReader(data), int64(len(data)))
		var tr tree
		if tr.add(name1, link1, false) != nil || tr.add(name2, link2, false) != nil || tr.behindLinks() != nil {
			return
		}
		for _, name := range []string{name1, name2} {
			if at := follow(path.Clean(name), map[string]string{path.Clean(name1): link1, path.Clean(name2): link2}, 8); at != "" && !filepath.IsLocal(at) {
				t.Errorf("%q to %q and %q to %q lead to %q", name1, link1, name2, link2, at)
			}
		}
	})
}

// follow is where a path ends up when links are followed on the way, up to so many; "..": outside, or "": there is no end.
func follow(p string, links map[string]string, depth int) string {
	if depth == 0 {
		return ""
	}
	at := "."
	for part := range strings.SplitSeq(p, "/") {
		at = path.Join(at, part)
		if at == ".." || strings.HasPrefix(at, "../") {
			return ".."
		}
		if link := links[at]; link != "" {
			if path.IsAbs(link) {
				return ".."
			}
			// Without cleaning: what goes up after a link goes up from where that leads.
			to := path.Dir(at) + "/" + link
			if at = follow(to, links, depth-1); at == "" || at == ".." {
				return at
			}
		}
	}
	return at
}
