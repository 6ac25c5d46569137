package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/logs"
	"github.com/heddle-stream/heddle/internal/telemetry"
	"github.com/heddle-stream/heddle/netstack"
)

// application is what a role finds in the application's directory.
type application struct {
	dir  appDir
	conf *conf.Config
	sec  secrets
	job  *heddle.Job
	log  *slog.Logger

	attempt uint32 // of the ApplicationMaster, where a client may start it again
}

// runRole plays a role of an application, until it is over or a signal ends it.
func (s *session) runRole(ctx context.Context, role string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer deaf()()
	path := s.env.Getenv("HEDDLE_APP_DIR")
	if path == "" {
		return usage(fmt.Errorf("HEDDLE_ROLE is set to %s but HEDDLE_APP_DIR is not", role), "these variables are set by heddle itself; unset HEDDLE_ROLE")
	}
	if s.env.Getenv(driverVar) == "yarn" {
		return s.runInContainer(ctx, role, path)
	}
	app, err := s.openApplication(appDir{filepath.Base(path), path})
	if err != nil {
		return err
	}
	switch role {
	case "appmaster":
		return s.runMaster(ctx, app)
	case "agent":
		return s.runAgent(ctx, app, agent.Config{Dir: s.env.Getenv("HEDDLE_AGENT_DIR")})
	}
	return noRole(role)
}

func noRole(role string) error {
	return usage(fmt.Errorf("there is no role %q: HEDDLE_ROLE is appmaster or agent", role))
}

// runInContainer plays a role in one of YARN's containers.
func (s *session) runInContainer(ctx context.Context, role, path string) error {
	switch role {
	case "appmaster":
		return s.runYARNMaster(ctx, path)
	case "agent":
		return s.runYARNAgent(ctx)
	}
	return noRole(role)
}

// deaf keeps this process from ending, until the returned function is called, by a terminal that goes away, which is the
// client's affair, and by output that nobody reads, which is for the sink to tell.
func deaf() (undo func()) {
	signals := make(chan os.Signal, 1) // never read: what does not fit is dropped
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}

func (s *session) openApplication(dir appDir) (*application, error) {
	c, err := dir.restoreConfig()
	if err != nil {
		return nil, err
	}
	sec, err := dir.readSecrets()
	if err != nil {
		return nil, err
	}
	s.opts = c
	app := &application{dir: dir, conf: c, sec: sec, log: s.settle(c)}
	app.job, err = s.roleJob(dir, c)
	return app, err
}

// roleJob is the job file of the application or, without one, the program's own job.
func (s *session) roleJob(dir appDir, c *conf.Config) (*heddle.Job, error) {
	data, err := os.ReadFile(dir.file(jobFile))
	switch {
	case err == nil:
		name, err := os.ReadFile(dir.file(nameFile))
		if err != nil {
			name = []byte(jobFile)
		}
		return parseJob(string(name), data, c)
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("cannot read the job: %w", err)
	case s.job == nil:
		return nil, fmt.Errorf("the application has neither a job file nor a program that is the job")
	}
	return s.job, nil
}

// logger writes to stderr, which is the log of the role's process.
func (s *session) logger(c *conf.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Text("log.level"))); err != nil {
		level = slog.LevelInfo
	}
	levels.SetBase(level)
	opts := &slog.HandlerOptions{Level: slog.LevelDebug} // the levels by component decide
	if c.Text("log.format") == "json" {
		opts.ReplaceAttr = logs.Named
		return slog.New(logs.NewHandler(slog.NewJSONHandler(s.env.Stderr, opts), levels))
	}
	return slog.New(logs.NewHandler(slog.NewTextHandler(s.env.Stderr, opts), levels))
}

// runAgent is the role of an agent. cfg says how it joins.
func (s *session) runAgent(ctx context.Context, app *application, cfg agent.Config) error {
	c := app.conf
	plan, err := jobgraph.Compile(app.job.Graph(), compileOptions(c))
	if err != nil {
		return err // the master has compiled it: main() differs from process to process
	}
	if cfg.MemoryMB == 0 {
		cfg.MemoryMB = c.Bytes("agent.memory") >> 20
		agent.LimitMemory(cfg.MemoryMB)
	}
	cfg.Graph, cfg.Plan = app.job.Graph(), plan
	cfg.Slots, cfg.MilliCPU, cfg.Version = c.Int("agent.slots"), milliCPU(c.Int("agent.cpu")), version()
	cfg.Custom, cfg.Rack = amounts(c, "agent.resources"), c.Text("kafka.rack")
	advertise := cfg.Exchange.Advertise
	cfg.Exchange, cfg.ExchangeTLS = exchangeConfig(c), c.Bool("exchange.tls")
	cfg.FlushTimeout, cfg.Option, cfg.Logger = c.Duration("flush-timeout"), c.Option, app.log.With(logs.Component, "agent")
	if cfg.Exchange.Advertise == "" {
		cfg.Exchange.Advertise = advertise
	}
	cfg.JoinTimeout = c.Duration("agent.register-timeout")
	id := s.env.Getenv("HEDDLE_AGENT_ID")
	if id == "" {
		id = cmp.Or(string(cfg.Secrets.AgentID), "agent")
	}
	provider, err := s.telemetry(ctx, app, "agent", id, nil)
	if err != nil {
		return err
	}
	defer closeTelemetry(provider)
	defer s.keepOutput(ctx, app)()
	cfg.Follow, cfg.Started, cfg.LogLevel = follow(app, provider), processStart, setLogLevel
	cfg.TraceParent, _ = telemetry.ParseTraceparent(s.env.Getenv("TRACEPARENT"))
	err = agent.Run(ctx, cfg)
	if _, ok := errors.AsType[*agent.LostError](err); ok {
		return unreachable(err)
	}
	if _, ok := errors.AsType[*ctl.RefusedError](err); ok {
		return precondition(err)
	}
	if _, ok := errors.AsType[*ctl.StrangerError](err); ok {
		return precondition(err)
	}
	return err
}

// none is v for netstack.Config, where 0 is the default and a negative figure means none.
func none[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// exchangeConfig maps the options of the exchange.
func exchangeConfig(c *conf.Config) netstack.Config {
	segment := c.Bytes("exchange.segment-bytes")
	return netstack.Config{
		Listen:                  net.JoinHostPort(bind(c, "exchange.bind"), c.Text("exchange.port")),
		Advertise:               c.Text("exchange.advertise"),
		SegmentBytes:            int(segment),
		MemorySegments:          max(1, int(c.Bytes("exchange.memory")/segment)),
		ExclusivePerChannel:     none(c.Int("exchange.exclusive")),
		FloatingPerGate:         none(c.Int("exchange.floating")),
		MaxPerChannel:           c.Int("exchange.max-per-channel"),
		MaxPerSubpartition:      c.Int("exchange.max-per-subpartition"),
		MaxConnections:          c.Int("exchange.max-connections"),
		ConnectTimeout:          c.Duration("exchange.connect-timeout"),
		HandshakeTimeout:        c.Duration("exchange.handshake-timeout"),
		ConnectRetries:          none(c.Int("exchange.connect-retries")),
		ConnectBackoff:          none(c.Duration("exchange.connect-backoff")),
		PartitionRequestTimeout: c.Duration("exchange.partition-request-timeout"),
		KeepaliveInterval:       c.Duration("exchange.keepalive-interval"),
		KeepaliveTimeout:        c.Duration("exchange.keepalive-timeout"),
		IdleTimeout:             c.Duration("exchange.idle-timeout"),
		Compression:             c.Text("exchange.compression"),
		Checksum:                c.Bool("exchange.checksum"),
		DebloatTarget:           c.Duration("exchange.debloat-target"),
		Overdraft:               none(c.Int("exchange.overdraft")),
		SocketBuffer:            int(c.Bytes("exchange.socket-buffer")),
		Backlog:                 c.Int("exchange.backlog"),
		TCPUserTimeout:          c.Duration("exchange.tcp-user-timeout"),
	}
}
