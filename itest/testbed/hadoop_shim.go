package testbed

import (
	"context"
	"crypto/sha256"
	_ "embed" // the class
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const nodeManagerClass = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"

// secureIO lets NodeManagers of secure clusters open logs without Hadoop's native library: else they show none, and die as soon as they collect them.
//
//go:embed java/SecureIOUtils.java
var secureIO []byte

// openLogs puts secureIO before the jars of the NodeManagers.
func (h *Hadoop) openLogs(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	classes, err := compiled(ctx, "SecureIOUtils", secureIO, h.lib)
	if err != nil {
		t.Fatal(err)
	}
	own := h.bed.Dir("hadoop/secure-io") // the cache may be where only its owner can look
	if err := os.CopyFS(own, os.DirFS(classes)); err != nil {
		t.Fatal(err)
	}
	for _, d := range h.daemons {
		if d.class == nodeManagerClass {
			d.conf = own
		}
	}
}

// compiled returns a folder of the classes of a Java file, which is compiled once for a folder of jars and kept in the cache.
func compiled(ctx context.Context, class string, source []byte, lib string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(filepath.Base(lib)+"\n"), source...))
	dir := filepath.Join(cache, "classes", class+"-"+hex.EncodeToString(sum[:6]))
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), class+"-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, class+".java")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	to := filepath.Join(tmp, "classes")
	if out, err := exec.CommandContext(ctx, "javac", "-nowarn", "-cp", filepath.Join(lib, "*"), "-d", to, file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot compile %s: %w\n%s", class, err, tail(string(out), 15))
	}
	return dir, os.Rename(to, dir)
}
