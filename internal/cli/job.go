package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/jobspec"
	"github.com/spf13/cobra"
)

// jobArg describes the argument of verbs that take a job.
func (s *session) jobArg() (use string, args cobra.PositionalArgs) {
	if s.job != nil {
		return "", exactArgs(0, "")
	}
	return " job.yaml", exactArgs(1, "a job file (- for standard input)")
}

// jobText is a job file.
type jobText struct {
	name string // as its author calls it
	data []byte
}

// loadJob returns the program's own job, or reads the job file that args name, with its text.
func (s *session) loadJob(args []string, c *conf.Config) (*heddle.Job, *jobText, error) {
	if s.job != nil {
		return s.job, nil, nil
	}
	name := args[0]
	var data []byte
	var err error
	if name == "-" {
		name = "standard input"
		data, err = io.ReadAll(s.env.Stdin)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, nil, usage(fmt.Errorf("cannot read the job: %w", err))
	}
	files := &jobFiles{dir: filepath.Dir(args[0]), read: map[string][]byte{}}
	job, err := readJob(name, data, c, files.file, func(text string) { fmt.Fprintln(s.env.Stderr, "heddle: warning: "+printable(text)) })
	return job, &jobText{name, files.attach(data)}, err
}

// parseJob makes a job of a job file's text, with which the files came along that it names.
func parseJob(name string, data []byte, c *conf.Config) (*heddle.Job, error) {
	text, file := attached(data)
	return readJob(name, text, c, file, nil)
}

// readJob makes a job of a job file's text. file reads the files that it names; warn, if not nil, is told what has no effect.
func readJob(name string, data []byte, c *conf.Config, file func(string) ([]byte, error), warn func(string)) (*heddle.Job, error) {
	job, err := jobspec.Load(name, data, jobspec.Options{Timezone: c.Text("timezone"), MaxParallelism: c.Int("max-parallelism"), ReadFile: file, Warn: warn})
	if err != nil {
		return nil, usage(err)
	}
	return job, nil
}

func compileOptions(c *conf.Config) jobgraph.Options {
	return jobgraph.Options{
		Parallelism:    c.Int("parallelism"),
		MaxParallelism: c.Int("max-parallelism"),
		NoChaining:     !c.Bool("chaining"),
	}
}

// compile checks the job and cuts it into vertices.
func compile(job *heddle.Job, c *conf.Config) (*jobgraph.Graph, error) {
	if err := tooParallel(job.Graph(), c); err != nil {
		return nil, err
	}
	g, err := jobgraph.Compile(job.Graph(), compileOptions(c))
	if err != nil {
		return nil, usage(err)
	}
	return g, nil
}

// tooParallel reports a parallelism of the whole job beyond its maximum once, and where it comes from, not for every operator.
func tooParallel(g *flow.Graph, c *conf.Config) error {
	par, where := g.Parallelism, "of the job"
	if v, ok := c.Value("parallelism"); par == 0 && ok {
		par, where = c.Int("parallelism"), "("+v.Origin()+")"
	}
	most, hint := g.MaxParallelism, "lower the one or raise the other"
	if most == 0 {
		most, hint = c.Int("max-parallelism"), fmt.Sprintf("lower it, or set --max-parallelism %d", par)
	}
	if par <= most || most <= 0 || par > jobgraph.MaxKeyGroups {
		return nil
	}
	return usage(fmt.Errorf("parallelism %d %s is more than the max parallelism %d", par, where, most), hint)
}

func (s *session) planCommand() *cobra.Command {
	use, args := s.jobArg()
	var dot, asJSON, grants bool
	var strategy, format string
	cmd := &cobra.Command{
		Use: "plan" + use, Short: "Show the job graph and the slots it needs, without running it", Args: args, ValidArgsFunction: s.completeJob,
		Long: `Show how a job would run: its operators chained into vertices, the parallelism of each, how records move
between them, and the slots it needs. With --agents or --strategy, show also which tasks would share which slots of which agents.
Nothing is started and nothing outside is asked. What run would refuse, plan refuses too.

With --grants, list instead what the job needs to be let to do: paths in HDFS, queue, topics, consumer groups, subjects of a schema registry, principals, and ports to
be reached. --format kafka-acls writes that as commands for Kafka's administrators, --format ranger as policies to import.`,
		Example: "  heddle plan" + use + "\n  heddle plan" + use + " --parallelism 4\n  heddle plan" + use + " --agents 5 --strategy evenly-spread\n  heddle plan" + use + " --dot | dot -Tsvg > job.svg\n  heddle plan" + use + " --target yarn --grants --format ranger > policies.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.job == nil {
				if ok, err := s.packaged(cmd.Context(), args); ok {
					return err
				}
			}
			if dot && asJSON {
				return usage(errors.New("--dot and --json exclude each other"))
			}
			if cmd.Flags().Changed("format") && !grants {
				return usage(errors.New("--format is for --grants"), "add --grants")
			}
			c, err := s.load()
			if err != nil {
				return err
			}
			job, _, err := s.loadJob(args, c)
			if err != nil {
				return err
			}
			g, err := compile(job, c)
			if err == nil {
				err = checkOptions(g, c)
			}
			switch {
			case err != nil:
				return err
			case grants && asJSON:
				return s.showGrants(job, c, grantsJSON)
			case grants:
				return s.showGrants(job, c, format)
			case dot:
				return s.printed(g.DOT)
			case asJSON:
				return g.JSON(s.env.Stdout)
			}
			if err := s.printPlan(g.Lines()); err != nil || strategy == "" && !given(c, "agents") {
				return err
			}
			return s.showPlacement(g, c, strategy)
		},
	}
	cmd.Flags().StringVar(&strategy, "strategy", "", "show the placement by this slot.selection: `default|evenly-spread`")
	s.queueFlag(cmd, "queue to submit to, for --grants (the same as --yarn.queue)")
	cmd.Flags().BoolVar(&grants, "grants", false, "list what the job needs to be let to do")
	cmd.Flags().StringVar(&format, "format", grantsText, "of --grants: `text|json|kafka-acls|ranger`")
	cmd.Flags().BoolVar(&dot, "dot", false, "print the graph in Graphviz's language")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printPlan prints lines that hold names of the job's author: none can draw on a terminal, or look like another line.
func (s *session) printPlan(lines []string) error {
	for i, line := range lines {
		lines[i] = printable(line) + "\n"
	}
	_, err := io.WriteString(s.env.Stdout, strings.Join(lines, ""))
	return err
}

// printed prints what write writes, without what could draw on a terminal.
func (s *session) printed(write func(io.Writer) error) error {
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	_, err := io.WriteString(s.env.Stdout, printableLines(b.String()))
	return err
}

func (s *session) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of job files, for editors", Args: exactArgs(0, ""),
		Long: `Print the JSON Schema of job files. Editors with a YAML language server complete and check by it:
put this line at the top of a job file:

  # yaml-language-server: $schema=heddle.schema.json`,
		Example: "  heddle schema > heddle.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := s.env.Stdout.Write(jobspec.Schema())
			return err
		},
	}
}
