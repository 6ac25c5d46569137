package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/demo"
	"github.com/spf13/cobra"
)

// maxDemoRate is what an embedded broker in the same process bears.
const maxDemoRate = 200_000

// demoDrain is how long the job may take to count what was produced, once nothing more comes.
const demoDrain = 20 * time.Second

func (s *session) demoCommand() *cobra.Command {
	rate, duration := 20_000, 30*time.Second
	cmd := &cobra.Command{
		Use: "demo", Short: "See it work: broker, job and dashboard, everything embedded", Args: exactArgs(0, ""),
		Long: `Run a job on embedded defaults, with nothing to install: a Kafka broker in this process, a generator of click
events, an ApplicationMaster and two agents as processes of their own. The job counts clicks per user in windows
of two seconds of event time; records move between the agents by the exchange.

The demo ends by itself or by Ctrl-C, and with a check that every event produced was counted exactly once.`,
		Example: "  heddle demo\n  heddle demo --rate 50000 --duration 2m\n  heddle demo --exchange.tls --agents 4 --parallelism 8",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rate < 1 || rate > maxDemoRate {
				return usage(fmt.Errorf("--rate %d is not from 1 to %d", rate, maxDemoRate))
			}
			if duration <= 0 {
				return usage(fmt.Errorf("--duration %s is not positive", duration))
			}
			return s.demo(cmd.Context(), rate, duration)
		},
	}
	cmd.Flags().IntVar(&rate, "rate", rate, "events a second, at most "+strconv.Itoa(maxDemoRate))
	cmd.Flags().DurationVar(&duration, "duration", duration, "how long to produce events")
	return cmd
}

func (s *session) demo(ctx context.Context, rate int, duration time.Duration) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	d, err := demo.Start(demo.Config{Rate: rate, Seed: uint64(time.Now().UnixNano())})
	if err != nil {
		return failed(err)
	}
	defer d.Close()
	if err := demoConfig(c, d.Broker()); err != nil {
		return err
	}
	job, err := parseJob("demo.yaml", demo.Job, c)
	if err != nil {
		return err
	}
	plan, err := compile(job, c)
	if err != nil {
		return err
	}
	if err := checkOptions(plan, c); err != nil {
		return err
	}
	if err := s.checkTelemetry(c); err != nil {
		return err
	}
	trace := s.traceSubmission(ctx, c, plan.Name, newTimings())
	r, err := s.startApplication(c, plan, &jobText{"demo.yaml", demo.Job}, true, trace)
	defer trace.end(appID(r), err)()
	if err != nil {
		return err
	}
	r.progress = newProgress(s, plan.Name, r.app.id, false, nil)
	show := &demoRun{s: s, demo: d, running: r, duration: duration, out: s.out}
	return show.run(ctx)
}

// demoConfig points Kafka's options at the embedded broker and has the agents be processes of this host, whatever the
// configuration says, and gives the job something to shuffle where the configuration says nothing.
func demoConfig(c *conf.Config, broker string) error {
	for _, v := range c.Values() {
		name := v.Option.Name
		text := ""
		switch {
		case name == "kafka.brokers":
			text = broker
		case strings.HasPrefix(name, "kafka."):
			text = v.Option.Default
		case name == "target":
			text = "local"
		case name == "parallelism" && v.Layer == conf.FromDefault:
			text = "4"
		default:
			continue
		}
		if err := c.Set(name, text, conf.FromFlag, "heddle demo"); err != nil {
			return err
		}
	}
	return nil
}

// demoRun is one run of the demo.
type demoRun struct {
	// Immutable.
	s        *session
	demo     *demo.Demo
	running  *running
	duration time.Duration
	out      *terminal

	// Owned by the goroutine of run.
	screen  demoScreen
	last    *appmaster.Snapshot
	started sync.Once
	trimmed time.Time
}

// run attends the application while a goroutine directs the generator, and checks the result.
func (d *demoRun) run(ctx context.Context) error {
	up, over, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	producing, stop := context.WithCancel(ctx)
	defer stop()
	d.running.ended = end
	d.running.signals = d.interrupts(stop, over)
	d.running.progress.silent, d.running.progress.table = false, d.out.tty
	d.running.each = func(snap *appmaster.Snapshot) {
		if snap.State == "running" {
			d.started.Do(func() {
				d.running.progress.silent = true
				close(up)
			})
		}
		if d.running.progress.silent { // before, progress tells what the start waits for
			d.show(ctx, snap)
		}
	}
	directed := make(chan error, 1)
	go func() { directed <- d.direct(ctx, producing, up, over, end) }()
	err := d.running.attend(ctx, 0)
	close(over)
	stop()
	directErr := <-directed
	if d.last != nil && d.out.tty {
		d.screen.draw(d.out, d.demo.View(10), &appmaster.Snapshot{State: "canceled", Agents: d.last.Agents}, d.running)
	}
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitCancelled || directErr != nil && errors.Is(directErr, errDemoCut) {
		return errors.Join(err, quietCut(directErr)) // it did not end because we ended it
	}
	return d.verdict(directErr)
}

// errDemoCut is the director's error when the application ended before it wanted it to.
var errDemoCut = errors.New("the application ended before the demo did")

func quietCut(err error) error {
	if errors.Is(err, errDemoCut) {
		return nil
	}
	return err
}

// interrupts lets the first interrupt end the production of events and passes on those that follow.
func (d *demoRun) interrupts(stop func(), over <-chan struct{}) <-chan os.Signal {
	later := make(chan os.Signal, 1)
	go func() { // ends with over
		for first := true; ; first = false {
			select {
			case sig := <-d.s.env.Signals:
				if first {
					stop()
					continue
				}
				select {
				case later <- sig:
				default:
				}
			case <-over:
				return
			}
		}
	}()
	return later
}

// direct produces events once the job runs, for the time it shall take, then lets every window close and waits until
// all is counted; then it closes end.
func (d *demoRun) direct(ctx, producing context.Context, up, over <-chan struct{}, end chan<- struct{}) error {
	defer close(end)
	select {
	case <-up:
	case <-producing.Done():
	case <-over:
		return errDemoCut
	}
	producing, cancel := context.WithTimeout(producing, d.duration)
	defer cancel()
	if err := errors.Join(d.demo.Produce(producing), d.demo.Finish()); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, demoDrain)
	defer cancel()
	counted := make(chan error, 1)
	go func() { counted <- d.demo.Await(waiting, demo.View.Complete) }()
	select {
	case err := <-counted:
		if err != nil {
			return fmt.Errorf("the job did not count every event within %s", demoDrain)
		}
		return nil
	case <-over:
		cancel()
		<-counted
		return errDemoCut
	}
}

// show draws the state and frees the memory of events that were read.
func (d *demoRun) show(ctx context.Context, snap *appmaster.Snapshot) {
	d.last = snap
	d.screen.draw(d.out, d.demo.View(10), snap, d.running)
	if now := time.Now(); now.Sub(d.trimmed) >= time.Second {
		d.trimmed = now
		if err := d.demo.Trim(ctx, readOffsets(snap)); err != nil {
			d.running.progress.say(err.Error())
			d.screen.drawn = nil // what was said stands below it
		}
	}
}

// readOffsets returns the offset up to which each partition of the events was read.
func readOffsets(snap *appmaster.Snapshot) map[int32]int64 {
	offsets := map[int32]int64{}
	for _, src := range snap.Sources {
		for _, split := range src.Splits {
			n, err := strconv.ParseInt(strings.TrimPrefix(split.ID, demo.Clicks+"-"), 10, 32)
			if err == nil && split.Position > 0 {
				offsets[int32(n)] = split.Position
			}
		}
	}
	return offsets
}

// verdict is the end of the demo: the check.
func (d *demoRun) verdict(directed error) error {
	text, err := d.demo.Check()
	if err = errors.Join(directed, err); err != nil {
		return failed(err)
	}
	_, err = fmt.Fprintln(d.out.w, d.out.paint(green, "checked: ")+text)
	return err
}
