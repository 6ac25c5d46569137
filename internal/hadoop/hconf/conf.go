package hconf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Options say where a configuration is and what its variables mean. The zero value reads the process's own environment.
type Options struct {
	Dir  string                      // the folder; "": found by FindDir
	Env  func(string) (string, bool) // environment; nil: os.LookupEnv
	Need []string                    // files that must exist, such as "yarn-site.xml"
	User string                      // what ${user.name} means; "": USER of the environment
	Also map[string]string           // properties of our own beside those of the files; empty ones are none
}

// site are the files that are read, in order: a later one overrides an earlier.
var site = []string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml", "resource-types.xml"}

// Conf is a configuration. It does not change after it was read.
type Conf struct {
	dir   string
	props map[string]property
	env   func(string) (string, bool)
	user  string
}

// property is a key's value before its variables are replaced.
type property struct {
	raw   string
	file  string // "": a default of Hadoop's
	final bool
}

// FindDir returns the folder of the configuration and the variable or place that named it.
// YARN_CONF_DIR wins over HADOOP_CONF_DIR, as in the scripts of Hadoop 3.
func FindDir(env func(string) (string, bool)) (dir, from string, err error) {
	for _, v := range []string{"YARN_CONF_DIR", "HADOOP_CONF_DIR"} {
		if d, ok := env(v); ok && d != "" {
			return d, v, nil
		}
	}
	if home, ok := env("HADOOP_HOME"); ok && home != "" {
		old := filepath.Join(home, "conf")
		if _, err := os.Stat(filepath.Join(old, "hadoop-env.sh")); err == nil {
			return old, "HADOOP_HOME", nil
		}
		return filepath.Join(home, "etc", "hadoop"), "HADOOP_HOME", nil
	}
	const std = "/etc/hadoop/conf"
	if _, err := os.Stat(std); err == nil {
		return std, std, nil
	}
	return "", "", fmt.Errorf("cannot find Hadoop's configuration: neither HADOOP_CONF_DIR, YARN_CONF_DIR nor HADOOP_HOME is set, and there is no %s; "+
		"set HADOOP_CONF_DIR to the folder that holds core-site.xml and yarn-site.xml", std)
}

// Load finds and reads the configuration.
func Load(opts Options) (*Conf, error) {
	env := opts.Env
	if env == nil {
		env = os.LookupEnv
	}
	dir, from := opts.Dir, ""
	if dir == "" {
		var err error
		if dir, from, err = FindDir(env); err != nil {
			return nil, err
		}
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		if err == nil {
			err = errors.New("it is not a folder")
		}
		if from != "" {
			return nil, fmt.Errorf("cannot read Hadoop's configuration in %s (from %s): %w", dir, from, err)
		}
		return nil, fmt.Errorf("cannot read Hadoop's configuration in %s: %w", dir, err)
	}
	c := blank(env, opts.User)
	c.dir = dir
	for _, name := range site {
		file := filepath.Join(dir, name)
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && !contains(opts.Need, name) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read Hadoop's configuration: %w", err)
		}
		if err := c.add(file, data, os.ReadFile); err != nil {
			return nil, err
		}
	}
	for k, v := range opts.Also {
		if v != "" {
			c.props[k] = property{raw: v, file: "the options"}
		}
	}
	return c, nil
}

// Read makes a configuration of one file's content alone, such as one that Marshal wrote. Its includes are refused.
func Read(file string, data []byte, env func(string) (string, bool)) (*Conf, error) {
	c := blank(env, "")
	none := func(string) ([]byte, error) { return nil, errors.New("a shipped configuration includes no files") }
	if err := c.add(file, data, none); err != nil {
		return nil, err
	}
	return c, nil
}

func blank(env func(string) (string, bool), user string) *Conf {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	c := &Conf{props: make(map[string]property, len(defaults)), env: env, user: user}
	for k, v := range defaults {
		c.props[k] = property{raw: v}
	}
	return c
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// add puts a file's properties over those there are, final ones excepted.
func (c *Conf) add(file string, data []byte, read func(string) ([]byte, error)) error {
	p := &parser{read: read, dir: filepath.Dir(file)}
	if err := p.parse(file, data, 0); err != nil {
		return err
	}
	for _, e := range p.entries {
		name := e.name
		if now, ok := deprecated[name]; ok {
			name = now
		}
		old, had := c.props[name]
		if had && old.final {
			continue
		}
		if !e.hasValue {
			// An empty value leaves what an earlier file said. It can still make that final.
			if had && e.final {
				old.final = true
				c.props[name] = old
			}
			continue
		}
		c.props[name] = property{raw: e.value, file: e.file, final: e.final}
	}
	return nil
}

// Dir is the folder that was read, "" for a configuration that came from Read.
func (c *Conf) Dir() string { return c.dir }

// Origin names the file that set a key; "a default of Hadoop's" or "nowhere" if no file did.
func (c *Conf) Origin(key string) string {
	p, ok := c.props[key]
	switch {
	case !ok:
		return "nowhere"
	case p.file == "":
		return "a default of Hadoop's"
	}
	return p.file
}

// Keys returns every key that a file set, sorted.
func (c *Conf) Keys() []string {
	var ks []string
	for k, p := range c.props {
		if p.file != "" {
			ks = append(ks, k)
		}
	}
	sort.Strings(ks)
	return ks
}

// Marshal writes all that files set as one file with variables replaced, for processes that have no configuration of their own.
// Values that the filter refuses are left out.
func (c *Conf) Marshal(keep func(key string) bool) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration>\n")
	for _, k := range c.Keys() {
		if keep != nil && !keep(k) {
			continue
		}
		v, _, err := c.Lookup(k)
		if err != nil {
			return nil, err
		}
		b.WriteString("  <property><name>")
		_ = xml.EscapeText(&b, []byte(k))
		b.WriteString("</name><value>")
		_ = xml.EscapeText(&b, []byte(v))
		b.WriteString("</value></property>\n")
	}
	b.WriteString("</configuration>\n")
	return b.Bytes(), nil
}

// KeyError is a value that cannot be used.
type KeyError struct {
	Key, File, Value string
	Err              error
}

func (e *KeyError) Error() string {
	v := e.Value
	if len(v) > 80 {
		v = v[:80] + "…"
	}
	if key := strings.ToLower(e.Key); strings.Contains(key, "password") || strings.Contains(key, "secret") || strings.HasSuffix(key, "keypass") {
		v = "********"
	}
	return fmt.Sprintf("cannot use %s = %q of %s: %v", e.Key, v, e.File, e.Err)
}

func (e *KeyError) Unwrap() error { return e.Err }

func (c *Conf) bad(key, value string, err error) error {
	return &KeyError{Key: key, File: c.Origin(key), Value: value, Err: err}
}

// String returns a key's value, trimmed and with variables replaced; "" if it is not set.
func (c *Conf) String(key string) (string, error) {
	v, _, err := c.Lookup(key)
	return strings.TrimSpace(v), err
}
