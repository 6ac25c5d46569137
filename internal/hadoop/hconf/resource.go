package hconf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Resource reads a file beside the configuration's own, such as ssl-client.xml, as a configuration of its own; ok is false if there is none. A configuration
// that came from Read has none but those with an absolute path.
func (c *Conf) Resource(name string) (r *Conf, ok bool, err error) {
	file := c.path(name)
	if file == "" {
		return nil, false, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot read Hadoop's configuration: %w", err)
	}
	r = blank(c.env, c.user)
	r.dir = filepath.Dir(file)
	return r, true, r.add(file, data, os.ReadFile)
}

// path is where a file is that Java would look for on its classpath; "" if nothing says it.
func (c *Conf) path(name string) string {
	switch {
	case filepath.IsAbs(name):
		return name
	case c.dir == "":
		return ""
	}
	return filepath.Join(c.dir, name)
}

// Env is a variable of the environment that the configuration was read in.
func (c *Conf) Env(name string) (string, bool) { return c.env(name) }

// Path is where a file that the configuration names is: beside it, unless its path is absolute.
func (c *Conf) Path(name string) string { return c.path(name) }
