package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
)

// webSecret is the name of the password of hdfs.http-user, in the containers' credentials.
const webSecret = "heddle.hdfs"

// overHTTP is how HDFS is spoken to over HTTP, as properties of Hadoop's configuration, which goes to containers. The password is not among them.
func overHTTP(c *conf.Config) map[string]string {
	if c == nil {
		return nil
	}
	return map[string]string{identity.KeyWebURI: strings.Join(c.List("hdfs.http-uri"), ","), identity.KeyWebUser: c.Text("hdfs.http-user")}
}

// webPassword is that of hdfs.http-user, "" if there is none.
func webPassword(c *conf.Config) (string, error) {
	password, file := c.Text("hdfs.http-password"), c.Text("hdfs.http-password-file")
	if password == "" && file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("cannot read hdfs.http-password-file: %w", err)
		}
		line, _, _ := strings.Cut(string(b), "\n")
		password = strings.TrimSuffix(line, "\r")
	}
	switch user := c.Text("hdfs.http-user"); {
	case user == "" && password != "":
		return "", errors.New("there is a password for hdfs.http-uri, and no hdfs.http-user")
	case user != "" && password == "":
		return "", errors.New("hdfs.http-user needs a password: set hdfs.http-password-file to a file that only you can read")
	case user != "" && len(c.List("hdfs.http-uri")) == 0:
		return "", errors.New("hdfs.http-user goes with hdfs.http-uri, which is not set")
	}
	return password, nil
}
