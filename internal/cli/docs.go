package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// reference is docs/cli.md: the help of every verb, in Markdown.
func reference() []byte {
	root := Command()
	var b bytes.Buffer
	fmt.Fprintf(&b, `# The heddle command

%s

A program that calls `+"`run.Main(job)`"+` has the same verbs; its `+"`run`"+` and `+"`plan`"+` take no job file.

Results go to standard output and talk to standard error. A terminal gets colour and tables, a pipe plain lines
with tabs, and `+"`--json`"+` gives what programs read. Every option of the configuration can be given to every verb
as a flag (`+"`--exchange.tls`, `-D exchange.tls=true`"+`); [configuration.md](configuration.md) lists them.

<!-- Generated from the verbs' help: change it there, then run "go test ./internal/cli -update". -->

## Exit codes

%s
`, root.Long, indent(exitCodesText))
	for _, c := range root.Commands() {
		verbReference(&b, c)
	}
	b.WriteString(completionReference)
	return b.Bytes()
}

func verbReference(b *bytes.Buffer, c *cobra.Command) {
	if !c.Runnable() || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	if !c.HasSubCommands() {
		long := c.Long
		if long == "" {
			long = c.Short + "."
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n", c.CommandPath(), paragraphs(long))
		if c.Example != "" {
			fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(c.Example, "  heddle", "heddle"))
		}
		flagReference(b, c)
	}
	for _, sub := range c.Commands() {
		verbReference(b, sub)
	}
}

func flagReference(b *bytes.Buffer, c *cobra.Command) {
	var rows []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "`--" + f.Name
		if kind != "" {
			name += " " + strings.ReplaceAll(kind, "|", `\|`)
		}
		name += "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s |", name, strings.ReplaceAll(usage, "|", `\|`)))
	})
	if len(rows) == 0 {
		return
	}
	slices.Sort(rows)
	fmt.Fprintf(b, "\n| flag | |\n| --- | --- |\n%s\n", strings.Join(rows, "\n"))
}

// paragraphs is text in Markdown: lines indented by two spaces become code.
func paragraphs(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") {
			line = "  " + line
		}
		b.WriteString(line)
	}
	return b.String()
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// completionReference stands in for the help of cobra's own verb.
const completionReference = `
## heddle completion

Print a script that lets a shell complete verbs, flags, options, job files and ids of applications: for bash, zsh, fish or
powershell. ` + "`heddle completion bash --help`" + ` tells where the shell looks for it.

` + "```sh" + `
source <(heddle completion bash)
heddle completion zsh > "${fpath[1]}/_heddle"
` + "```" + `
`

// Command returns the command with all its verbs, for what makes documents of it. It is not to be run.
func Command() *cobra.Command {
	s := &session{env: Env{Program: "heddle"}}
	s.out = newTerminal(s.env, &bytes.Buffer{})
	return s.root()
}
