package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sources says where [Load] looks. Its zero value loads nothing but defaults.
type Sources struct {
	File    string   // the one configuration file to read (--config); "": search
	Environ []string // the environment, "NAME=value" each
	Flags   []Flag   // in the order of the command line
	Ignore  []string // names of HEDDLE_ variables that are no options, beside those that Heddle itself uses
}

// Flag is one option set on the command line.
type Flag struct {
	Name, Text string
	Where      string // as it was written: "--agents" or "-D agents"
}

// SystemFile is the configuration file of the host, read before the user's own.
const SystemFile = "/etc/heddle/heddle.yaml"

// reserved are the variables that Heddle itself uses and that are no options.
var reserved = []string{
	"HEDDLE_CONF", "HEDDLE_CONF_DIR", "HEDDLE_HOME", "HEDDLE_OPTS",
	"HEDDLE_ROLE", "HEDDLE_ATTACHED", "HEDDLE_ATTEMPT", "HEDDLE_APP_DIR", "HEDDLE_AGENT_DIR", "HEDDLE_AGENT_ID", "HEDDLE_BENCH_ROLE",
}

// Load resolves a configuration: default < file < environment < flag.
//
// The file is Sources.File, else $HEDDLE_CONF, else $HEDDLE_CONF_DIR/heddle.yaml; one that is named must exist.
// If none is named, [SystemFile] and then heddle.yaml in the user's configuration directory are read,
// where they exist; the user's values win.
//
// All that is wrong is reported together.
func Load(r *Registry, src Sources) (*Config, error) {
	c := New(r)
	var errs []error
	for _, file := range src.files() {
		data, err := os.ReadFile(file.path)
		if errors.Is(err, fs.ErrNotExist) && !file.named {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot read configuration (%s): %w", file.why, err))
			continue
		}
		if err := c.SetYAML(file.path, data); err != nil {
			errs = append(errs, err)
		}
		c.checkMode(file.path)
	}
	errs = append(errs, c.setEnviron(src)...)
	for _, f := range src.Flags {
		if o, ok := r.Lookup(f.Name); ok && o.Secret {
			errs = append(errs, fmt.Errorf("option %s is a secret and cannot be set on the command line, where every user of this host can read it; set it in a configuration file or in %s", o.Name, o.Env()))
			continue
		}
		if err := c.Set(f.Name, f.Text, FromFlag, f.Where); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Where, err))
		}
	}
	c.setForeign(src.Environ)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// setForeign sets options that are unset by the variables of other programs. What such a variable says that Heddle can't do is no error:
// it may be meant for others.
func (c *Config) setForeign(environ []string) {
	set := map[string]string{}
	for _, line := range environ {
		if env, text, _ := strings.Cut(line, "="); text != "" {
			set[env] = text
		}
	}
	for _, o := range c.registry.options {
		text := set[o.Also]
		if o.Also == "" || text == "" || c.values[o.Name].Text != "" {
			continue
		}
		if err := c.Set(o.Name, text, FromEnvironment, o.Also); err != nil {
			c.warnings = append(c.warnings, fmt.Sprintf("environment variable %s is ignored: %v", o.Also, err))
		}
	}
}

// checkMode warns of a file with secrets that everybody can read.
func (c *Config) checkMode(path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o004 == 0 {
		return
	}
	for name := range c.Secrets() {
		if v := c.values[name]; strings.HasPrefix(v.Where, path+":") {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: every user of this host can read the secret %s; chmod 600 %s", v.Where, name, path))
		}
	}
}

func (c *Config) setEnviron(src Sources) (errs []error) {
	ignore := map[string]bool{}
	for _, name := range append(reserved, src.Ignore...) {
		ignore[name] = true
	}
	for _, line := range src.Environ {
		env, text, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(env, "HEDDLE_") || ignore[env] {
			continue
		}
		name, ok := c.registry.named(env)
		if !ok {
			errs = append(errs, c.registry.unknownEnv(env))
			continue
		}
		if err := c.Set(name, text, FromEnvironment, env); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", env, err))
		}
	}
	return errs
}

// named returns the name of the option that an environment variable sets.
func (r *Registry) named(env string) (string, bool) {
	if i, ok := r.envs[env]; ok {
		return r.options[i].Name, true
	}
	for _, o := range r.options {
		if word, ok := strings.CutPrefix(env, envName(o.stem())); o.Any && ok {
			return o.stem() + word, true
		}
	}
	return "", false
}

func (r *Registry) unknownEnv(env string) error {
	names := make([]string, 0, len(r.envs)+len(reserved))
	for _, o := range r.options {
		names = append(names, o.Env())
	}
	if n := Nearest(env, append(names, reserved...)); n != "" {
		return fmt.Errorf("environment variable %s: no option has this name; did you mean %s?", env, n)
	}
	return fmt.Errorf("environment variable %s: no option has this name; unset it, or see `heddle config` for all", env)
}

// candidate is a configuration file that may exist, or must if it was named.
type candidate struct {
	path, why string
	named     bool
}

func (s Sources) files() []candidate {
	getenv := func(name string) string {
		for _, line := range s.Environ {
			if text, ok := strings.CutPrefix(line, name+"="); ok {
				return text
			}
		}
		return ""
	}
	if s.File != "" {
		return []candidate{{s.File, "--config", true}}
	}
	if file := getenv("HEDDLE_CONF"); file != "" {
		return []candidate{{file, "$HEDDLE_CONF", true}}
	}
	if dir := getenv("HEDDLE_CONF_DIR"); dir != "" {
		return []candidate{{filepath.Join(dir, "heddle.yaml"), "$HEDDLE_CONF_DIR", true}}
	}
	files := []candidate{{SystemFile, "system", false}}
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		files = append(files, candidate{filepath.Join(dir, "heddle", "heddle.yaml"), "user", false})
	} else if home := getenv("HOME"); home != "" {
		files = append(files, candidate{filepath.Join(home, ".config", "heddle", "heddle.yaml"), "user", false})
	}
	return files
}

// ChildEnviron is environ without the variables that set options or roles: what a process started for
// an application inherits. It finds its configuration in the application directory, and no secret that
// was given in the environment travels on in one.
func ChildEnviron(environ []string) []string {
	var kept []string
	for _, line := range environ {
		if name, _, _ := strings.Cut(line, "="); !strings.HasPrefix(line, "HEDDLE_") && !foreignSecret(name) {
			kept = append(kept, line)
		}
	}
	return kept
}

// foreignSecret reports whether a variable of another program sets an option that is a secret.
func foreignSecret(name string) bool {
	return slices.ContainsFunc(builtin, func(o Option) bool { return o.Secret && o.Also == name && name != "" })
}
