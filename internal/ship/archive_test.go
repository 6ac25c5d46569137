package ship

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
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
