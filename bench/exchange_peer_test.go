package bench

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dieEnv tells a peer by which signal it ends itself, and when: "role signal delay".
const dieEnv = "HEDDLE_BENCH_DIE"

func dieBy(how string) {
	sig, after, _ := strings.Cut(how, " ")
	n, err1 := strconv.Atoi(sig)
	d, err2 := time.ParseDuration(after)
	if err := errors.Join(err1, err2); err != nil {
		panic(err)
	}
	time.Sleep(d)
	syscall.Kill(os.Getpid(), syscall.Signal(n))
}

// TestPeerDies kills each of the other processes, at once or under way: the measurement, which would go on for an hour, ends and says which it was.
func TestPeerDies(t *testing.T) {
	const long = time.Hour
	for name, c := range map[string]struct {
		die, want string
		measure   func(context.Context) error
	}{
		"consumers, at once": {roleConsumer + " 9 0s", `cannot measure the exchange: the consumers' process \(pid \d+\) died: signal: killed`,
			func(ctx context.Context) error { _, err := Exchange(ctx, ExchangeOptions{Duration: long}); return err }},
		"consumers": {roleConsumer + " 9 300ms", `cannot measure the exchange: the consumers' process \(pid \d+\) died: signal: killed`,
			func(ctx context.Context) error {
				_, err := Exchange(ctx, ExchangeOptions{Duration: long, TLS: true})
				return err
			}},
		"raw, at once": {roleRaw + " 9 0s", `the process that reads raw \(pid \d+\) died: signal: killed`,
			func(ctx context.Context) error {
				return runRaw(ctx, ExchangeOptions{Duration: long}, new(ExchangeResult))
			}},
		"latency": {roleLatency + " 9 300ms", `the process that receives \(pid \d+\) died: signal: killed`,
			func(ctx context.Context) error {
				_, err := MeasureLatency(ctx, LatencyOptions{Duration: long})
				return err
			}},
		"traced": {roleTraced + " 9 300ms", `the consumers' process \(pid \d+\) died: signal: killed`,
			func(ctx context.Context) error {
				_, err := Traced(ctx, TracedOptions{Exchange: ExchangeOptions{Duration: long}, Rate: 100})
				return err
			}},
		"collector": {roleCollector + " 9 300ms", `the collector's process \(pid \d+\) died: signal: killed`,
			func(ctx context.Context) error {
				_, err := Traced(ctx, TracedOptions{Exchange: ExchangeOptions{Duration: long}, Rate: 100})
				return err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(dieEnv, c.die)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if err := c.measure(ctx); err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestPeerIsStuck has a process that is stopped and so says nothing: whoever waits for it waits no longer than the measurement lasts.
func TestPeerIsStuck(t *testing.T) {
	t.Setenv(dieEnv, roleConsumer+" "+strconv.Itoa(int(syscall.SIGSTOP))+" 0s")
	ctx, end := bounded(t.Context(), time.Hour)
	p, err := startPeer(ctx, end, "", roleConsumer, peerConfig{Key: make([]byte, 32), Addr: "127.0.0.1:1", Options: ExchangeOptions{RecordSize: 8, Parallelism: 1}})
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan error, 1)
	go func() {
		_, err := p.end(ctx)
		heard <- err
	}()
	cause := errors.New("enough")
	end(cause)
	if err := <-heard; !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
	p.close()
}
