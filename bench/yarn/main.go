// Command yarn measures a start on YARN, from the command to the first record out, beside Flink's application mode on the same cluster, in
// turns: time by phase, CPU time, memory. It prints each goal with whether it holds.
//
// With HADOOP_CONF_DIR it uses that cluster, which must be one without Kerberos; processor time and memory are those of processes on this host. Without, it
// starts one here: HDFS, a ResourceManager and two NodeManagers. It needs a JDK 17, Maven, and a machine that does nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// plan says what to measure.
type plan struct {
	rounds int
	settle time.Duration
	flink  []variant
	dir    string // of Flink's jars
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	p := plan{}
	flag.IntVar(&p.rounds, "rounds", 3, "rounds after the one that warms up; figures are medians over them")
	flag.DurationVar(&p.settle, "settle", 8*time.Second, "how long after the first record memory is looked at")
	names := flag.String("flink", "provided,tuned", "Flink's variants: provided has its libraries on the cluster before, tuned a heartbeat of 1 s too; none")
	flag.StringVar(&p.dir, "dir", filepath.Join(cache, "heddle", "peers", "yarn"), "folder for Flink's jars")
	flag.Parse()
	if p.flink, err = variantsOf(*names); err == nil {
		err = run(ctx, p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errMissed) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

var errMissed = errors.New("a goal was missed")

func run(ctx context.Context, p plan) (err error) {
	o := &owner{}
	defer o.close()
	defer o.recover(&err)
	var home flinkHome
	if len(p.flink) > 0 {
		if home, err = setUp(ctx, p.dir); err != nil {
			return err
		}
	}
	c, err := openCluster(ctx, o)
	if err != nil {
		return err
	}
	defer c.close()
	b := &board{runs: map[string][]result{}}
	b.names = append(b.names, heddleName)
	for _, v := range p.flink {
		b.names = append(b.names, v.name())
	}
	if len(p.flink) > 0 {
		if err := c.provide(home); err != nil {
			return err
		}
	}
	for round := range p.rounds + 1 {
		fmt.Printf("round %d of %d, load %s\n", round, p.rounds, load())
		if err := c.round(ctx, p, home, b, round); err != nil {
			return err
		}
	}
	if b.print(os.Stdout) > 0 {
		return errMissed
	}
	return nil
}

// round starts a job by each, the first time to fill the caches.
func (c *cluster) round(ctx context.Context, p plan, home flinkHome, b *board, round int) error {
	enter := func(name string, r result, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("  %-16s %s\n", name, r)
		if round > 0 {
			b.runs[name] = append(b.runs[name], r)
		}
		return nil
	}
	r, err := c.heddle(ctx, p.settle)
	if err := enter(heddleName, r, err); err != nil {
		return err
	}
	for _, v := range p.flink {
		r, err := c.flink(ctx, home, v, p.settle)
		if err := enter(v.name(), r, err); err != nil {
			return err
		}
	}
	return nil
}

// load is the machine's load average.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
