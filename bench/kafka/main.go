// Command kafka measures reading and writing Kafka by Heddle beside other clients, in turns, each in a process of its own:
//
//	go run ./bench/kafka                                                  # against a broker in memory that it starts
//	go run ./bench/kafka --brokers host:9092 --topic t100 --rounds 5      # against a real one, a topic that there is
//	go run ./bench/kafka --write --peer 'mine=./mine'                      # with one more peer
//	make bench-kafka                                                      # every goal, with a real broker, Flink and Kafka's own tools
//
// With --goals it fetches Kafka and Flink by Maven into a folder of the user's cache, starts a broker, fills topics, warms Flink up, and goes through the
// goals of docs/performance.md in rounds; each is printed with the median and range of its ratio, and the exit code is 3 if one was missed.
//
// A peer of another make is a command that reads BROKERS, TOPIC and RECORDS from its environment, and prints a line of JSON with records, seconds and
// cpu_ns_per_record for each round. Trust CPU before rates where other work is going on, and compare within one run.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// settings are what all processes are told.
type settings struct {
	brokers, topic string
	records        int64
	size           int
	write          bool
	repeat         int    // rounds in one process
	profile        string // file for Heddle's CPU profile; "": none
}

// round is what one peer came to in one round.
type round struct {
	Peer    string  `json:"peer"`
	Records int64   `json:"records"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_ns_per_record"`
	Allocs  float64 `json:"allocs_per_record,omitempty"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kafka benchmark:", err)
		if errors.Is(err, errMissed) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	var rounds int
	var only, role, dir string
	var asJSON, goals, noFlink bool
	others := map[string]string{}
	f := flag.NewFlagSet("kafka", flag.ContinueOnError)
	f.StringVar(&s.brokers, "brokers", "", "host:port of brokers; by default one in memory is started")
	f.StringVar(&s.topic, "topic", "bench", "topic to read, or to write")
	f.Int64Var(&s.records, "records", 1_000_000, "records a round; with --goals, those of 100 bytes that are read, by default 5,000,000")
	f.IntVar(&s.repeat, "repeat", 1, "rounds of a peer in one process; of a turn all count")
	f.StringVar(&s.profile, "profile", "", "file for a CPU profile of Heddle's turns")
	f.BoolVar(&goals, "goals", false, "measure every goal, with a broker and Flink of our own")
	f.BoolVar(&noFlink, "no-flink", false, "with --goals, leave Flink out")
	f.StringVar(&dir, "dir", filepath.Join(cacheDir(), "heddle", "peers"), "with --goals, the folder for jars")
	f.IntVar(&s.size, "size", 100, "bytes of a record that is written")
	f.BoolVar(&s.write, "write", false, "write instead of reading")
	f.IntVar(&rounds, "rounds", 3, "how often each has its turn")
	f.StringVar(&only, "peers", "", "names of peers, separated by commas; by default all")
	f.BoolVar(&asJSON, "json", false, "print each round as a line of JSON")
	f.StringVar(&role, "role", "", "what a process of the benchmark is: its own affair")
	f.Func("peer", "one more peer, as name=command", func(v string) error {
		name, command, ok := strings.Cut(v, "=")
		if !ok {
			return errors.New("want name=command")
		}
		others[name] = command
		return nil
	})
	if err := f.Parse(args); err != nil {
		return err
	}
	switch {
	case role == "broker":
		return broker(ctx, s, out)
	case role != "":
		return turn(ctx, s, role, out)
	case goals:
		g := goalSettings{rounds: rounds, records: 5_000_000, noFlink: noFlink, dir: dir}
		f.Visit(func(f *flag.Flag) {
			if f.Name == "records" {
				g.records = s.records
			}
		})
		return runGoals(ctx, g, out)
	}
	if s.brokers == "" {
		end, err := startBroker(ctx, &s)
		if err != nil {
			return fmt.Errorf("cannot start a broker: %w", err)
		}
		defer end()
	}
	names := peerNames(s.write)
	for name := range others {
		names = append(names, name)
	}
	if only != "" {
		names = strings.Split(only, ",")
	}
	var all []round
	for range rounds {
		for _, name := range names {
			r, err := oneTurn(ctx, s, name, others[name])
			if err != nil {
				return fmt.Errorf("peer %s: %w", name, err)
			}
			all = append(all, r...)
			if asJSON {
				for _, r := range r {
					if err := json.NewEncoder(out).Encode(r); err != nil {
						return err
					}
				}
			}
		}
	}
	if asJSON {
		return nil
	}
	return table(out, names, all)
}

// cacheDir is the user's folder for what can be fetched again.
func cacheDir() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return dir
	}
	return os.TempDir()
}

// oneTurn runs a peer in a process of its own.
func oneTurn(ctx context.Context, s settings, name, command string) (out []round, err error) {
	var cmd *exec.Cmd
	if command != "" {
		cmd = exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Env = append(os.Environ(), "BROKERS="+s.brokers, "TOPIC="+s.topic, fmt.Sprint("RECORDS=", s.records))
	} else {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd = exec.CommandContext(ctx, self, "--role", name, "--brokers", s.brokers, "--topic", s.topic, "--records", fmt.Sprint(s.records),
			"--size", fmt.Sprint(s.size), fmt.Sprint("--write=", s.write), "--repeat", fmt.Sprint(max(s.repeat, 1)), "--profile", s.profile)
	}
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		if r := (round{}); json.Unmarshal([]byte(line), &r) == nil && r.Records > 0 {
			r.Peer = name
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it printed no result")
	}
	return out, nil
}

// table prints the medians, and what each is beside the first.
func table(out io.Writer, names []string, all []round) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "peer\tM records/s\tCPU ns/record\tallocations/record\trate ×\tCPU ×")
	var first round
	for i, name := range names {
		var of []round
		for _, r := range all {
			if r.Peer == name {
				of = append(of, r)
			}
		}
		m := round{Records: 1, Seconds: median(of, func(r round) float64 { return r.Seconds / float64(r.Records) }),
			CPU: median(of, func(r round) float64 { return r.CPU }), Allocs: median(of, func(r round) float64 { return r.Allocs })}
		if i == 0 {
			first = m
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.0f\t%.4f\t%.2f\t%.2f\n", name, 1e-6/m.Seconds, m.CPU, m.Allocs, m.Seconds/first.Seconds, first.CPU/m.CPU)
	}
	fmt.Fprintf(w, "(rate ×: how many times as fast %s is; CPU ×: its share of that one's CPU)\n", names[0])
	return w.Flush()
}

func median(of []round, key func(round) float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.SortFunc(of, func(a, b round) int { return cmp.Compare(key(a), key(b)) })
	return key(of[len(of)/2])
}

// startBroker starts a broker in a process of its own, with the topic, full where it is to be read.
func startBroker(ctx context.Context, s *settings) (end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, "--role", "broker", "--topic", s.topic, "--records", fmt.Sprint(s.records), "--size", fmt.Sprint(s.size), fmt.Sprint("--write=", s.write))
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	end = func() {
		cancel()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(pipe).ReadString('\n')
	if s.brokers = strings.TrimSpace(line); err != nil {
		end()
		return nil, errors.New("it says nothing")
	}
	return end, nil
}
