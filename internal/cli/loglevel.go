package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/logs"
)

// levels are what this process logs, by component. They are the process's own, since its log is.
var levels = logs.NewLevels(slog.LevelInfo)

// setLogLevel changes what this process logs.
func setLogLevel(component string, level slog.Level, d time.Duration, reset bool) {
	if reset {
		levels.Reset(component)
		return
	}
	levels.Set(component, level, d)
}

// keepOutput keeps this process's output, where it goes to files of the application or to YARN's for it, below the configured size,
// until the returned function is called, which waits for its end.
func (s *session) keepOutput(ctx context.Context, app *application) (stop func()) {
	c := app.conf
	dirs := strings.Split(s.env.Getenv("LOG_DIRS"), ",")
	dirs = append(dirs, app.dir.path)
	dirs = slices.DeleteFunc(dirs, func(d string) bool { return d == "" })
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		logs.Keep(ctx, app.log, logs.Cap{Size: c.Bytes("log.max-size"), Files: c.Int("log.max-files"), Dirs: dirs}, os.Stdout, os.Stderr)
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func (s *session) logLevelCommand() *cobra.Command {
	var d time.Duration
	cmd := &cobra.Command{
		Use: "log-level app [component=]level", Short: "Change what an application logs while it runs", Args: exactArgs(2, "the id of an application and a level"),
		ValidArgsFunction: s.completeApp(false),
		Long: `Change what the ApplicationMaster and the agents of an application log, for a while: debug, info, warn or error, or default
for the configured level. With a component (appmaster, agent, exchange, kafkasource, kafkasink) only what comes from it; default
without one is for all.
Agents that are started later log as configured.`,
		Example: "  heddle log-level heddle-1767225600-1a2b3c4d kafkasource=debug --for 10m\n  heddle log-level application_1767225600000_0001 default",
		RunE: func(cmd *cobra.Command, args []string) error {
			component, level, ok := strings.Cut(args[1], "=")
			if !ok {
				component, level = "", args[1]
			}
			switch {
			case ok && !slices.Contains(logs.Components, component):
				return usage(fmt.Errorf("there is no component %q: there are %s", component, strings.Join(logs.Components, ", ")))
			case d < 0:
				return usage(fmt.Errorf("--for is %v: say how long, such as 10m, or 0 until the application ends", d))
			}
			q := url.Values{"component": {component}, "level": {level}}
			if d > 0 {
				q.Set("for", d.String())
			}
			var parsed slog.Level
			if err := parsed.UnmarshalText([]byte(level)); err != nil && level != "default" {
				return usage(fmt.Errorf("there is no level %q: there are debug, info, warn, error and default", level))
			}
			if err := s.withMaster(cmd.Context(), args[:1], func(ctx context.Context, ask asker) error {
				return ask(ctx, func(ctx context.Context, c *client) error { return c.act(ctx, "/api/log-level?"+q.Encode()) })
			}); err != nil {
				return err
			}
			_, err := fmt.Fprintf(s.env.Stdout, "%s\t%s\n", args[0], args[1])
			return err
		},
	}
	cmd.Flags().DurationVar(&d, "for", 10*time.Minute, "how long; 0: until the application ends")
	return cmd
}

// asker asks the ApplicationMaster of an application something.
type asker func(ctx context.Context, question func(context.Context, *client) error) error

// withMaster finds the ApplicationMaster of an application, here or on YARN.
func (s *session) withMaster(ctx context.Context, args []string, do func(context.Context, asker) error) error {
	if id, ok := onYARN(args); ok {
		return s.withYARN(func(c *conf.Config, h *hadoop) error {
			a, err := h.app(ctx, id)
			if err != nil {
				return yarnError(err)
			}
			f := newFollower(h, id, "")
			defer f.close()
			f.address(ctx, a)
			return do(ctx, func(ctx context.Context, question func(context.Context, *client) error) error {
				return h.refused(a, f.ask(ctx, question))
			})
		})
	}
	app, err := s.appArg(args)
	if err != nil {
		return err
	}
	if !app.alive() {
		return s.over(ctx, app)
	}
	c, err := openClient(app)
	if err != nil {
		return err
	}
	defer c.close()
	return do(ctx, func(ctx context.Context, question func(context.Context, *client) error) error {
		err := question(ctx, c)
		if err != nil && !app.alive() {
			return s.over(ctx, app)
		}
		return refusal(err)
	})
}

// act asks for an action that changes something.
func (c *client) act(ctx context.Context, path string) error { return c.actFor(ctx, path, nil) }

// actFor is act that takes the answer, too.
func (c *client) actFor(ctx context.Context, path string, into any) error {
	if c.token != "" {
		return c.do(ctx, http.MethodPut, path, into)
	}
	// A proxy vouches for us; the action's own token shows that we have seen an answer.
	var me struct {
		Token string `json:"token"`
	}
	if err := c.do(ctx, http.MethodGet, "/api/session", &me); err != nil {
		return err
	}
	body, err := json.Marshal(me)
	if err != nil {
		return err
	}
	return c.send(ctx, http.MethodPut, path, body, into)
}
