package cli

import (
	"errors"
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
	getenv := func(name string) (string, bool) {
		text := s.env.Getenv(name)
		return text, text != ""
	}
	user := s.userOfHadoop()
	if user == "" {
		return nil, hdfs.Config{}, errors.New("cannot tell which user of the cluster you are; set HADOOP_USER_NAME")
	}
	c, err := hconf.Load(hconf.Options{Env: getenv, User: user, Need: []string{"core-site.xml"}})
	if err != nil {
		return nil, hdfs.Config{}, fmt.Errorf("%w; it says where HDFS is", err)
	}
	byName, err := c.Bool("dfs.client.use.datanode.hostname", false)
	return c, hdfs.Config{User: user, DatanodeHostname: byName}, err
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
