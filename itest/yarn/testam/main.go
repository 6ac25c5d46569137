// Command testam is an ApplicationMaster for tests: it asks for containers, runs a command in each, waits for their ends and unregisters.
// Its environment says what: RM_ADDR, COUNT and COMMAND.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/amrm"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/nm"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := run(context.Background(), log); err != nil {
		log.Error("test master failed", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	me, err := yarnid.ParseContainer(os.Getenv("CONTAINER_ID"))
	if err != nil {
		return err
	}
	data, err := os.ReadFile(os.Getenv("HADOOP_TOKEN_FILE_LOCATION"))
	if err != nil {
		return err
	}
	creds, err := token.Parse(data)
	if err != nil {
		return err
	}
	tokens := creds.Of(token.KindAMRM)
	if len(tokens) != 1 {
		return fmt.Errorf("found %d tokens for the ResourceManager, want 1", len(tokens))
	}
	count, err := strconv.Atoi(os.Getenv("COUNT"))
	if err != nil {
		return err
	}
	outcomes := make(chan book.Outcome, 1000)
	s, reg, err := amrm.Register(ctx, amrm.Config{
		Addrs: strings.Split(os.Getenv("RM_ADDR"), ","), Token: tokens[0], Host: os.Getenv("NM_HOST"), Port: -1, Logger: log, Busy: 100 * time.Millisecond, Idle: 500 * time.Millisecond,
		Heard: func(o book.Outcome) { outcomes <- o },
	})
	if err != nil {
		return err
	}
	defer s.Close()
	log.Info("registered", "container", me, "queue", reg.Queue, "max-memory", reg.MaxMemoryMB, "kept", len(reg.Kept))
	if err := work(ctx, log, s, creds, count, outcomes); err != nil {
		return err
	}
	return s.Finish(ctx, pb.FinalApplicationStatusProto_APP_SUCCEEDED, "all containers have ended", "")
}

// work runs the command in count containers, to the end of the last.
func work(ctx context.Context, log *slog.Logger, s *amrm.Session, creds token.Credentials, count int, outcomes <-chan book.Outcome) error {
	nodes := nm.New(nm.Config{Token: s.NMToken, Logger: log})
	defer nodes.Close()
	s.Want(book.Ask{Key: book.Key{Priority: 1, Request: 1}, Count: count, MemoryMB: 64, VCores: 1})
	started := make(chan error, count)
	ended := 0
	for ended < count {
		select {
		case err := <-started:
			if err != nil {
				return err
			}
		case o := <-outcomes:
			for _, g := range o.Granted {
				log.Info("granted", "container", g.Container, "node", g.Node)
				l := nm.Launch{Container: g.Container, Node: g.Node, Token: g.Token, Command: os.Getenv("COMMAND"), Credentials: creds, Env: map[string]string{"PATH": os.Getenv("PATH")}}
				go func() { started <- nodes.Start(ctx, l) }()
			}
			for _, d := range o.Completed {
				log.Info("completed", "container", d.Container, "status", d.ExitStatus, "diagnostics", d.Diagnostics)
				if d.ExitStatus != 0 {
					return fmt.Errorf("%v ended with %d: %s", d.Container, d.ExitStatus, d.Diagnostics)
				}
				ended++
			}
			if len(o.Surplus) > 0 {
				log.Info("surplus", "containers", o.Surplus)
			}
		case <-s.Done():
			return errors.Join(errors.New("the session is over"), s.Err())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
