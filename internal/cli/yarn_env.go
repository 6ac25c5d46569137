package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/conf"
)

// configured are the variables that options env.NAME set in every container.
func configured(c *conf.Config) map[string]string {
	env := map[string]string{}
	for name, text := range c.Variables("env.NAME") {
		env[name] = shellText(text)
	}
	return env
}

// variables is environ with those that options env.NAME set: the last of a name holds.
func variables(environ []string, c *conf.Config) []string {
	set := c.Variables("env.NAME")
	for _, name := range slices.Sorted(maps.Keys(set)) {
		environ = append(environ, name+"="+set[name])
	}
	return environ
}

// variableFlags turns --env.NAME=value and --env.NAME value, whose names no list of flags holds, into what --define takes.
func variableFlags(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		switch text, ok := strings.CutPrefix(args[i], "--env."); {
		case args[i] == "--":
			return append(out, args[i:]...)
		case !ok:
			out = append(out, args[i])
		case !strings.Contains(text, "=") && i+1 < len(args):
			i++
			out = append(out, "--define=env."+text+"="+args[i])
		default:
			out = append(out, "--define=env."+text)
		}
	}
	return out
}
