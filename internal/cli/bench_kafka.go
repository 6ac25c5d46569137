package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"

	"github.com/heddle-stream/heddle/bench"
	"github.com/spf13/cobra"
)

func (s *session) benchKafkaCommand() *cobra.Command {
	var asJSON bool
	var brokers, profile string
	o := bench.KafkaOptions{}
	cmd := &cobra.Command{
		Use: "kafka", Short: "Read a Kafka topic into nothing, or write one", Args: exactArgs(0, ""),
		Long: `Read what a topic holds by the source that jobs use, decode it and throw it away; or, with --write, write records
into it by the sink that jobs use. One process, one reader or writer. Every kafka.* option works as in a job.`,
		Example: `  heddle bench kafka --brokers broker1:9092 --topic clicks --rounds 3
  heddle bench kafka --brokers broker1:9092 --topic scratch --write --records 5000000 --compression zstd --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load()
			if err != nil {
				return err
			}
			o.Option = func(name string) (string, bool) {
				if name == "kafka.brokers" && brokers != "" {
					return brokers, true
				}
				return c.Option(name)
			}
			o.Logger = slog.New(slog.NewTextHandler(s.env.Stderr, nil))
			stop, err := startProfile(profile)
			if err != nil {
				return failed(err)
			}
			defer stop()
			return s.measured(cmd.Context(), func(ctx context.Context) error {
				if err := bench.Kafka(ctx, o, func(r bench.KafkaResult) error { return s.printKafka(r, asJSON) }); err != nil {
					return failed(err)
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&brokers, "brokers", "", "brokers, `host:port,…` (the same as --kafka.brokers)")
	f.StringVar(&o.Topic, "topic", "", "topic to read or write; it must exist")
	f.Int64Var(&o.Records, "records", 0, "stop after so many; 0: what the topic holds, or 1,000,000 to write")
	f.IntVar(&o.Rounds, "rounds", 1, "how often")
	f.BoolVar(&o.Write, "write", false, "write records")
	f.IntVar(&o.RecordSize, "record-size", 100, "bytes of a record to write")
	f.StringVar(&o.Compression, "compression", "none", "of what is written: `none|gzip|snappy|lz4|zstd`")
	f.StringVar(&o.Format, "format", "raw", "of what is read: `raw|text`")
	f.StringVar(&profile, "cpu-profile", "", "write a CPU profile to this `file`")
	f.BoolVar(&asJSON, "json", false, "print JSON, a line for each round")
	return cmd
}

func (s *session) printKafka(r bench.KafkaResult, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(s.env.Stdout).Encode(r)
	}
	what := "read"
	if r.Write {
		what = "wrote"
	}
	_, err := fmt.Fprintf(s.env.Stdout, "%s %d records of %s: %.2f M records/s  %.1f MB/s  %.1f ns CPU/record  %.4f allocations/record  first after %.1f ms\n",
		what, r.Records, r.Topic, r.RecordsPerSecond/1e6, r.BytesPerSecond/1e6, r.CPUNsPerRecord, r.AllocsPerRecord, r.FirstRecordMs)
	return err
}

// startProfile profiles this process into a file, if there is a name for one, until the function it returns is called.
func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}
