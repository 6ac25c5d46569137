package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/spf13/cobra"
)

// runFlags are the flags of run that are no options.
type runFlags struct {
	detach, keep, quiet, timings, json bool
	ship                               []string // what goes along to YARN
}

func (s *session) runCommand() *cobra.Command {
	use, args := s.jobArg()
	var f runFlags
	cmd := &cobra.Command{
		Use: "run" + use, Short: "Run a job", Args: args, ValidArgsFunction: s.completeJob,
		Long: `Run a job and wait until it ends, showing how it goes. Ctrl-C cancels it and waits for that; a second one
kills it. With --timeout, the command stops waiting after that time, and the job goes on.

In the place of a job file stands the folder of a Go program that is a job, such as ./myjob: it is built and run, with the same flags.

With the target local, an ApplicationMaster and agents run as processes on this host. Their directory is removed
when the job has finished or was cancelled; of a job that failed, or that --detach left to itself, it is kept, for its
logs. --keep keeps it in any case. Of all that ended, the directories of the newest 10 are kept.`,
		Example: "  heddle run" + use + " --parallelism 4\n  heddle run" + use + " --agents 3 --agent.slots 4 --exchange.tls\n" +
			"  heddle run" + use + " --detach\n  heddle run" + use + " --target inproc",
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.job == nil {
				if ok, err := s.packaged(cmd.Context(), args); ok {
					return err
				}
			}
			return s.run(cmd.Context(), args, f)
		},
	}
	cmd.Flags().BoolVar(&f.detach, "detach", false, "start the job, print its id, and leave it to itself")
	cmd.Flags().StringVar(&s.onSignal, "on-signal", "cancel", "what an interrupt does to an application on YARN: `cancel|detach`")
	cmd.Flags().Func("queue", "queue to submit to, with target yarn (the same as --yarn.queue)", func(text string) error {
		s.flags = append(s.flags, conf.Flag{Name: "yarn.queue", Text: text, Where: "--queue"})
		return nil
	})
	cmd.Flags().StringArrayVar(&f.ship, "ship", nil, "with target yarn, send along a `file`, folder, archive or hdfs:// URI; it is in the working directory of the ApplicationMaster and of agents, archives and folders unpacked; #name behind it gives it another name; can be repeated")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "keep the application's directory also when the job has finished")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON to standard output when the job has ended, however it did")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	cmd.Flags().BoolVar(&f.timings, "timings", false, "print how long each phase of the start took")
	return cmd
}

func (s *session) run(ctx context.Context, args []string, f runFlags) error {
	times := newTimings()
	c, err := s.load()
	if err != nil {
		return err
	}
	job, text, err := s.loadJob(args, c)
	if err != nil {
		return err
	}
	plan, err := compile(job, c)
	if err != nil {
		return err
	}
	if f.json && prints(plan) {
		return usage(errors.New("--json writes to standard output, and so does the job: write to files, or leave --json out"))
	}
	times.mark("job loaded")
	if len(f.ship) > 0 && c.Text("target") != "yarn" {
		return usage(errors.New("--ship goes with the target yarn: elsewhere, processes run on this host, or where they were started"))
	}
	if c.Text("target") == "inproc" {
		if f.detach {
			return usage(errors.New("--detach needs processes of their own: it does not go with the target inproc"))
		}
		return s.runInProcess(ctx, c, job, plan, f)
	}
	if err := checkOptions(plan, c); err != nil {
		return err
	}
	if err := s.checkTelemetry(c); err != nil {
		return err
	}
	if c.Text("target") == "yarn" {
		return s.runYARN(ctx, c, plan, outside{needsOf(job.Graph(), plan), endless(job.Graph())}, text, f, times)
	}
	return s.runLocal(ctx, c, plan, text, f, times)
}

// localAgents is how many agents the target local starts at most where agents.max sets no limit:
// beyond it, a typing error in a parallelism is likelier than such a host.
const localAgents = 64

// clusterAgents is how many agents a cluster is asked for at most where agents.max sets no limit.
const clusterAgents = 10_000

// mostAgents is the limit on agents of this host.
func mostAgents(c *conf.Config) int {
	if n := c.Int("agents.max"); n > 0 {
		return n
	}
	if c.Text("target") == "yarn" {
		return max(clusterAgents, c.Int("agents"))
	}
	return max(localAgents, c.Int("agents"))
}

// enoughAgents refuses a job that can't get its slots from as many agents as there may be.
func enoughAgents(plan *jobgraph.Graph, c *conf.Config) error {
	if len(plan.Profiles) > 0 {
		return enoughCut(plan, c) // how many agents it takes depends on how they are cut
	}
	slots, most := c.Int("agent.slots"), mostAgents(c)
	need := (plan.Slots() + slots - 1) / slots
	if need <= most {
		return enoughSlots(plan.Slots(), c)
	}
	return precondition(fmt.Errorf("the job needs %d slots, but at most %d agents of %d slots may be started", plan.Slots(), most, slots),
		fmt.Sprintf("set --agents.max %d, a larger --agent.slots, or a smaller parallelism", need))
}

// runLocal runs the job as processes of this host.
func (s *session) runLocal(ctx context.Context, c *conf.Config, plan *jobgraph.Graph, text *jobText, f runFlags, times *timings) error {
	trace := s.traceSubmission(ctx, c, plan.Name, times)
	r, err := s.startApplication(c, plan, text, !f.detach, trace)
	if err != nil {
		trace.end("", err)()
		return err
	}
	times.mark("master started")
	defer trace.end(r.app.id, nil)()
	r.progress = newProgress(s, plan.Name, r.app.id, f.quiet, times)
	r.progress.timings = f.timings
	if byHand(c) {
		s.askForAgents(r.app)
	}
	if prints(plan) {
		r.progress.out.tty = false // a line that is rewritten would get between those of the job
	}
	if f.detach {
		return r.detach(ctx, f.json)
	}
	r.keep, r.json = f.keep, f.json
	return r.attend(ctx, c.Duration("timeout"))
}

// silence is for how long an ApplicationMaster may be silent: somewhat longer than its agents bear.
func silence(agents time.Duration) time.Duration { return max(2*time.Second, agents) + 3*time.Second }

// prints reports whether a job writes to stdout.
func prints(plan *jobgraph.Graph) bool {
	for _, v := range plan.Vertices {
		for _, op := range v.Operators {
			if op.Kind == "sink" && strings.HasPrefix(op.Detail, "stdout") {
				return true
			}
		}
	}
	return false
}

// startApplication writes the directory of a new application and starts its ApplicationMaster.
func (s *session) startApplication(c *conf.Config, plan *jobgraph.Graph, text *jobText, attached bool, trace *submitTrace) (*running, error) {
	if err := tryAddresses(c); err != nil {
		return nil, err
	}
	stateDir, err := s.stateDir(c)
	if err != nil {
		return nil, err
	}
	app, lock, err := createApp(stateDir, time.Now())
	if err != nil {
		return nil, err
	}
	defer lock.Close() // the ApplicationMaster holds it then
	prune(stateDir)
	sec, absent, err := app.write(c, plan.Fingerprint, text)
	if err == nil {
		if byHand(c) { // agents may be on other hosts
			s.warnAbsent(absent, "agents' hosts")
		}
		var m *master
		environ := variables(trace.environ(), c)
		if m, err = s.startMaster(app, lock, attached, environ); err == nil {
			return &running{s: s, app: app, master: m, client: newClient(app, sec), signals: s.env.Signals,
				attempts: c.Int("appmaster.attempts"), environ: environ, silence: silence(c.Duration("agent.heartbeat-timeout"))}, nil
		}
	}
	os.RemoveAll(app.path)
	return nil, precondition(err) // a full disk, or one file or process too many
}
