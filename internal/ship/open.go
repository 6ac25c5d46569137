package ship

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
)

// Options say where to stage.
type Options struct {
	Conf *hconf.Conf
	// HDFS is how to connect; its NameNodes are found in Conf. Its User is who we are.
	HDFS hdfs.Config
	// StagingDir is a folder, or the hdfs: URI of one; "": .heddle in the user's home on the default file system.
	StagingDir string
	// Of is the user whose folder it is; "": who we are. In that of another only files that are open to us can be read.
	Of string
	// Owners are users whose programs in StagingDir are trusted beside our own.
	Owners []string
	// Public lets nodes share programs among users. It needs a StagingDir.
	Public bool
}

// Open finds the staging folder and connects to its file system, which the caller closes.
func Open(o Options) (*Store, *hdfs.FS, error) {
	if o.Public && o.StagingDir == "" {
		return nil, nil, fmt.Errorf("cannot share programs among users from a home: set yarn.staging-dir to a folder for all")
	}
	of := cmp.Or(o.Of, o.HDFS.User)
	cluster, err := o.Conf.DefaultFS()
	uri, dir := splitURI(o.StagingDir)
	if uri != "" {
		if cluster, err = o.Conf.HDFS(o.StagingDir); err != nil {
			return nil, nil, fmt.Errorf("cannot use yarn.staging-dir %s: %w", o.StagingDir, err)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w; set yarn.staging-dir to a folder of an HDFS, such as hdfs://nameservice/heddle", err)
	}
	s := &Store{URI: cluster.URI, User: o.HDFS.User, Owners: o.Owners, Public: o.Public}
	if o.StagingDir == "" {
		home, err := Home(o.Conf, of)
		if err != nil {
			return nil, nil, err
		}
		s.Root = path.Join(home, ".heddle")
	} else {
		if !path.IsAbs(dir) {
			return nil, nil, fmt.Errorf("cannot use yarn.staging-dir %s: it must be an absolute path or a URI such as hdfs://nameservice/heddle", o.StagingDir)
		}
		s.Root, s.Provided = path.Join(dir, of), path.Join(dir, "bin")
	}
	cfg := o.HDFS
	cfg.NameNodes = cluster.NameNodes
	f, err := hdfs.Open(cfg)
	if err != nil {
		return nil, nil, err
	}
	s.FS = f
	return s, f, nil
}

// Home is a user's folder in HDFS.
func Home(c *hconf.Conf, user string) (string, error) {
	prefix, err := c.String("dfs.user.home.dir.prefix")
	if err != nil {
		return "", err
	}
	if prefix == "" {
		prefix = "/user"
	}
	return path.Join(prefix, user), nil
}

// splitURI cuts an hdfs: URI into that of the file system and the path in it. uri is "" for a path alone, and for hdfs:///path.
func splitURI(s string) (uri, name string) {
	u, err := url.Parse(s)
	if err != nil || !strings.Contains(s, "://") {
		return "", s
	}
	if u.Host == "" {
		return "", path.Clean(u.Path)
	}
	return u.Scheme + "://" + u.Host, path.Clean(u.Path)
}
