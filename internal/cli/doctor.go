package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/doctor"
	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/yarnclient"
)

func (s *session) doctorCommand() *cobra.Command {
	use, args := " [job.yaml]", maxArgs(1)
	if s.job != nil {
		use, args = "", exactArgs(0, "")
	}
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use: "doctor" + use, Short: "Look whether a cluster has all that a job needs, and say how to mend what is wrong", Args: args, ValidArgsFunction: s.completeJob,
		Long: `Look whether all is there that a job needs: Hadoop's configuration, Kerberos, the KDCs and the clock, the NameNodes and ResourceManagers, queue, containers,
staging folder, tokens, Kafka, the schema registry and the collector of traces. With a job, its paths, topics, consumer groups and subjects too: whether
they are there, and whether we may use them.

Each check says what was found, and, where it is not well, what that means and how to mend it. A check whose precondition failed is skipped. Nothing stays
behind: the file that is written into the staging folder is removed, tokens are cancelled, topics are not made, groups not joined.

Hadoop is looked at if the target is yarn, if a configuration of Hadoop's is found, or if the job uses HDFS. The exit code is 3 if a check failed, else 0.`,
		Example: "  heddle doctor\n  heddle doctor" + use + " --queue etl\n  heddle doctor --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.job == nil && len(args) > 0 {
				if ok, err := s.packaged(cmd.Context(), args); ok {
					return err
				}
			}
			return s.doctor(cmd.Context(), args, asJSON, verbose)
		},
	}
	s.queueFlag(cmd, "queue to look at (the same as --yarn.queue)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "say of each check what was tried, and how long it took")
	return cmd
}

// queueFlag adds --queue to a verb.
func (s *session) queueFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().Func("queue", usage, func(text string) error {
		s.flags = append(s.flags, conf.Flag{Name: "yarn.queue", Text: text, Where: "--queue"})
		return nil
	})
}

func (s *session) doctor(ctx context.Context, args []string, asJSON, verbose bool) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	cfg, err := s.doctorConfig(args, c)
	if err != nil {
		return err
	}
	told := map[string]bool{} // reasons for which nothing was looked at
	tell := func(r doctor.Result) {
		if s.out.tty && !verbose && r.Status == verdict.Skipped {
			if told[r.Means] {
				return
			}
			told[r.Means] = true
		}
		s.tellResult(r, verbose)
	}
	if asJSON {
		tell = nil
	}
	results := doctor.Run(ctx, cfg, tell)
	if asJSON {
		if err := s.out.json(results); err != nil {
			return err
		}
	} else if err := s.summarize(results); err != nil {
		return err
	}
	if doctor.Failed(results) {
		return &exitError{code: exitPrecondition} // it has been told
	}
	return nil
}

// doctorConfig says what is to be looked at for a configuration, and a job if one is named.
func (s *session) doctorConfig(args []string, c *conf.Config) (doctor.Config, error) {
	cfg := doctor.Config{Env: s.lookup, ConfDir: c.Text("yarn.conf-dir"), Keytab: c.Text("kerberos.keytab"), Principal: c.Text("kerberos.principal"), Queue: c.Text("yarn.queue"),
		Label: c.Text("yarn.node-label"), StagingDir: c.Text("yarn.staging-dir"), FileSystems: c.List("yarn.file-systems")}
	cfg.HTTP = overHTTP(c)
	cfg.HTTPPassword, cfg.HTTPErr = webPassword(c)
	var err error
	if cfg.Needs, err = s.jobNeeds(args, c); err != nil {
		return cfg, err
	}
	cfg.User, _ = s.hadoopUser(c) // elsewhere the ticket says it; where nobody does, a check tells
	cfg.Hadoop, cfg.NoHadoop = s.wantsHadoop(c, cfg.Needs)
	cfg.Kafka = s.withTokens(kafkaClusters(c, cfg.Needs), c)
	if c.IsSet("schema-registry.urls") || slices.ContainsFunc(cfg.Needs, func(n flow.Need) bool { return n.Kind == flow.NeedSubject }) {
		cfg.Registry = c.Option
	}
	set, err := s.telemetrySettings(c)
	if err != nil {
		return cfg, err
	}
	cfg.Collector = set.Endpoint
	cfg.Fit = func(app yarnclient.NewApp) (string, error) { return s.fits(c, app) }
	return cfg, nil
}

// jobNeeds are what the job needs, if one is named.
func (s *session) jobNeeds(args []string, c *conf.Config) ([]flow.Need, error) {
	if s.job == nil && len(args) == 0 {
		return nil, nil
	}
	job, _, err := s.loadJob(args, c)
	if err != nil {
		return nil, err
	}
	g, err := compile(job, c)
	if err != nil {
		return nil, err
	}
	return needsOf(job.Graph(), g), nil
}

// needsOf are those of a graph that compiles.
func needsOf(g *flow.Graph, _ *jobgraph.Graph) (out []flow.Need) {
	for _, n := range g.Nodes {
		for _, need := range n.Needs {
			if !slices.Contains(out, need) {
				out = append(out, need)
			}
		}
	}
	return out
}

// wantsHadoop reports whether a cluster is meant, and why not.
func (s *session) wantsHadoop(c *conf.Config, needs []flow.Need) (bool, string) {
	if c.Text("target") == "yarn" || c.Text("yarn.conf-dir") != "" {
		return true, ""
	}
	for _, n := range needs {
		if n.Kind == flow.NeedPath && strings.HasPrefix(n.Name, "hdfs://") {
			return true, ""
		}
	}
	if _, _, err := hconf.FindDir(s.lookup); err != nil {
		return false, "the target is " + c.Text("target") + ", and there is no configuration of Hadoop's"
	}
	return true, ""
}

// kafkaClusters are the configured one and those that the job's connectors name.
func kafkaClusters(c *conf.Config, needs []flow.Need) (out []doctor.KafkaCluster) {
	ats := map[string]bool{}
	for _, n := range needs {
		if n.Kind == flow.NeedTopic || n.Kind == flow.NeedGroup {
			ats[n.At] = true
		}
	}
	if c.IsSet("kafka.brokers") || c.IsSet("kafka.properties") {
		ats[""] = true
	}
	for _, at := range slices.Sorted(maps.Keys(ats)) {
		k := doctor.KafkaCluster{At: at}
		k.Config, k.Err = kafka.FromOptions(c.Option, kafka.SplitList(at))
		if k.Err == nil && len(k.Config.Brokers) == 0 {
			k.Err = errors.New("the job reads or writes topics, and no brokers are configured: set kafka.brokers")
		}
		out = append(out, k)
	}
	return out
}

// fits reports whether the configured containers fit into the cluster's, and what helps if not.
func (s *session) fits(c *conf.Config, app yarnclient.NewApp) (fix string, err error) {
	hc, err := hconf.Load(hconf.Options{Dir: c.Text("yarn.conf-dir"), Env: s.lookup})
	if err == nil {
		_, err = containerSizes(c, hc, app)
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return strings.Join(e.hints, "; "), e.err
	}
	return "", err
}

var statusColours = map[verdict.Status]string{verdict.Pass: green, verdict.Warn: yellow, verdict.Fail: red, verdict.Skipped: dim}

// tellResult prints the outcome of one check: for people in lines below each other, in a pipe in one line with tabs.
func (s *session) tellResult(r doctor.Result, verbose bool) {
	if !s.out.tty {
		_ = s.out.table(nil, [][]string{{string(r.Status), r.Check, dash(r.Diagnosis), r.Means, dash(r.Fix)}})
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", s.out.paint(statusColours[r.Status], fmt.Sprintf("%-7s", r.Status)), s.out.paint(bold, fmt.Sprintf("%-28s", r.Title)), printable(r.Means))
	if verbose && r.Tried != "" {
		fmt.Fprintf(&b, "         tried: %s (%d ms)\n", printable(r.Tried), r.Millis)
	}
	if r.Fix != "" {
		fmt.Fprintf(&b, "         to mend it: %s\n", printable(r.Fix))
	}
	_, _ = s.env.Stdout.Write([]byte(b.String()))
}

// summarize says in a line how many checks ended how. In a pipe there is none.
func (s *session) summarize(rs []doctor.Result) error {
	if !s.out.tty {
		return nil
	}
	n := map[verdict.Status]int{}
	for _, r := range rs {
		n[r.Status]++
	}
	var parts []string
	for _, st := range []verdict.Status{verdict.Fail, verdict.Warn, verdict.Pass, verdict.Skipped} {
		if n[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[st], cmp.Or(map[verdict.Status]string{verdict.Fail: "failed", verdict.Warn: "to look at", verdict.Pass: "well"}[st], "skipped")))
		}
	}
	_, err := fmt.Fprintln(s.env.Stdout, "\n"+strings.Join(parts, ", "))
	return err
}
