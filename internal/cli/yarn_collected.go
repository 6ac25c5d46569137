package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/hadoop/collected"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// collectedLogs are the logs of an application that is over, as NodeManagers put them into HDFS.
type collectedLogs struct {
	app   yarnid.Application
	user  string            // whose it is
	names map[string]string // of containers, as they say themselves
	seen  map[string]bool   // containers of which something is printed
}

// print prints the last lines of each collected log.
func (c *collectedLogs) print(ctx context.Context, s *session, h *hadoop, lines int) error {
	var failures []error
	for _, root := range logRoots(h.conf) {
		failures = append(failures, c.printBelow(ctx, s, h, root, lines))
	}
	return errors.Join(failures...)
}

// keyOfLogs are the settings of where logs go, of which each format may have one of its own.
var keyOfLogs = regexp.MustCompile(`^yarn\.log-aggregation\.[^.]+\.remote-app-log-dir$`)

// logRoots are the folders that logs are collected in.
func logRoots(c *hconf.Conf) []string {
	const usual = "yarn.nodemanager.remote-app-log-dir"
	root, err := c.String(usual)
	if err != nil || root == "" {
		root = "/tmp/logs" // as Hadoop has it
	}
	roots := []string{root}
	for _, key := range c.Keys() {
		if keyOfLogs.MatchString(key) {
			if root, err := c.String(key); err == nil && root != "" && !slices.Contains(roots, root) {
				roots = append(roots, root)
			}
		}
	}
	return roots
}

// printBelow prints what is in one of the folders.
func (c *collectedLogs) printBelow(ctx context.Context, s *session, h *hadoop, root string, lines int) error {
	f, root, err := h.openAt(root)
	if err != nil {
		return err
	}
	defer f.Close()
	mine := path.Join(root, c.user)
	kinds, err := f.List(mine)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission) && h.user != c.user:
		return fmt.Errorf("HDFS shows the collected logs of %s to nobody but it: %w", c.user, err)
	case err != nil:
		return err
	}
	for _, kind := range kinds {
		dir := path.Join(kind.Path, c.app.String())
		if strings.HasPrefix(path.Base(kind.Path), "bucket-") { // of Hadoop 3.3 and later
			dir = path.Join(kind.Path, fmt.Sprintf("%04d", c.app.Number%10000), c.app.String())
		}
		files, err := f.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, file := range files {
			if file.Dir || strings.HasSuffix(file.Path, ".tmp") { // one that is being written
				continue
			}
			if err := c.printFile(ctx, s, f, file, lines); err != nil {
				return fmt.Errorf("cannot read the logs in %s: %w", file.Path, err)
			}
		}
	}
	return nil
}

// openAt opens the file system of a path, which is HDFS's, and returns the path in it.
func (h *hadoop) openAt(uri string) (*hdfs.FS, string, error) {
	where, err := h.conf.DefaultFS()
	if scheme, rest, ok := strings.Cut(uri, "://"); ok {
		authority, dir, _ := strings.Cut(rest, "/")
		if uri = "/" + dir; scheme != "hdfs" {
			return nil, "", fmt.Errorf("cannot read what is collected in %s://%s: only HDFS is known here", scheme, authority)
		}
		if authority != "" {
			where, err = h.conf.HDFS("hdfs://" + authority)
		}
	}
	if err != nil {
		return nil, "", err
	}
	how, err := h.hdfs()
	if err != nil {
		return nil, "", err
	}
	how.NameNodes = where.NameNodes
	f, err := hdfs.Open(how)
	return f, uri, err
}

// headOfLog is how much of a log is looked at for who writes it. An agent says it first, as text or as JSON.
const headOfLog = 4096

var startOfAgent = regexp.MustCompile(`agent starts.{0,200}\bagent"?[=:]"?([\w.-]+)`)

// printFile prints the logs of a node's containers.
func (c *collectedLogs) printFile(ctx context.Context, s *session, f *hdfs.FS, file hdfs.Info, lines int) error {
	open := func(at int64) (io.ReadCloser, error) { return f.OpenAt(ctx, file.Path, at) }
	return collected.Each(collected.Source{Size: file.Size, Open: open}, func(l collected.Log) error {
		if l.Name != "stdout" && l.Name != "stderr" { // others are of YARN's own
			return nil
		}
		k, err := yarnid.ParseContainer(l.Container)
		if err != nil {
			return err
		}
		in := bufio.NewReader(l)
		head, _ := in.Peek(int(min(l.Size, headOfLog))) // what can't be read is told below
		if m := startOfAgent.FindSubmatch(head); m != nil {
			c.names[l.Container] = string(m[1])
		}
		if lines > 0 && l.Size > logWindow {
			if _, err := io.CopyN(io.Discard, in, l.Size-logWindow); err != nil {
				return err
			}
		}
		n, err := s.printLog(&yarnLog{name: c.nameOf(k), container: k, file: l.Name}, in, lines)
		c.seen[l.Container] = c.seen[l.Container] || n > 0
		return err
	})
}

// nameOf is who wrote a container's log: YARN starts the ApplicationMaster in the first container of an attempt.
func (c *collectedLogs) nameOf(k yarnid.Container) string {
	if name := c.names[k.String()]; name != "" {
		return name
	}
	if k.Number == 1 {
		return "appmaster"
	}
	return k.String()
}
