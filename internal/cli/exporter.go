package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/exporter"
	"github.com/heddle-stream/heddle/internal/logs"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// exporterFlags say what an exporter serves, and where.
type exporterFlags struct {
	listen, user, queue string
	timeout, refresh    time.Duration
	parallel            int
}

func (s *session) exporterCommand() *cobra.Command {
	var f exporterFlags
	cmd := &cobra.Command{
		Use: "exporter", Short: "Serve the metrics of all running applications to Prometheus", Args: exactArgs(0, ""),
		Long: `Serve the metrics of all running applications at /metrics on one port, for Prometheus: it can neither follow applications from host to host nor log in at a
ResourceManager. With the target yarn, applications are found by the ResourceManager and read through its proxy as the user who is logged in (kinit, or
kerberos.keytab); with others, those of this host. Each series gets the labels app, job, queue and user, so that Prometheus wants honor_labels: true. An application
that can't be read has heddle_app_up 0, and spoils nothing for others; one that the user may not look at (yarn.acl-view) is left out, with a warning.

The port is plain HTTP and asks nobody who he is: bind it where Prometheus alone reaches it.`,
		Example: "  heddle exporter --target yarn\n  heddle exporter --target yarn --listen :9464 --kerberos.keytab monitor.keytab --kerberos.principal monitor@EXAMPLE.COM",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load()
			if err != nil {
				return err
			}
			if c.Text("target") == "yarn" {
				return s.withYARN(func(_ *conf.Config, h *hadoop) error {
					t := &yarnTargets{h: h, filter: yarnclient.Filter{Types: []string{appType}, States: []string{yarnclient.StateRunning}, User: f.user, Queue: f.queue}}
					defer t.close()
					return s.export(cmd.Context(), f, t.find)
				})
			}
			dir, err := s.stateDir(c)
			if err != nil {
				return err
			}
			return s.export(cmd.Context(), f, func(ctx context.Context) ([]exporter.Target, error) { return localTargets(ctx, dir) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:9464", "address to serve at")
	flags.StringVar(&f.user, "user", "", "only applications of this user (target yarn)")
	flags.StringVar(&f.queue, "in-queue", "", "only applications in this queue (target yarn)")
	flags.DurationVar(&f.timeout, "app-timeout", 5*time.Second, "how long one application may take")
	flags.DurationVar(&f.refresh, "refresh", 15*time.Second, "how often to look for applications")
	flags.IntVar(&f.parallel, "parallel", 8, "applications to ask at a time")
	return cmd
}

// export serves until a signal comes.
func (s *session) export(ctx context.Context, f exporterFlags, find func(context.Context) ([]exporter.Target, error)) error {
	if f.timeout <= 0 || f.parallel < 1 || f.refresh < 0 {
		return usage(errors.New("--app-timeout and --parallel must be more than 0, --refresh not less"))
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return precondition(fmt.Errorf("cannot serve metrics: %w", err), "choose another address with --listen")
	}
	log := slog.New(logs.NewHandler(slog.NewTextHandler(s.env.Stderr, nil), levels))
	e := exporter.New(exporter.Config{Find: find, Refresh: f.refresh, Timeout: f.timeout, Parallel: f.parallel, Logger: log})
	mux := http.NewServeMux()
	mux.Handle("/metrics", e)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "The metrics of Heddle's applications are at /metrics.")
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	fmt.Fprintf(s.env.Stdout, "http://%s/metrics\n", l.Addr())
	select {
	case err := <-failed:
		return precondition(fmt.Errorf("cannot serve metrics: %w", err))
	case <-ctx.Done():
	case <-s.env.Signals:
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = errors.Join(srv.Shutdown(bye), srv.Close())
	<-failed
	return err
}

// localTargets are the applications of this host.
func localTargets(_ context.Context, stateDir string) ([]exporter.Target, error) {
	apps, err := listApps(stateDir)
	me := ""
	if u, err := user.Current(); err == nil { // whose applications they are: others' may not be in our state directory
		me = u.Username
	}
	var out []exporter.Target
	for _, app := range apps {
		if app.alive() {
			out = append(out, exporter.Target{App: app.id, User: me, Read: func(ctx context.Context) ([]byte, error) {
				c, err := openClient(app)
				if err != nil {
					return nil, err
				}
				defer c.close()
				return c.fetch(ctx, http.MethodGet, "/metrics", nil)
			}})
		}
	}
	return out, err
}

// yarnTargets are the applications of a cluster. It is used by one scrape at a time.
type yarnTargets struct {
	h      *hadoop
	filter yarnclient.Filter
	known  map[string]*client // by application, so that connections and log-ins last
}

func (t *yarnTargets) find(ctx context.Context) ([]exporter.Target, error) {
	apps, err := t.h.rm.Apps(ctx, t.filter)
	if err != nil {
		return nil, err
	}
	known := map[string]*client{}
	var out []exporter.Target
	for _, a := range apps {
		id, err := yarnid.ParseApplication(a.ID)
		if err != nil {
			continue
		}
		c := t.known[a.ID]
		if t.h.hidden(a) {
			out = append(out, exporter.Target{App: a.ID, Job: a.Name, Queue: a.Queue, User: a.User, Read: func(context.Context) ([]byte, error) { return nil, exporter.ErrDenied }})
			continue
		}
		if c == nil {
			f := newFollower(t.h, id, "")
			f.address(ctx, a)
			c = f.proxied
		}
		read := func(context.Context) ([]byte, error) { return nil, errNoWay }
		if c != nil {
			known[a.ID] = c
			read = func(ctx context.Context) ([]byte, error) {
				text, err := c.fetch(ctx, http.MethodGet, "/metrics", nil)
				if denied(err) {
					err = fmt.Errorf("%w: %w", exporter.ErrDenied, err)
				}
				return text, err
			}
		}
		out = append(out, exporter.Target{App: a.ID, Job: a.Name, Queue: a.Queue, User: a.User, Read: read})
	}
	for id, c := range t.known {
		if known[id] == nil {
			c.close()
		}
	}
	t.known = known
	return out, nil
}

func (t *yarnTargets) close() {
	for _, c := range t.known {
		c.close()
	}
}
