package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// Files that options name, such as a trust store, are on the host where the application is submitted. To processes on other hosts they travel with the
// values of secret options, each under the option's name with fileSecret before it; what a file of Kafka's properties names in
// turn is behind a further #. At the other end they are written for the process alone, and the options name what was written.
const (
	fileSecret     = "file:"
	optionFilesDir = "option-files"
	maxOptionFiles = 512 << 10 // all of them together: YARN keeps them with the application's state
)

// optionFile is the content of a secret that is a file.
type optionFile struct {
	Path string `json:"path"` // where it was
	Data []byte `json:"data"`
}

// settings are the values of secret options and, if others hosts are to have them, the files that options name. absent tells of those
// that are not here: they must be on every host.
func settings(c *conf.Config, files bool) (out map[string]string, absent []string, err error) {
	out = c.Secrets()
	size := 0
	for _, v := range c.Values() {
		if !v.Option.File || v.Text == "" {
			continue
		}
		data, err := os.ReadFile(v.Text)
		if errors.Is(err, fs.ErrNotExist) {
			absent = append(absent, "the file of "+v.Option.Name)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read the file of %s (%s): %w", v.Option.Name, v.Origin(), err)
		}
		if path, err := filepath.Abs(v.Text); err == nil && path != v.Text { // roles work in other directories
			if err := c.Set(v.Option.Name, path, v.Layer, v.Where); err != nil {
				return nil, nil, err
			}
		}
		if !files {
			continue
		}
		all := map[string]optionFile{v.Option.Name: {v.Text, data}}
		if v.Option.Name == "kafka.properties" {
			lacking, err := filesNamed(data, all)
			if err != nil {
				return nil, nil, err
			}
			for _, path := range lacking {
				absent = append(absent, path+", which kafka.properties names,")
			}
		}
		for name, f := range all {
			if size += len(f.Data); size > maxOptionFiles {
				name = strings.Replace(name, "#", ", which names ", 1)
				return nil, nil, fmt.Errorf("cannot send along %s, the file of %s: together such files may have at most %d KiB; put it on every host, under a path that is not here",
					f.Path, name, maxOptionFiles>>10)
			}
			text, err := json.Marshal(f)
			if err != nil {
				return nil, nil, err
			}
			out[fileSecret+name] = string(text)
		}
	}
	return out, absent, nil
}

// warnAbsent warns of files that options name and that are not here.
func (s *session) warnAbsent(absent []string, hosts string) {
	for _, what := range absent {
		fmt.Fprintf(s.env.Stderr, "heddle: warning: %s is not on this host: it must be on all %s\n", what, hosts)
	}
}

// inProperties finds what a file of Kafka's properties names.
var inProperties = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^[ \t]*ssl\.(?:trust|key)store\.location[ \t]*[=: \t][ \t]*(\S.*?)[ \t]*$`),
	regexp.MustCompile(`keyTab[ \t]*=[ \t]*"([^"]+)"`),
	regexp.MustCompile(`keyTab[ \t]*=[ \t]*([^\s";]+)`),
}

// filesNamed adds the files that properties name, and returns the paths of those that are not here.
func filesNamed(properties []byte, all map[string]optionFile) (absent []string, err error) {
	for _, re := range inProperties {
		for _, m := range re.FindAllSubmatch(properties, -1) {
			path := string(m[1])
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				absent = append(absent, path)
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("cannot read a file that kafka.properties names: %w", err)
			}
			all["kafka.properties#"+path] = optionFile{path, data}
		}
	}
	return absent, nil
}

// renameFiles puts new paths in place of those that properties name, and changes nothing else of them: one name may be a part of another.
func renameFiles(properties string, moved map[string]string) string {
	var names [][2]int
	for _, re := range inProperties {
		for _, m := range re.FindAllStringSubmatchIndex(properties, -1) {
			if moved[properties[m[2]:m[3]]] != "" {
				names = append(names, [2]int{m[2], m[3]})
			}
		}
	}
	slices.SortFunc(names, func(a, b [2]int) int { return b[0] - a[0] })
	for _, n := range names { // from the end, so that what is before stays where it is
		properties = properties[:n[0]] + moved[properties[n[0]:n[1]]] + properties[n[1]:]
	}
	return properties
}

// restoreConf reads a configuration back, with the secrets that belong to it. Files among these are written below dir.
func restoreConf(r *conf.Registry, dir, file string, data []byte, options map[string]string) (*conf.Config, error) {
	values := maps.Clone(options)
	maps.DeleteFunc(values, func(name, _ string) bool { return strings.HasPrefix(name, fileSecret) })
	c, err := conf.Restore(r, file, data, values)
	if err != nil {
		return nil, err
	}
	return c, writeFiles(c, filepath.Join(dir, optionFilesDir), shippedFiles(options))
}

// shippedFiles are the files among secrets, by name.
func shippedFiles(options map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range options {
		if strings.HasPrefix(name, fileSecret) {
			out[name] = text
		}
	}
	return out
}

// writeFiles writes files that came along, and makes options name them. What others name is written before these.
func writeFiles(c *conf.Config, dir string, secrets map[string]string) error {
	if len(secrets) == 0 {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot write the files that came along: %w", err)
	}
	moved := map[string]string{} // from where they were to where they are
	names := slices.Sorted(maps.Keys(secrets))
	slices.SortStableFunc(names, func(a, b string) int { return strings.Count(b, "#") - strings.Count(a, "#") })
	for i, secret := range names {
		var f optionFile
		option, inner, isInner := strings.Cut(strings.TrimPrefix(secret, fileSecret), "#")
		if err := json.Unmarshal([]byte(secrets[secret]), &f); err != nil {
			return fmt.Errorf("cannot read the file of %s that came along: %w", option, err)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(f.Path)))
		if option == "kafka.properties" && !isInner {
			f.Data = []byte(renameFiles(string(f.Data), moved))
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			return fmt.Errorf("cannot write the file of %s that came along: %w", option, err)
		}
		if isInner {
			moved[inner] = path
			continue
		}
		v, _ := c.Value(option)
		if err := c.Set(option, path, v.Layer, v.Where+", sent along from "+f.Path); err != nil {
			return fmt.Errorf("cannot use the file of %s that came along: %w", option, err)
		}
	}
	return nil
}

// agentSecrets are the secrets that agents get: values of options, and the files that came along with the application.
func agentSecrets(c *conf.Config, sec secrets) map[string]string {
	out := c.Secrets()
	maps.Copy(out, shippedFiles(sec.Options))
	if keepsKafkaKeytab(c) {
		delete(out, fileSecret+kafka.OptKerberosKeytab)
	}
	return out
}
