package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/appmaster/driver/standalone"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/spf13/cobra"
)

func (s *session) agentCommand() *cobra.Command {
	var join, secrets string
	cmd := &cobra.Command{
		Use: "agent", Short: "Join an application as one of its agents", Args: exactArgs(0, ""),
		Long: `Run an agent of an application that was started with the target standalone. For each agent that it wants, its
ApplicationMaster writes a file into join/ of the application's directory and says so in its log. The file lets one
agent in, once; it holds a private key, so bring it to the agent's host as you would a password, readable by its
owner only (mode 0600). The job and its configuration come with the file; options given here and in this
host's configuration win over it. A job that is a program of its own needs that program: run its agent verb.`,
		Example: "  heddle agent --secrets agent-1\n  heddle agent --join master.example.com:7000 --secrets agent-1 --exchange.bind 0.0.0.0 --exchange.advertise node7",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if secrets == "" {
				return usage(errors.New("an agent needs a file to join with"), "give --secrets FILE; the ApplicationMaster's log names the files that it wrote")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return s.joinApplication(ctx, join, secrets)
		},
	}
	cmd.Flags().StringVar(&join, "join", "", "`ADDR` of the ApplicationMaster, host:port; the one in the file if not given")
	cmd.Flags().StringVar(&secrets, "secrets", "", "the `FILE` that lets this agent in")
	return cmd
}

// askForAgents tells people what to do.
func (s *session) askForAgents(app appDir) {
	fmt.Fprintf(s.env.Stderr, "start an agent for each file in %s, on this host or another: %s agent --secrets FILE\n", app.file(standalone.Dir), s.env.Program)
}

// joinApplication is the role of an agent that somebody else started.
func (s *session) joinApplication(ctx context.Context, addr, file string) error {
	sec, err := ctl.ReadSecrets(file)
	if err != nil {
		return precondition(err)
	}
	if addr != "" {
		sec.MasterAddr = addr
	}
	c, err := s.joinedConfig(file, sec)
	if err != nil {
		return err
	}
	s.opts = c
	app := &application{conf: c, log: s.settle(c), job: s.job}
	if text, ok := sec.Files[jobFile]; ok {
		app.job, err = parseJob(cmp.Or(string(sec.Files[nameFile]), filepath.Base(file)+":"+jobFile), text, c)
	} else if s.job == nil {
		err = precondition(fmt.Errorf("the job of %s is a program of its own", sec.App), "run that program's agent verb in place of heddle's")
	}
	if err != nil {
		return err
	}
	sec.Files = nil
	return s.runAgent(ctx, app, agent.Config{Secrets: sec})
}

// joinedConfig is the application's configuration, changed by what is set here.
func (s *session) joinedConfig(file string, sec ctl.AgentSecrets) (*conf.Config, error) {
	own, err := s.load()
	if err != nil {
		return nil, err
	}
	c, err := restoreConf(own.Registry(), filepath.Dir(file), file+":"+confFile, sec.Files[confFile], sec.Options)
	if err != nil {
		return nil, precondition(err)
	}
	for _, v := range own.Values() {
		if v.Layer == conf.FromDefault {
			continue
		}
		if err := c.Set(v.Option.Name, v.Text, v.Layer, v.Where); err != nil {
			return nil, usage(err)
		}
	}
	return c, nil
}
