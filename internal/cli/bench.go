package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/bench"
	"github.com/spf13/cobra"
)

func (s *session) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure Heddle against what this machine can do",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("there is no benchmark %q", args[0]), "there are: heddle bench exchange, heddle bench kafka, heddle bench slots")
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(s.benchExchangeCommand(), s.benchKafkaCommand(), s.benchSlotsCommand())
	return cmd
}

func (s *session) benchExchangeCommand() *cobra.Command {
	var asJSON bool
	var traceRate float64
	o := bench.ExchangeOptions{}
	cmd := &cobra.Command{
		Use: "exchange", Short: "Move records between two processes, beside a raw TCP loop", Args: exactArgs(0, ""),
		Long: `Send records from producers in one process to consumers in another over loopback TCP, through the exchange
that jobs use, and verify every one; then run a raw TCP loop between the same processes, to compare with.

With --trace-rate, tell instead what following so many records a second costs: the exchange with and without, in short windows
that take turns, with a collector in a third process whose time does not count. 30 s or more tell 1 % on a quiet machine.`,
		Example: "  heddle bench exchange --record-size 8 --parallelism 2 --partitioner hash\n  heddle bench exchange --record-size 100 --tls --json\n" +
			"  heddle bench exchange --trace-rate 1000 --duration 60s",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkExchange(o); err != nil {
				return err
			}
			if traceRate < 0 || traceRate > 0 && o.Partitioner != "rebalance" {
				return usage(fmt.Errorf("--trace-rate %g can't be measured: it must be more than 0, and --partitioner rebalance", traceRate))
			}
			c, err := s.load()
			if err != nil {
				return err
			}
			if err := checkExchangeOptions(c); err != nil {
				return err
			}
			x := exchangeConfig(c)
			o.SegmentBytes, o.ExclusivePerChannel, o.FloatingPerGate = x.SegmentBytes, x.ExclusivePerChannel, x.FloatingPerGate
			o.MaxPerChannel, o.MaxPerSubpartition = x.MaxPerChannel, x.MaxPerSubpartition
			o.Compression, o.Checksum = x.Compression, x.Checksum
			o.Executable, o.Parallelism, o.TLS = s.env.Executable, c.Int("parallelism"), c.Bool("exchange.tls") || o.TLS
			return s.measured(cmd.Context(), func(ctx context.Context) error {
				if traceRate > 0 {
					res, err := bench.Traced(ctx, bench.TracedOptions{Exchange: o, Rate: traceRate})
					if err != nil {
						return failed(err)
					}
					return s.printTraced(res, asJSON)
				}
				res, err := bench.Exchange(ctx, o)
				if err != nil {
					return failed(err)
				}
				return s.printExchange(res, asJSON)
			})
		},
	}
	cmd.Flags().IntVar(&o.RecordSize, "record-size", 8, "bytes of a record, from 8 to 16384; 8 is a uint64, more is a []byte")
	cmd.Flags().StringVar(&o.Partitioner, "partitioner", "rebalance", "`rebalance|hash`")
	cmd.Flags().DurationVar(&o.Duration, "duration", 5*time.Second, "how long to measure")
	cmd.Flags().BoolVar(&o.TLS, "tls", false, "encrypt (the same as --exchange.tls)")
	cmd.Flags().Float64Var(&traceRate, "trace-rate", 0, "tell what following so many records a second costs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// measured runs a benchmark until it is done or a signal ends it.
func (s *session) measured(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.env.Signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	err := run(ctx)
	cancel(nil)
	<-watched
	if err != nil && context.Cause(ctx) == errInterrupted {
		return &exitError{exitCancelled, errInterrupted, nil}
	}
	return err
}

func (s *session) printExchange(r bench.ExchangeResult, asJSON bool) error {
	if asJSON {
		return s.out.json(r)
	}
	const line = "%-10s %8.1f M records/s  %8.1f MB/s  %7.1f ns CPU/record  %6.3f allocations/record\n"
	_, err := fmt.Fprintf(s.env.Stdout, line, "exchange", r.RecordsPerSecond/1e6, r.BytesPerSecond/1e6, r.CPUNsPerRecord, r.AllocsPerRecord)
	raw := "raw TCP"
	if r.TLS {
		raw = "raw TLS"
	}
	_, err2 := fmt.Fprintf(s.env.Stdout, "%-10s %8.1f M records/s  %8.1f MB/s  %7.1f ns CPU/record\n", raw,
		r.RawBytesPerSecond/float64(r.RecordSize)/1e6, r.RawBytesPerSecond/1e6, r.RawCPUNsPerKB*float64(r.RecordSize)/1000)
	_, err3 := fmt.Fprintf(s.env.Stdout, "ratio      %8.2f (%d records of %d bytes verified, parallelism %d, %s)\n",
		r.BytesPerSecond/r.RawBytesPerSecond, r.Records, r.RecordSize, r.Parallelism, r.Partitioner)
	_, err4 := fmt.Fprintf(s.env.Stdout, "memory     %8.1f MB of the larger process\n", float64(r.ResidentBytes)/1e6)
	return errors.Join(err, err2, err3, err4)
}

func (s *session) printTraced(r bench.TracedResult, asJSON bool) error {
	if asJSON {
		return s.out.json(r)
	}
	_, err := fmt.Fprintf(s.env.Stdout, `off        %8.3f ns CPU/record
traced     %8.3f ns CPU/record, %g records a second followed: %.0f spans a second, %d lost
ratio      %v by processor time, %v by records a second: the middle of %d rounds, and where it lies by 95 %%
a trace    %.1f µs CPU (%.1f to %.1f) in both processes
`, r.Off, r.Traced, r.Rate, r.Spans, r.Lost, r.PerCPU, r.PerSecond, r.Rounds, r.PerTrace.Median, r.PerTrace.Low, r.PerTrace.High)
	return err
}

// checkExchange refuses what cannot be measured.
func checkExchange(o bench.ExchangeOptions) error {
	switch {
	case o.RecordSize < 8 || o.RecordSize > 16<<10:
		return usage(fmt.Errorf("--record-size %d is not from 8 to 16384", o.RecordSize))
	case o.Partitioner != "rebalance" && o.Partitioner != "hash":
		return usage(fmt.Errorf("--partitioner %q is neither rebalance nor hash", o.Partitioner))
	case o.Duration <= 0:
		return usage(fmt.Errorf("--duration %s is not positive", o.Duration))
	}
	return nil
}
