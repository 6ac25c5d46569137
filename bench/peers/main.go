// Command peers measures the exchange beside its peers, in turns on the same machine: a raw TCP loop (with TLS, of crypto/tls)
// and Flink's shuffle between TaskManagers, which it fetches by Maven into a folder of the user's cache. It prints
// each row of the exchange's goals with its ratios and whether it holds.
//
// It needs a JDK 17, Maven, and a machine that does nothing else.
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

	"github.com/heddle-stream/heddle/bench"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if os.Getenv(bench.RoleEnv) != "" {
		if err := bench.ExchangePeer(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	p := plan{}
	flag.IntVar(&p.rounds, "rounds", 3, "rounds; each row's figures are medians over them")
	flag.DurationVar(&p.own, "own", 2*time.Second, "how long Heddle is measured for a row of a round, in two halves around the peer")
	flag.DurationVar(&p.peer, "peer", 3*time.Second, "how long Flink is measured for a row of a round, after half of that again to warm up")
	flag.BoolVar(&p.noFlink, "no-flink", false, "only Heddle and raw loops")
	only := flag.String("rows", "", "only rows whose name contains one of these words, separated by commas")
	dir := flag.String("dir", filepath.Join(cache, "heddle", "peers"), "folder for Flink's jars")
	flag.Parse()
	if *only != "" {
		p.only = strings.Split(*only, ",")
	}
	if err := run(ctx, *dir, p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errMissed) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

var errMissed = errors.New("a goal was missed")

func run(ctx context.Context, dir string, p plan) error {
	b, err := newBoard(ctx, dir, p)
	if err != nil {
		return err
	}
	defer b.close()
	for round := range p.rounds {
		fmt.Printf("round %d of %d, load %s\n", round+1, p.rounds, load())
		if err := b.round(ctx); err != nil {
			return err
		}
	}
	if b.print(os.Stdout) > 0 {
		return errMissed
	}
	return nil
}

// load is the machine's load average.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
