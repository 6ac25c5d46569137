package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/conf"
	"github.com/spf13/cobra"
)

// Env is what a command touches of the outside world.
type Env struct {
	Program    string   // how the user calls it, for help and hints: "heddle"
	Args       []string // without the program's name; the other roles are started with them too
	Rest       []string // those of Args that the program's own flags left over; nil: all
	Environ    []string // "NAME=value" each
	Stdin      io.Reader
	Stdout     io.Writer
	Stderr     io.Writer
	Executable string           // path of this very program, started again for the other roles
	Signals    <-chan os.Signal // interrupt, terminate and hang-up; nil: none ever come
}

// System is the environment of this process. Interrupt, terminate and, unless it is ignored as by nohup, the hang-up of
// the terminal go to Env.Signals until stop is called.
func System() (env Env, stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	return Env{
		Program: filepath.Base(os.Args[0]), Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Executable: executable, Signals: signals,
	}, func() { signal.Stop(signals) }
}

// Getenv returns the value of a variable, "" if it is not set.
func (e Env) Getenv(name string) string {
	for _, line := range e.Environ {
		if text, ok := strings.CutPrefix(line, name+"="); ok {
			return text
		}
	}
	return ""
}

// Main runs the role or the verb that env asks for and returns the exit code.
// job is the program's own job; nil for the heddle command, whose jobs are YAML files.
func Main(ctx context.Context, env Env, job *heddle.Job) int {
	s := &session{env: env, job: job, out: newTerminal(env, env.Stdout)}
	if env.Getenv(bench.RoleEnv) != "" {
		return s.report(bench.ExchangePeer(ctx))
	}
	if err := shut(); err != nil {
		return s.report(err)
	}
	registerHDFS(s.hdfsOfHost)
	if role := env.Getenv("HEDDLE_ROLE"); role != "" {
		return s.report(s.runRole(ctx, role))
	}
	root := s.root()
	args := env.Args
	if env.Rest != nil {
		args = env.Rest
	}
	root.SetArgs(variableFlags(args))
	return s.report(root.ExecuteContext(ctx))
}

// session is one run of the command.
type session struct {
	env    Env
	job    *heddle.Job // the program's own, or nil
	out    *terminal
	flags  []conf.Flag  // options set on the command line, in order
	config string       // --config
	opts   *conf.Config // as it was resolved last; nil: not yet

	onSignal string // --on-signal of run
}

// root is the command with all its verbs.
func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:   s.env.Program,
		Short: "Stream processing on YARN: jobs in Go or YAML, no Java",
		Long: `Heddle runs stream-processing jobs, written in Go or in YAML.

Where a job runs and with what is configuration, not code: see "` + s.env.Program + ` config".`,
		Args:              cobra.ArbitraryArgs,
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return s.unknownVerb(cmd, args[0])
		},
	}
	root.SetIn(s.env.Stdin)
	root.SetOut(s.env.Stdout)
	root.SetErr(s.env.Stderr)
	root.CompletionOptions.HiddenDefaultCmd = false
	s.addOptionFlags(root)
	root.SetFlagErrorFunc(s.flagError)
	root.AddCommand(s.verbs()...)
	root.AddCommand(exitCodesTopic())
	s.strict(root)
	root.SetUsageTemplate(usageTemplate)
	root.SetVersionTemplate("heddle {{.Version}}\n")
	return root
}

func (s *session) verbs() []*cobra.Command {
	verbs := []*cobra.Command{
		s.runCommand(), s.planCommand(),
		s.listCommand(), s.statusCommand(), s.topCommand(), s.historyCommand(), s.logsCommand(), s.logLevelCommand(), s.profileCommand(), s.tokensCommand(), s.exporterCommand(), s.cancelCommand(), s.killCommand(), s.waitCommand(), s.agentCommand(),
		s.doctorCommand(), s.explainCommand(), s.nodesCommand(), s.queuesCommand(), s.gcCommand(),
		s.configCommand(), s.versionCommand(),
	}
	if s.job == nil { // a program that is a job has no use for job files and other jobs
		verbs = append(verbs, s.demoCommand(), s.schemaCommand(), s.benchCommand())
	}
	return verbs
}

// strict has cobra's own verbs refuse what is wrong as ours do.
func (s *session) strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			show := c.Run
			c.RunE = func(c *cobra.Command, args []string) error {
				if of, rest, err := root.Find(args); err != nil {
					return usage(err)
				} else if len(rest) > 0 {
					return usage(fmt.Errorf("there is no help on %q", strings.Join(args, " ")), fmt.Sprintf("`%s --help` is there", of.CommandPath()))
				}
				show(c, args)
				return nil
			}
		case "completion":
			c.Args = maxArgs(0)
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			for _, shell := range c.Commands() {
				shell.Args = maxArgs(0)
			}
		}
	}
}

// unknownVerb names the nearest verb.
func (s *session) unknownVerb(root *cobra.Command, name string) error {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	hint := fmt.Sprintf("`%s help` lists the verbs", s.env.Program)
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		hint = fmt.Sprintf("to run a job: %s run %s", s.env.Program, name)
	} else if n := conf.Nearest(name, names); n != "" {
		hint = fmt.Sprintf("did you mean `%s %s`?", s.env.Program, n)
	}
	return usage(fmt.Errorf("there is no verb %q", name), hint)
}

// load resolves the configuration for a verb.
func (s *session) load() (*conf.Config, error) {
	r, err := registry()
	if err != nil {
		return nil, err
	}
	c, err := conf.Load(r, conf.Sources{File: s.config, Environ: s.env.Environ, Flags: s.flags})
	if err != nil {
		return nil, usage(err)
	}
	for _, w := range c.Warnings() {
		fmt.Fprintln(s.env.Stderr, "heddle: warning: "+w)
	}
	if c.Bool("debuggable") || c.Text("target") == "inproc" {
		if err := reopen(); err != nil {
			return nil, fmt.Errorf("cannot let debuggers look into this process: %w", err)
		}
	}
	s.opts = c
	return c, nil
}

// report prints err, once, and returns the exit code that it stands for. Whatever is in an error's text, from
// anybody's code or data, it can't draw on a terminal.
func (s *session) report(err error) int {
	if err == nil {
		return exitOK
	}
	code, hints := exitFailed, []string(nil)
	if e, ok := errors.AsType[*exitError](err); ok {
		if e.err == nil {
			return e.code
		}
		code, hints = e.code, e.hints
	}
	for i, line := range strings.Split(strings.TrimRight(err.Error(), "\n"), "\n") {
		if i == 0 || !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			line = "heddle: " + line
		}
		fmt.Fprintln(s.env.Stderr, printable(line))
	}
	for _, hint := range hints {
		fmt.Fprintln(s.env.Stderr, "  "+hint)
	}
	return code
}
