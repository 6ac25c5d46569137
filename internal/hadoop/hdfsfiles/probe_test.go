package hdfsfiles

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
)

// tree is a store: what each path lets us do, by name; folders end with a slash.
type tree map[string]hdfs.Access

func (t tree) Stat(name string) (hdfs.Info, error) {
	if _, ok := t[name]; ok {
		return hdfs.Info{Path: name, Dir: name == "/"}, nil
	}
	if _, ok := t[strings.TrimSuffix(name, "/")+"/"]; ok {
		return hdfs.Info{Path: name, Dir: true}, nil
	}
	return hdfs.Info{}, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

func (t tree) List(dir string) (out []hdfs.Info, err error) { return t.match(path.Join(dir, "*")) }

func (t tree) Glob(pattern string) ([]hdfs.Info, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		if i, err := t.Stat(pattern); err == nil {
			return []hdfs.Info{i}, nil
		}
		return nil, nil
	}
	return t.match(pattern)
}

func (t tree) match(pattern string) (out []hdfs.Info, err error) {
	for name := range t {
		if ok, _ := path.Match(pattern, strings.TrimSuffix(name, "/")); ok {
			out = append(out, hdfs.Info{Path: strings.TrimSuffix(name, "/"), Dir: strings.HasSuffix(name, "/")})
		}
	}
	return out, nil
}

func (t tree) CheckAccess(_ context.Context, name string, a hdfs.Access) error {
	has, ok := t[name]
	if !ok {
		has = t[strings.TrimSuffix(name, "/")+"/"]
	}
	if has&a != a {
		return fmt.Errorf("%v to %s: %w", a, name, fs.ErrPermission)
	}
	return nil
}

func TestChecks(t *testing.T) {
	all := hdfs.AccessRead | hdfs.AccessWrite | hdfs.AccessExecute
	look := hdfs.AccessRead | hdfs.AccessExecute
	c := tree{"/": look, "/in/": look, "/in/a.csv": hdfs.AccessRead, "/in/.a.x.inprogress": 0, "/in/_SUCCESS": 0, "/in/deeper/": 0, "/secret/": look, "/secret/x": 0, "/empty/": all, "/mine/": all}
	for name, want := range map[string]string{
		"/in": "", "/in/": "", "/in/*.csv": "", "/in/a.csv": "", "/i*/a*": "",
		"/in/b.csv": "none matches hdfs:///in/b.csv: file does not exist", "/in/*.json": "none matches", "/none": "none matches", "/empty": "none matches", "/secret": "/secret/x: permission denied", "/secret/x": "permission denied",
	} {
		err := checkRead(t.Context(), c, path.Clean(name), "hdfs://"+name)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("read %s: %v, want %q", name, err, want)
		}
	}
	for name, want := range map[string]string{
		"/mine": "", "/mine/new": "", "/mine/a/b/c": "", "/in": "/in: permission denied", "/new": "-wx to /: permission denied", "/in/a.csv": "is a file, where a folder is wanted", "/in/a.csv/x": "is a file",
	} {
		err := checkWrite(t.Context(), c, name)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("write %s: %v, want %q", name, err, want)
		}
	}
}
