package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Promtool runs Prometheus's own checker, with in as its input: that of the host or, on Debian, of the package, which is fetched once.
func Promtool(b *Bed, in string, args ...string) (string, error) {
	b.t.Helper()
	path, err := promtool(b)
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func promtool(b *Bed) (string, error) {
	if path, err := exec.LookPath("promtool"); err == nil {
		return path, nil
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "prometheus")
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(dir, "usr", "bin", "promtool")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.Command("sh", "-c", `set -e; apt-get download -q prometheus; dpkg-deb -x prometheus_*.deb "$1.new"; mv "$1.new" "$1"`, "sh", dir)
	cmd.Dir = b.Dir("prometheus")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot fetch promtool (install prometheus, or its promtool): %w\n%s", err, tail(string(out), 5))
	}
	return path, nil
}
