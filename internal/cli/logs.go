package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

func (s *session) logsCommand() *cobra.Command {
	var follow bool
	var lines int
	cmd := &cobra.Command{
		Use: "logs [app]", Short: "Print the logs of an application",
		Long: `Print the logs of the ApplicationMaster and of the agents of an application, each line after the process that wrote it.
Without an id: the newest that runs on this host. Of an application on YARN, those that NodeManagers still have, or, when it is over,
those that they collected in HDFS, if the cluster does that (yarn.log-aggregation-enable) in its usual format, TFile; for other formats,
use yarn logs.`,
		Example: "  heddle logs\n  heddle logs heddle-1767225600-1a2b3c4d -n 100\n  heddle logs -f\n  heddle logs -f application_1767225600000_0001",
		Args:    maxArgs(1), ValidArgsFunction: s.completeApp(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if lines < 0 {
				return usage(fmt.Errorf("--lines is %d: say how many, or 0 for all", lines))
			}
			id, ok, err := s.yarnArg(cmd.Context(), args)
			if err != nil {
				return err
			}
			if ok {
				return s.logsYARN(cmd.Context(), id, lines, follow)
			}
			app, err := s.appArg(args)
			if err != nil {
				return err
			}
			return s.printLogs(cmd.Context(), app, lines, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing until the application ends")
	cmd.Flags().IntVarP(&lines, "lines", "n", 20, "last lines of each log; 0: all")
	return cmd
}

// appArg finds the application that the arguments of a verb name.
func (s *session) appArg(args []string) (appDir, error) {
	c, err := s.load()
	if err != nil {
		return appDir{}, err
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	dir, err := s.stateDir(c)
	if err != nil {
		return appDir{}, err
	}
	return findApp(dir, name)
}

func maxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return usage(fmt.Errorf("%s takes at most %d arguments, got %d", cmd.CommandPath(), n, len(args)), "usage: "+cmd.UseLine())
	}
}

// logs returns the log files of an application by the name of the process that writes them.
func (a appDir) logs() map[string]string {
	logs := map[string]string{"appmaster": a.file(logFile)}
	agents, err := filepath.Glob(a.file("agents/*/log"))
	if err != nil {
		return logs
	}
	for _, file := range agents {
		logs["agent-"+filepath.Base(filepath.Dir(file))] = file
	}
	return logs
}

func (s *session) printLogs(ctx context.Context, app appDir, lines int, follow bool) error {
	followed := map[string]*followedLog{}
	for {
		live := app.alive()
		logs := app.logs()
		names := make([]string, 0, len(logs))
		for name := range logs {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			f := followed[name]
			if f == nil {
				f = &followedLog{name: name, file: logs[name]}
				followed[name] = f
				f.begin(lines)
			}
			if err := f.copy(s.out); err != nil {
				return err
			}
		}
		if !follow || !live {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.env.Signals:
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}
