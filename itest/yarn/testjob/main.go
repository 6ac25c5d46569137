// Command testjob is a job of Heddle on YARN for tests: the application's master, or with the argument "agent" one of its agents. It writes the
// numbers below LINES as lines into files in the folder OUT.
package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/yarn"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/netstack"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/amrm"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

const parallelism = 4

func main() {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	run := master
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		run = work
	}
	if err := run(ctx, log); err != nil {
		log.Error("test job failed", "err", err)
		os.Exit(1)
	}
}

// job is the same in every process.
func job() (*heddle.Job, *jobgraph.Graph, error) {
	lines, err := strconv.ParseInt(os.Getenv("LINES"), 10, 64)
	if err != nil {
		return nil, nil, err
	}
	j := heddle.NewJob("numbers")
	numbers := heddle.FromSource(j, heddle.Generate(lines, func(i int64) string { return strconv.FormatInt(i, 10) }))
	spread := numbers.PartitionBy(func(s string, n int) int {
		h := fnv.New32a()
		h.Write([]byte(s))
		return int(h.Sum32() % uint32(n))
	})
	heddle.To(spread, heddle.ToFiles(os.Getenv("OUT")), heddle.Text())
	plan, err := jobgraph.Compile(j.Graph(), jobgraph.Options{Parallelism: parallelism})
	return j, plan, err
}

// work is the role of an agent.
func work(ctx context.Context, log *slog.Logger) error {
	j, plan, err := job()
	if err != nil {
		return err
	}
	secrets, err := yarn.SecretsOf(os.Getenv("HADOOP_TOKEN_FILE_LOCATION"))
	if err != nil {
		return err
	}
	host := os.Getenv("NM_HOST")
	return agent.Run(ctx, agent.Config{Secrets: secrets, Graph: j.Graph(), Plan: plan, Slots: 2, Host: host, Logger: log, Version: "test",
		Exchange: netstack.Config{Listen: net.JoinHostPort(host, "0"), MemorySegments: 512}})
}

// master is the role of the application's master.
func master(ctx context.Context, log *slog.Logger) error {
	j, plan, err := job()
	if err != nil {
		return err
	}
	d, err := driver()
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("NM_HOST"), "0"))
	if err != nil {
		return err
	}
	me, err := yarnid.ParseContainer(os.Getenv("CONTAINER_ID"))
	if err != nil {
		return err
	}
	result, err := appmaster.Run(ctx, appmaster.Config{App: me.Attempt.App.String(), Job: j.Graph(), Graph: plan, Driver: d, Listener: control, Logger: log,
		Agents: slotmgr.Config{SlotsPerAgent: 2, MaxAgents: 8, RegisterTimeout: time.Minute}})
	if err != nil {
		return err
	}
	status, text := pb.FinalApplicationStatusProto_APP_SUCCEEDED, "the job "+result.State
	if result.State != "finished" {
		status = pb.FinalApplicationStatusProto_APP_FAILED
		if result.Cause != nil {
			text += ": " + result.Cause.Message
		}
	}
	return d.Finish(ctx, status, text)
}

// driver starts agents of this very program, from the file that YARN made of it for this container.
func driver() (*yarn.Driver, error) {
	data, err := os.ReadFile(os.Getenv("HADOOP_TOKEN_FILE_LOCATION"))
	if err != nil {
		return nil, err
	}
	creds, err := token.Parse(data)
	if err != nil {
		return nil, err
	}
	tokens := creds.Of(token.KindAMRM)
	if len(tokens) != 1 {
		return nil, fmt.Errorf("found %d tokens for the ResourceManager, want 1", len(tokens))
	}
	size, err1 := strconv.ParseInt(os.Getenv("EXE_SIZE"), 10, 64)
	modified, err2 := strconv.ParseInt(os.Getenv("EXE_MODIFIED"), 10, 64)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("no size or time of the program: %w, %w", err1, err2)
	}
	return yarn.New(yarn.Config{
		Master:   amrm.Config{Addrs: strings.Split(os.Getenv("RM_ADDR"), ","), Token: tokens[0], Host: os.Getenv("NM_HOST"), Port: -1},
		MemoryMB: 256, VCores: 1, Command: "./testjob agent 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr",
		Env:         map[string]string{"LINES": os.Getenv("LINES"), "OUT": os.Getenv("OUT")},
		Resources:   []yarnclient.LocalResource{{Name: "testjob", URI: os.Getenv("EXE"), Visibility: yarnclient.Private, Size: size, Modified: time.UnixMilli(modified)}},
		Credentials: creds,
	})
}
