package cli

import (
	"fmt"
	"os"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfsfiles"
)

// registerHDFS lets jobs of this process use paths such as hdfs:///data. The cluster is asked for with the first of them.
func registerHDFS(find func() (*hconf.Conf, hdfs.Config, error)) {
	heddle.RegisterFileSystem("hdfs", func() (heddle.FileSystem, error) {
		c, how, err := find()
		if err != nil {
			return nil, err
		}
		return hdfsfiles.New(c, how)
	})
}

// hdfsOfHost is HDFS by the Hadoop configuration of this host.
func (s *session) hdfsOfHost() (*hconf.Conf, hdfs.Config, error) {
	user := s.userOfHadoop()
	c, err := hconf.Load(hconf.Options{Env: s.lookup, User: user, Need: []string{"core-site.xml"}, Also: overHTTP(s.opts)})
	if err != nil {
		return nil, hdfs.Config{}, fmt.Errorf("%w; it says where HDFS is", err)
	}
	id, err := s.whoami(c, user, s.opts)
	if err != nil {
		return nil, hdfs.Config{}, err
	}
	how, err := id.HDFS()
	return c, how, err
}

// userOfHadoop is who we are on a cluster that believes it; "" if nothing says so.
func (s *session) userOfHadoop() string {
	for _, name := range []string{"HADOOP_USER_NAME", "USER", "LOGNAME"} {
		if text := s.env.Getenv(name); text != "" {
			return text
		}
	}
	if os.Getuid() == 0 {
		return "root"
	}
	return ""
}
