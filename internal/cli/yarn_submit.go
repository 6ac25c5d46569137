package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/ship"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// appType is what YARN calls applications of Heddle.
const appType = "HEDDLE"

// appSecret is the name of an application's secrets in the credentials of its master's container.
const appSecret = "heddle.app"

// submission is an application that is being submitted.
type submission struct {
	// Immutable.
	s       *session
	conf    *conf.Config
	h       *hadoop
	plan    *jobgraph.Graph
	needs   []flow.Need
	endless bool     // the job does not end by itself
	text    *jobText // nil: the program is the job
	extra   []ship.Extra
	doing   atomic.Pointer[string] // what takes a while, for people

	// Of the goroutine that submits, and afterwards.
	times *timings
	trace *submitTrace // nil: not traced
	store *ship.Store
	fs    *hdfs.FS
	id    yarnid.Application
	sec   secrets
	kafka []kafkaToken // got for it
}

// say tells what takes a while.
func (sub *submission) say(text string) { sub.doing.Store(&text) }

// submit stages and submits the application. When it fails, nothing of the application is left in HDFS, unless YARN may have accepted it. The
// submission itself goes by firm, since its outcome must be known.
func (sub *submission) submit(ctx, firm context.Context) error {
	pick := make(chan program, 1)
	go func() { pick <- sub.pick(ctx) }() // ends soon, or with ctx; it is waited for below
	var app yarnclient.NewApp
	store, fs, err := sub.h.openStore()
	if err == nil {
		sub.store, sub.fs = store, fs
		if app, err = sub.h.rm.NewApplication(ctx); err != nil {
			err = yarnError(err)
		}
	}
	p := <-pick
	if p.exe != nil {
		defer p.exe.Close()
	}
	if err != nil {
		return err
	}
	if p.err != nil {
		return precondition(p.err)
	}
	if err := sub.places(ctx); err != nil {
		return err
	}
	if err := sub.probe(ctx); err != nil {
		return err
	}
	sub.id = app.ID
	sub.times.mark("cluster asked")
	if err := sub.send(ctx, firm, app, p); err != nil {
		if _, ok := errors.AsType[*unansweredError](err); !ok { // else YARN may start it yet, with what is there
			sub.remove()
			sub.endKafkaTokens()
		}
		return err
	}
	return nil
}

// program is what containers run.
type program struct {
	exe   *ship.Executable // to be sent; nil: every node has it
	local ship.LocalBinary
	err   error
}

// pick chooses the program.
func (sub *submission) pick(ctx context.Context) (p program) {
	platform, err := ship.ParsePlatform(sub.conf.Text("yarn.platform"))
	if err != nil {
		return program{err: err}
	}
	if where := sub.conf.Text("yarn.binary"); where != "" {
		p.local, p.err = ship.FindLocalBinary(where, sub.s.env.executable())
		return p
	}
	p.exe, p.err = ship.PickExecutable(ctx, ship.Pick{Path: sub.s.env.executable(), Platform: platform, Log: sub.say})
	return p
}

// remove removes the application's folder, if it has one.
func (sub *submission) remove() error {
	if sub.store == nil || sub.id == (yarnid.Application{}) {
		return nil
	}
	return sub.store.RemoveApplication(sub.id.String())
}

// close closes the connection to HDFS.
func (sub *submission) close() {
	if sub.fs != nil {
		sub.fs.Close()
	}
}

// send stages the files and submits.
func (sub *submission) send(ctx, firm context.Context, app yarnclient.NewApp, p program) error {
	c := sub.conf
	z, err := containerSizes(c, sub.h.conf, app)
	if err != nil {
		return err
	}
	if err := z.resolve(c, sub.plan); err != nil {
		return err
	}
	if text := z.unsure(app.Custom); text != "" {
		fmt.Fprintln(sub.s.env.Stderr, "heddle: warning: "+text)
	}
	name := programName(sub.s.env.Program)
	start := "exec ./" + name
	if p.exe == nil {
		start = p.local.Command()
	}
	command := commandLine(start, sub.s.env.Args)
	l := launch{User: sub.h.user, Command: command, MemoryMB: z.master.MemoryMB, VmemRatio: z.ratio}
	files, err := applicationFiles(c, sub.h, sub.text, l)
	if err != nil {
		return err
	}
	staged, err := sub.store.StageApplication(ctx, ship.Application{ID: app.ID.String(), Name: name, Exe: p.exe, Local: p.local, Files: files, Extra: sub.extra}, sub.progress)
	if err != nil {
		return hdfsError(err)
	}
	sub.times.mark("uploaded")
	sub.say("")
	options, absent, err := settings(c, true)
	if err != nil {
		return precondition(err)
	}
	sub.s.warnAbsent(absent, "hosts of the cluster")
	sub.sec = secrets{Token: rand.Text(), Options: options, Job: sub.plan.Fingerprint}
	secret, err := json.Marshal(sub.sec)
	if err != nil {
		return err
	}
	creds, err := sub.h.credentials(ctx, c, func(lack *identity.KeyTokenError) error { return sub.keyless(ctx, lack) })
	if err != nil {
		return err
	}
	if err := sub.addKafkaTokens(ctx, &creds); err != nil {
		return err
	}
	if text := lifeNote(creds, app.ID.String(), sub.s.env.Program, sub.endless, time.Now()); text != "" {
		fmt.Fprintln(sub.s.env.Stderr, "heddle: "+text)
	}
	creds.Secrets = append(creds.Secrets, token.Secret{Name: appSecret, Value: secret})
	request := &yarnclient.Submission{
		ID: app.ID, Name: sub.plan.Name, Type: appType, Queue: c.Text("yarn.queue"), Tags: c.List("yarn.tags"), Priority: c.Int("yarn.priority"),
		Resource: z.master, Command: command, Env: sub.environment(staged.Resources), Resources: staged.Resources,
		Credentials: creds,
		ViewACL:     c.Text("yarn.acl-view"), ModifyACL: c.Text("yarn.acl-modify"),
		MaxAttempts: c.Int("yarn.max-attempts"), FailuresValidity: c.Duration("yarn.attempt-failures-validity"), KeepContainers: c.Bool("yarn.keep-containers"),
		NodeLabel: c.Text("yarn.node-label"), AMNodeLabel: c.Text("yarn.node-label"), RollingLogs: c.Text("yarn.log-rolling"), Logs: c.Text("yarn.log-include"), Custom: z.masterCustom,
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := sub.h.rm.Submit(firm, request); err != nil {
		return submitError(app.ID, sub.s.env.Program, err)
	}
	sub.times.mark("submitted")
	if d := c.Duration("yarn.lifetime"); d > 0 {
		if err := sub.h.rm.SetExpiry(firm, app.ID, time.Now().Add(d)); err != nil {
			err = errors.Join(yarnError(err), sub.h.rm.Kill(firm, app.ID, "its lifetime could not be set"))
			return fmt.Errorf("the application was killed, since its lifetime could not be set: %w", err)
		}
	}
	return nil
}

// unansweredError is a submission that no answer came to.
type unansweredError struct {
	id  yarnid.Application
	err error
}

func (e *unansweredError) Error() string {
	return fmt.Sprintf("%v; %s may have been accepted", e.err, e.id)
}

func (e *unansweredError) Unwrap() error { return e.err }

// submitError is why a submission failed, for people. One that was not answered may have come through.
func submitError(id yarnid.Application, program string, err error) error {
	if _, ok := errors.AsType[*yarnclient.UnreachableError](err); !ok && !errors.Is(err, context.Canceled) {
		return yarnError(err)
	}
	return unreachable(&unansweredError{id, err}, "to see, once a ResourceManager runs: "+program+" status "+id.String(),
		"its files in HDFS are kept until it ends, or until "+program+" gc if it never began")
}

// progress tells how far an upload is.
func (sub *submission) progress(what string, done, size int64) {
	if size > 1<<20 { // less is over at once
		sub.say(fmt.Sprintf("uploading the %s: %d%% of %.1f MB", what, done*100/size, float64(size)/1e6))
	}
}

// Variables of a container's environment, beside those of every role.
const (
	driverVar    = "HEDDLE_DRIVER"           // yarn: the role runs in one of YARN's containers
	resourcesVar = "HEDDLE_RESOURCES"        // what containers get from HDFS
	containerVar = "HEDDLE_CONTAINER_MEMORY" // MB of an agent's container
	coresVar     = "HEDDLE_CONTAINER_CORES"
	vmemVar      = "HEDDLE_VMEM_RATIO"
)

// environment is that of the ApplicationMaster's container. NodeManagers pass on next to nothing of their own, and the client's own is not
// the cluster's business but for what speaks of Go's run time, time and telemetry.
func (sub *submission) environment(resources []yarnclient.LocalResource) map[string]string {
	env := handedOn(append(sub.s.env.Environ[:len(sub.s.env.Environ):len(sub.s.env.Environ)], sub.trace.environ()...))
	maps.Copy(env, configured(sub.conf))
	env["HEDDLE_ROLE"], env["HEDDLE_APP_DIR"], env[driverVar], env[resourcesVar] = "appmaster", "$PWD", "yarn", ship.EncodeResources(resources)
	return env
}

// handedOn are the variables of an environment that are for every role on a cluster.
func handedOn(environ []string) map[string]string {
	env := map[string]string{}
	for _, line := range environ {
		name, text, _ := strings.Cut(line, "=")
		otel := strings.HasPrefix(name, "OTEL_") && !strings.HasSuffix(name, "_HEADERS") // those are secret: see trace.headers
		if name == "TZ" || name == "GODEBUG" || name == "TRACEPARENT" || otel {
			env[name] = shellText(text)
		}
	}
	return env
}
