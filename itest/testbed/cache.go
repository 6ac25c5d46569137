// Package testbed starts the real services that the integration tests run against: it fetches
// their packages once into a cache outside the source tree, gives each service ports and folders
// of its own, starts, waits for, kills and stops it, keeps the logs of a failed test and leaves
// nothing running.
package testbed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// CacheDir is where downloads are kept between runs: $ITEST_CACHE, else heddle/itest in the user's cache folder.
func CacheDir() (string, error) {
	dir := os.Getenv("ITEST_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("cannot find a cache folder (set ITEST_CACHE): %w", err)
		}
		dir = filepath.Join(base, "heddle", "itest")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make cache folder: %w", err)
	}
	return dir, nil
}

// Artifact is a Maven artifact, "group:artifact:version".
type Artifact string

// Jars returns a folder that holds the artifacts and all they need at run time.
// It is fetched by Maven once and then served from the cache; concurrent callers wait for each other.
func Jars(ctx context.Context, name string, artifacts ...Artifact) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	pom, err := pomOf(name, artifacts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(pom))
	dir := filepath.Join(cache, "jars", name+"-"+hex.EncodeToString(sum[:6]))
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), name+"-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := fetch(ctx, tmp, pom, filepath.Join(cache, "m2")); err != nil {
		return "", fmt.Errorf("cannot fetch %s by Maven: %w", name, err)
	}
	return dir, os.Rename(filepath.Join(tmp, "lib"), dir)
}

func fetch(ctx context.Context, dir, pom, repository string) error {
	file := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(file, []byte(pom), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "mvn", "-B", "-ntp", "-q", "-f", file, "-Dmaven.repo.local="+repository,
		"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(dir, "lib"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, tail(string(out), 15))
	}
	return nil
}

func pomOf(name string, artifacts []Artifact) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\n")
	fmt.Fprintf(&b, "<groupId>heddle.itest</groupId><artifactId>%s</artifactId><version>1</version><packaging>pom</packaging>\n<dependencies>\n", name)
	for _, a := range artifacts {
		p := strings.Split(string(a), ":")
		if len(p) != 3 {
			return "", fmt.Errorf("artifact %q is not group:artifact:version", a)
		}
		fmt.Fprintf(&b, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n", p[0], p[1], p[2])
	}
	b.WriteString("</dependencies></project>\n")
	return b.String(), nil
}

// lockFile takes an exclusive lock on a file, made if missing, and returns what releases it.
func lockFile(path string) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// Need tells whether the programs of a test group are there. What is missing skips the test with
// a word on how to install it; under CI (CI set) it fails instead.
func Need(t testing.TB, programs map[string]string) {
	t.Helper()
	for prog, install := range programs {
		if _, err := exec.LookPath(prog); err == nil {
			continue
		}
		msg := fmt.Sprintf("%s is not installed; %s", prog, install)
		if os.Getenv("CI") != "" {
			t.Fatal(msg)
		}
		t.Skip(msg)
	}
}

// Group skips a test group that was not asked for: ITEST lists those to run, comma-separated, or "all".
func Group(t testing.TB, name string) {
	t.Helper()
	for g := range strings.SplitSeq(os.Getenv("ITEST"), ",") {
		if g == name || g == "all" {
			return
		}
	}
	t.Skipf("starts real services: run it by make itest-%s", name)
}

func tail(s string, lines int) string {
	l := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(l) > lines {
		l = l[len(l)-lines:]
	}
	return strings.Join(l, "\n")
}
