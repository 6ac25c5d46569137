package main

import (
	"archive/zip"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed java
var javaFiles embed.FS

// flinkHome is a folder outside the tree with Flink as its distribution has it: one jar of everything, those of the logger, and a job.
type flinkHome struct{ dir string }

func (h flinkHome) lib() string { return filepath.Join(h.dir, "lib") }
func (h flinkHome) job() string { return filepath.Join(h.dir, "start.jar") }

// setUp fetches the jars by Maven, joins them and compiles the job, unless that was done before.
func setUp(ctx context.Context, dir string) (flinkHome, error) {
	h := flinkHome{dir}
	done := filepath.Join(dir, "ready")
	if _, err := os.Stat(done); err == nil {
		return h, nil
	}
	src, classes, parts := filepath.Join(dir, "src"), filepath.Join(dir, "classes"), filepath.Join(dir, "parts")
	for _, d := range []string{src, classes, h.lib()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return h, err
		}
	}
	for _, name := range []string{"pom.xml", "StartJob.java", "log4j.properties"} {
		b, err := javaFiles.ReadFile("java/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(src, name), b, 0o644)
		}
		if err != nil {
			return h, err
		}
	}
	fmt.Println("fetching Flink into", dir)
	for _, cmd := range [][]string{
		{"mvn", "-q", "-B", "-ntp", "-f", filepath.Join(src, "pom.xml"), "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
			"-DoutputDirectory=" + parts, "-DincludeScope=runtime"},
		{"javac", "-nowarn", "-cp", filepath.Join(parts, "*"), "-d", classes, filepath.Join(src, "StartJob.java")},
		{"jar", "--create", "--file", h.job(), "--main-class", "bench.StartJob", "-C", classes, "."},
	} {
		if out, err := exec.CommandContext(ctx, cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			return h, fmt.Errorf("cannot set up Flink: %s: %w\n%s", cmd[0], err, out)
		}
	}
	if err := h.join(parts); err != nil {
		return h, fmt.Errorf("cannot join Flink's jars: %w", err)
	}
	return h, os.WriteFile(done, nil, 0o644)
}

// join makes the one jar that a distribution has; Maven has only its parts. The logger's stay apart, as there.
func (h flinkHome) join(parts string) error {
	jars, err := filepath.Glob(filepath.Join(parts, "*.jar"))
	if err != nil {
		return err
	}
	var all []string
	for _, jar := range jars {
		name := filepath.Base(jar)
		if !strings.HasPrefix(name, "log4j") && !strings.HasPrefix(name, "slf4j") {
			all = append(all, jar)
			continue
		}
		b, err := os.ReadFile(jar)
		if err == nil {
			err = os.WriteFile(filepath.Join(h.lib(), name), b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	out, err := os.Create(filepath.Join(h.lib(), "flink-dist-2.3.0.jar"))
	if err != nil {
		return err
	}
	defer out.Close()
	w := zip.NewWriter(out)
	return errors.Join(joinJars(w, all), w.Close(), out.Close())
}

// joinJars copies each file of the jars once, and lists of services together.
func joinJars(w *zip.Writer, jars []string) error {
	seen, services := map[string]bool{}, map[string][]byte{}
	for _, jar := range jars {
		r, err := zip.OpenReader(jar)
		if err != nil {
			return err
		}
		for _, f := range r.File {
			switch {
			case strings.HasSuffix(f.Name, "/"), f.Name == "META-INF/MANIFEST.MF", strings.HasSuffix(f.Name, ".SF"), strings.HasSuffix(f.Name, ".RSA"), strings.HasSuffix(f.Name, ".DSA"),
				strings.HasSuffix(f.Name, "module-info.class"):
			case strings.HasPrefix(f.Name, "META-INF/services/"):
				var b []byte
				if b, err = contentOf(f); err == nil {
					services[f.Name] = append(append(services[f.Name], b...), '\n')
				}
			case !seen[f.Name]:
				seen[f.Name] = true
				err = copyRaw(w, f)
			}
			if err != nil {
				break
			}
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return fmt.Errorf("%s: %w", jar, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		f, err := w.Create(name)
		if err == nil {
			_, err = io.Copy(f, bytes.NewReader(services[name]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func contentOf(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func copyRaw(w *zip.Writer, f *zip.File) error {
	r, err := f.OpenRaw()
	if err != nil {
		return err
	}
	to, err := w.CreateRaw(&f.FileHeader)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, r)
	return err
}
