package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/local"
	"github.com/heddle-stream/heddle/appmaster/driver/standalone"
	"github.com/heddle-stream/heddle/appmaster/web"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/history"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// runMaster is the role of the ApplicationMaster.
func (s *session) runMaster(ctx context.Context, app *application) error {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := func(err error) {
		app.log.Warn("cancelling the job", "reason", err)
		cancel(err)
	}
	var stdout *os.File
	if s.env.Getenv("HEDDLE_ATTACHED") != "" {
		stdout = os.Stdout
		watchOwner(func() { lost(errors.New("the client that started the application is gone")) })
	}
	inheritLock()
	defer app.dir.dropSecrets()
	var watching sync.WaitGroup
	watching.Go(func() { app.dir.watchDir(ctx, lost) })
	defer watching.Wait()
	defer cancel(nil)
	result, err := s.master(ctx, app, stdout)
	if err != nil {
		app.dir.recordFailure(app.job.Name(), err)
		return failed(err)
	}
	switch result.State {
	case "finished":
		return nil
	case "canceled":
		return &exitError{exitCancelled, fmt.Errorf("the job %s was cancelled", result.Job), nil}
	}
	return failed(fmt.Errorf("the job %s %s", result.Job, result.State))
}

// recordFailure leaves word for the client of an application that could not be run at all.
func (a appDir) recordFailure(job string, cause error) {
	now := time.Now()
	data, err := json.Marshal(appmaster.Result{App: a.id, Job: job, State: "failed", Started: now, Ended: now,
		Cause: &appmaster.Cause{Kind: "invalid", Message: cause.Error(), Time: now}})
	if err == nil {
		err = os.WriteFile(a.file(resultFile), data, 0o600)
	}
	if err != nil {
		return // the client finds the error in the log
	}
}

// master wires the ApplicationMaster and runs it to the end of the application.
func (s *session) master(ctx context.Context, app *application, stdout *os.File) (appmaster.Result, error) {
	c, none := app.conf, appmaster.Result{}
	plan, err := compile(app.job, c)
	if err != nil {
		return none, err
	}
	if plan.Fingerprint != app.sec.Job {
		return none, errOtherGraph
	}
	driver, err := s.driver(app, stdout)
	if err != nil {
		return none, err
	}
	if err := app.again(s.env.Getenv("HEDDLE_ATTEMPT")); err != nil {
		return none, err
	}
	control, pages, err := listenAll(c)
	if err != nil {
		return none, err
	}
	front, err := web.New(web.Config{Listener: pages, Token: app.sec.Token, Options: app.options, Log: app.dir.lastLines, Logger: app.log})
	if err != nil {
		return none, errors.Join(err, control.Close(), pages.Close())
	}
	cfg := app.masterConfig(plan, driver, front, control)
	if err := app.takeOver(&cfg); err != nil {
		return none, errors.Join(err, control.Close(), pages.Close())
	}
	keeper := app.keeper(history.Dir(filepath.Join(filepath.Dir(app.dir.path), historyDir)))
	return s.runTraced(ctx, app, cfg, keeper)
}

var errOtherGraph = errors.New("the ApplicationMaster builds another job graph than the client: main() must build the same graph in every process, whatever the time, the host or chance; see the documentation of package run")

// masterConfig is what every ApplicationMaster has in common.
func (app *application) masterConfig(plan *jobgraph.Graph, driver appmaster.Driver, front appmaster.Front, control net.Listener) appmaster.Config {
	c := app.conf
	return appmaster.Config{
		App: app.dir.id, AppDir: app.dir.path,
		Job: app.job.Graph(), Graph: plan,
		Driver: driver, Front: front, Listener: control,
		Agents: agentsConfig(c), Slots: slotsConfig(c), Logger: app.log,
		HeartbeatInterval: c.Duration("agent.heartbeat-interval"),
		CertificateLife:   c.Duration("agent.certificate-life"),
		DiscoveryBudget:   c.Duration("kafka.unavailable-timeout"),
		Option:            c.Option,
		Secrets:           agentSecrets(c, app.sec),
	}
}

// driver is what gets agents.
func (s *session) driver(app *application, stdout *os.File) (appmaster.Driver, error) {
	if app.conf.Text("target") == "standalone" {
		files := map[string]string{confFile: app.dir.file(confFile)}
		if _, err := os.Stat(app.dir.file(jobFile)); err == nil {
			files[jobFile], files[nameFile] = app.dir.file(jobFile), app.dir.file(nameFile)
		}
		return standalone.New(standalone.Config{Files: files}), nil
	}
	return local.New(local.Config{Executable: s.env.self(), Args: s.env.Args, Env: conf.ChildEnviron(s.env.Environ), Stdout: stdout})
}

// self is the path by which this very program can be started again, also when its file has been removed
// meanwhile, as `go run` does.
func (e Env) self() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe" // of the process that is about to become the new one: a copy of this
	}
	return e.Executable
}
