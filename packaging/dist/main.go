// Command dist makes what is handed out of a folder that "make dist" has filled: a tarball, and packages for Debian's and Red Hat's systems.
//
// It is a module of its own, so that what it needs is not needed by Heddle.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// release is what is handed out.
type release struct {
	root    string // the filled folder
	out     string // where the results go
	version string // as git describes it
	arch    string // in Go's words
	at      time.Time
}

func main() {
	var r release
	flag.StringVar(&r.root, "root", "", "the filled `folder`")
	flag.StringVar(&r.out, "out", ".", "`folder` of the results")
	flag.StringVar(&r.version, "version", "", "`version`, as git describes it")
	flag.StringVar(&r.arch, "arch", "amd64", "the program's `architecture`")
	flag.Parse()
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func (r release) make() error {
	if r.root == "" || r.version == "" || flag.NArg() > 0 {
		return errors.New("want -root and -version, and nothing else")
	}
	r.at = time.Unix(0, 0).UTC()
	if s := os.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("cannot read SOURCE_DATE_EPOCH: %w", err)
		}
		r.at = time.Unix(n, 0).UTC()
	}
	files, err := r.list()
	if err != nil {
		return err
	}
	if err := r.tarball(files); err != nil {
		return fmt.Errorf("cannot make the tarball: %w", err)
	}
	for _, format := range []string{"deb", "rpm"} {
		if err := r.pack(format, files); err != nil {
			return fmt.Errorf("cannot make the %s: %w", format, err)
		}
	}
	return nil
}

// list returns the folder's files, relative to it, sorted.
func (r release) list() ([]string, error) {
	var files []string
	err := filepath.WalkDir(r.root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(r.root, p)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is nothing in %s", r.root)
	}
	return files, err
}

// plain is the version as packages have it: 1.2.3, or 0.0.0 with the commit behind it where nothing is tagged.
func (r release) plain() string {
	v := strings.TrimPrefix(r.version, "v")
	if v != "" && v[0] >= '0' && v[0] <= '9' && strings.Contains(v, ".") {
		return v
	}
	return "0.0.0-" + v
}

// mode is the rights that a file gets everywhere.
func mode(name string) os.FileMode {
	if strings.HasPrefix(name, "bin/") {
		return 0o755
	}
	return 0o644
}

// create writes a result by a function, and says so.
func (r release) create(name string, write func(*os.File) error) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	fmt.Println(file.Name())
	return nil
}
