package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/profile"
)

// profileFlags say which profile is wanted.
type profileFlags struct {
	agent        string
	master       bool
	cpu, trace   time.Duration
	heap, stacks bool
	out          string
	chosen       bool // out is our choice, and no file that is there
}

func (s *session) profileCommand() *cobra.Command {
	var f profileFlags
	cmd := &cobra.Command{
		Use: "profile app", Short: "Take a profile of an agent, or of the ApplicationMaster", Args: exactArgs(1, "the id of an application"), ValidArgsFunction: s.completeApp(false),
		Long: `Take a profile of an agent of a running application, or of its ApplicationMaster: what it computes over a while (--cpu), who holds memory (--heap), where each
goroutine stands (--stacks), or what goroutines and scheduler do over a while (--trace). It comes through the ApplicationMaster, and so on YARN through the
ResourceManager's proxy. It takes the right to change the application; profile.enabled=false switches profiles off. Only one is taken of a process at a time, of up to
16 MiB. Profiles hold names of functions and counts, no records and no secrets.

Show them by go tool pprof FILE, and a trace by go tool trace FILE.`,
		Example: "  heddle profile application_1767225600000_0001 --agent agent-1 --cpu 30s -o cpu.pprof\n  heddle profile heddle-1767225600-1a2b3c4d --master --stacks",
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, d, err := f.kind()
			if err != nil {
				return usage(err)
			}
			f.chosen = f.out == ""
			if f.out = f.file(args[0], kind); f.out != "-" {
				if err := f.creatable(); err != nil {
					return precondition(fmt.Errorf("cannot write the profile: %w", err))
				}
			}
			return s.withMaster(cmd.Context(), args, func(ctx context.Context, ask asker) error {
				return s.takeProfile(ctx, ask, f, kind, d)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "the agent, such as agent-1, or 1")
	flags.BoolVar(&f.master, "master", false, "the ApplicationMaster")
	flags.DurationVar(&f.cpu, "cpu", 0, "what it computes, for so long")
	flags.BoolVar(&f.heap, "heap", false, "who holds memory, as of the last garbage collection")
	flags.BoolVar(&f.stacks, "stacks", false, "where each goroutine stands, as text")
	flags.DurationVar(&f.trace, "trace", 0, "what goroutines, scheduler and collector do, for so long")
	flags.StringVarP(&f.out, "output", "o", "", "file to write; -: standard output, which is the default for --stacks; else a new file in the working directory, such as APP-agent-1-cpu.pprof, or …-cpu-2.pprof where that is there")
	return cmd
}

// kind is the one profile that the flags ask for.
func (f *profileFlags) kind() (kind profile.Kind, d time.Duration, err error) {
	n := 0
	for _, k := range []struct {
		set  bool
		kind profile.Kind
		d    time.Duration
	}{{f.cpu != 0, profile.CPU, f.cpu}, {f.heap, profile.Heap, 0}, {f.stacks, profile.Stacks, 0}, {f.trace != 0, profile.Trace, f.trace}} {
		if k.set {
			kind, d = k.kind, k.d
			n++
		}
	}
	switch {
	case n != 1:
		return kind, d, errors.New("say which profile to take: one of --cpu 30s, --heap, --stacks and --trace 5s")
	case f.master == (f.agent != ""):
		return kind, d, errors.New("say whose profile to take: --agent NAME, or --master")
	}
	return kind, d, profile.Check(kind, d)
}

// process is the process that the flags name.
func (f *profileFlags) process() string {
	switch {
	case f.master:
		return appmaster.MasterProcess
	case f.agent[0] >= '0' && f.agent[0] <= '9':
		return "agent-" + f.agent
	}
	return f.agent
}

// file is where the profile goes; -: to standard output.
func (f *profileFlags) file(app string, kind profile.Kind) string {
	switch {
	case f.out != "":
		return f.out
	case kind == profile.Stacks:
		return "-"
	}
	return fmt.Sprintf("%s-%s-%s.%s", app, f.process(), kind, kind.Ext())
}

// creatable reports why the file can't be written, before minutes are spent on what goes into it.
func (f *profileFlags) creatable() error {
	if f.chosen {
		file, err := createNew(f.out)
		if err != nil {
			return err
		}
		return errors.Join(file.Close(), os.Remove(file.Name()))
	}
	return creatable(f.out)
}

func creatable(file string) error {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // who reads a pipe would take this for its end
	}
	_, serr := os.Lstat(file)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = f.Close()
	if errors.Is(serr, os.ErrNotExist) {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// profilePoll is the time between two questions whether a profile is there.
const profilePoll = 200 * time.Millisecond

// takeProfile has a profile taken, waits for it and writes it.
func (s *session) takeProfile(ctx context.Context, ask asker, f profileFlags, kind profile.Kind, d time.Duration) error {
	q := url.Values{"of": {f.process()}, "kind": {string(kind)}}
	if d > 0 {
		q.Set("for", d.String())
	}
	var p appmaster.ProcessProfile
	if err := s.askProfile(ctx, ask, "/api/profiles?"+q.Encode(), f.process(), &p); err != nil {
		return err
	}
	if d > 0 && s.out.tty {
		fmt.Fprintf(s.env.Stderr, "taking a %s profile of %s for %s\n", kind, p.Of, d)
	}
	for p.State == appmaster.ProfileRunning {
		if err := s.pollPause(ctx); err != nil {
			return err
		}
		var all []appmaster.ProcessProfile
		if err := ask(ctx, func(ctx context.Context, c *client) error { return c.do(ctx, http.MethodGet, "/api/profiles", &all) }); err != nil {
			return err
		}
		found := false
		for _, one := range all {
			if one.ID == p.ID {
				p, found = one, true
			}
		}
		if !found {
			return failed(errors.New("the ApplicationMaster does not know of the profile any more: another attempt of it may have begun"))
		}
	}
	if p.State == appmaster.ProfileFailed {
		return failed(fmt.Errorf("%s: %s", p.Of, p.Error))
	}
	var data []byte
	if err := ask(ctx, func(ctx context.Context, c *client) (err error) {
		data, err = c.fetch(ctx, http.MethodGet, fmt.Sprintf("/api/profiles/%d/data", p.ID), nil)
		return err
	}); err != nil {
		return err
	}
	return s.writeProfile(f, p, data)
}

// agentPatience is how long a profile's agent is waited for, of an application that still starts its agents.
const agentPatience = time.Minute

// askProfile has a profile taken. While the job waits for its agents, it waits for the one that is asked about, and says so.
func (s *session) askProfile(ctx context.Context, ask asker, path, of string, p *appmaster.ProcessProfile) error {
	for begun, told := time.Now(), false; ; {
		err := ask(ctx, func(ctx context.Context, c *client) error { return c.actFor(ctx, path, p) })
		a, ok := errors.AsType[*answerError](err)
		if !ok || a.code != http.StatusNotFound || time.Since(begun) > agentPatience {
			return err
		}
		var snap *appmaster.Snapshot
		if e := ask(ctx, func(ctx context.Context, c *client) (e error) { snap, e = c.snapshot(ctx); return e }); e != nil || snap.State != "created" && snap.State != "waiting" {
			return err
		}
		if !told {
			told = true
			fmt.Fprintf(s.env.Stderr, "waiting for %s, for up to %s: the application is starting its agents\n", of, agentPatience)
		}
		if err := s.pollPause(ctx); err != nil {
			return err
		}
	}
}

// pollPause waits until it is time to ask again, or nobody wants to know any more.
func (s *session) pollPause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.env.Signals:
		return &exitError{exitCancelled, errors.New("interrupted"), nil}
	case <-time.After(profilePoll):
		return nil
	}
}

// writeProfile writes a profile where it was wanted.
func (s *session) writeProfile(f profileFlags, p appmaster.ProcessProfile, data []byte) error {
	if f.out == "-" {
		if p.Kind == profile.Stacks {
			data = []byte(printableLines(string(data)))
		}
		_, err := s.env.Stdout.Write(data)
		return err
	}
	out, err := f.write(data)
	if err != nil {
		return precondition(fmt.Errorf("cannot write the profile: %w", err))
	}
	_, err = fmt.Fprintf(s.env.Stdout, "%s\t%d bytes\n", out, len(data))
	return err
}

// write writes the file that was named, or the first of our choice that is not there, even by another command that takes a profile now.
func (f *profileFlags) write(data []byte) (name string, err error) {
	if !f.chosen {
		return f.out, os.WriteFile(f.out, data, 0o600)
	}
	file, err := createNew(f.out)
	if err != nil {
		return f.out, err
	}
	_, err = file.Write(data)
	return file.Name(), errors.Join(err, file.Close())
}

// createNew creates the first file of a name and its numbered ones that is not there.
func createNew(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	for n := 2; errors.Is(err, os.ErrExist); n++ {
		file, err = os.OpenFile(numbered(name, n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	return file, err
}

// numbered is the nth name of a file of which there may be several.
func numbered(name string, n int) string {
	ext := filepath.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
}
