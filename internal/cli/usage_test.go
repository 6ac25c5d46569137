package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle"
)

// TestWrongUsage: whatever the verb, arguments that are too many and flags that do not exist are wrong usage, which a scheduler does not try again.
func TestWrongUsage(t *testing.T) {
	surplus := slices.Repeat([]string{"surplus"}, 9)
	for name, job := range map[string]*heddle.Job{"heddle": nil, "a job's program": heddle.NewJob("j")} {
		for _, verb := range pathsOf((&session{env: Env{Program: "heddle"}, job: job}).root()) {
			for _, wrong := range [][]string{surplus, {"--no-such-flag"}, {"-Z"}} {
				args := slices.Concat(verb, wrong)
				if got := command(t, job, nil, args...); got.code != exitUsage || !strings.HasPrefix(got.stderr, "heddle: ") {
					t.Errorf("%s: %q: exit code %d, want %d; stderr %s", name, args, got.code, exitUsage, got.stderr)
				}
			}
		}
	}
}

// pathsOf are the words for a command and all below it. A topic of the help is no verb.
func pathsOf(cmd *cobra.Command) (paths [][]string) {
	if cmd.HasParent() {
		paths = append(paths, strings.Fields(cmd.CommandPath())[1:])
	} else {
		paths = append(paths, nil)
	}
	for _, c := range cmd.Commands() {
		if c.IsAdditionalHelpTopicCommand() {
			continue
		}
		paths = append(paths, pathsOf(c)...)
	}
	return paths
}
