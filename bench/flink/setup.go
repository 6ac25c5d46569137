// Package flink runs Flink as a peer for benchmarks: it fetches its jars by Maven into a folder outside the tree, compiles the jobs against them, and
// starts real processes, a JobManager and TaskManagers.
package flink

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed java
var javaFiles embed.FS

// Home is a folder outside the tree with Flink's jars, what was compiled against them, and a key store.
type Home struct{ dir string }

const storePassword = "internal_pw"

func (h Home) classpath() string {
	return filepath.Join(h.dir, "classes") + string(os.PathListSeparator) + filepath.Join(h.dir, "lib", "*")
}

func (h Home) keyStore() string { return filepath.Join(h.dir, "internal.p12") }

// version tells the files of this package from others.
func version() string {
	sum := sha256.New()
	_ = fs.WalkDir(javaFiles, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := javaFiles.ReadFile(name)
		sum.Write(b)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// SetUp fetches the jars by Maven and compiles the job, unless that was done before.
func SetUp(ctx context.Context, dir string) (Home, error) {
	h := Home{dir}
	done := filepath.Join(dir, "ready-"+version())
	if _, err := os.Stat(done); err == nil {
		return h, nil
	}
	src := filepath.Join(dir, "src")
	for _, d := range []string{src, filepath.Join(dir, "classes")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return h, err
		}
	}
	files, err := javaFiles.ReadDir("java")
	if err != nil {
		return h, err
	}
	args := []string{"-nowarn", "-cp", filepath.Join(dir, "lib", "*"), "-d", filepath.Join(dir, "classes")}
	for _, f := range files {
		b, err := javaFiles.ReadFile("java/" + f.Name())
		if err != nil {
			return h, err
		}
		to := filepath.Join(src, f.Name())
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return h, err
		}
		if strings.HasSuffix(to, ".java") {
			args = append(args, to)
		}
	}
	fmt.Println("fetching Flink into", dir)
	for _, cmd := range [][]string{
		{"mvn", "-q", "-B", "-ntp", "-f", filepath.Join(src, "pom.xml"), "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
			"-DoutputDirectory=" + filepath.Join(dir, "lib"), "-DincludeScope=runtime"},
		append([]string{"javac"}, args...),
		{"rm", "-f", h.keyStore()},
		{"keytool", "-genkeypair", "-alias", "flink.internal", "-keystore", h.keyStore(), "-storetype", "PKCS12", "-dname", "CN=flink.internal",
			"-ext", "SAN=dns:localhost,ip:127.0.0.1", "-storepass", storePassword, "-keypass", storePassword, "-keyalg", "RSA", "-keysize", "2048", "-validity", "3650"},
	} {
		if out, err := exec.CommandContext(ctx, cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			return h, fmt.Errorf("cannot set up Flink: %s: %w\n%s", cmd[0], err, out)
		}
	}
	return h, os.WriteFile(done, nil, 0o644)
}
