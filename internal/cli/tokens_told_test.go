package cli

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
)

// TestToldOnce fails to get fresh tokens again and again: the reason is told once.
func TestToldOnce(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"core-site.xml", "yarn-site.xml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("<configuration/>"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf, err := hconf.Load(hconf.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	id, err := identity.Open(identity.Config{Conf: conf, User: "alice", Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	k := &tokenKeeper{id: id, log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 {
		if wait, ok := k.refresh(t.Context()); ok || wait < refreshSoonest || wait > refreshRetry {
			t.Errorf("it goes on in %v, %v", wait, ok)
		}
	}
	if n := strings.Count(log.String(), "cannot get fresh delegation tokens"); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, &log)
	}
}
