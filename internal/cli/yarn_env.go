package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/heddle-stream/heddle/conf"
)

// configured are the variables that yarn.env sets in every container.
func configured(c *conf.Config) map[string]string {
	env := map[string]string{}
	for _, item := range c.List("yarn.env") {
		name, text, _ := strings.Cut(item, "=")
		env[strings.TrimSpace(name)] = shellText(text)
	}
	return env
}

// checkVariables refuses what no container's environment can hold, and what is not for users to set.
func checkVariables(c *conf.Config) error {
	for _, item := range c.List("yarn.env") {
		name, _, ok := strings.Cut(item, "=")
		if name = strings.TrimSpace(name); !ok || !variable.MatchString(name) || strings.HasPrefix(name, "HEDDLE_") {
			return usage(fmt.Errorf("option yarn.env: %q is not NAME=VALUE with the name of a variable that is not heddle's own", item))
		}
	}
	return nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
