package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestJobFiles: what a job file names is read beside it, and travels in its text.
func TestJobFiles(t *testing.T) {
	dir := t.TempDir()
	content := "{\"type\": \"record\"}\n#heddle-file \"x\" y\n"
	if err := os.WriteFile(filepath.Join(dir, "a b.avsc"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	files := &jobFiles{dir: dir, read: map[string][]byte{}}
	if _, err := files.file("a b.avsc"); err != nil {
		t.Fatal(err)
	}
	if _, err := files.file("none.avsc"); err == nil {
		t.Errorf("a file that is not there was read")
	}
	const job = "name: j\nsource: {}\n"
	text, read := attached(files.attach([]byte(job)))
	if string(text)+"\n" != job && string(text) != job {
		t.Errorf("the job is %q", text)
	}
	if got, err := read("a b.avsc"); err != nil || string(got) != content {
		t.Errorf("the file is %q (%v)", got, err)
	}
	if _, err := read("other"); err == nil {
		t.Errorf("a file that did not come along was read")
	}
	if text, _ := attached([]byte(job)); string(text) != job {
		t.Errorf("a job without files is %q", text)
	}
}
