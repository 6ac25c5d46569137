package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/heddle-stream/heddle/internal/ship"
)

// packaged runs the verb in the program of the package that the job argument names, such as ./myjob, and reports whether it does name one. The program
// is built static, so that it can be sent to a cluster as it is.
func (s *session) packaged(ctx context.Context, args []string) (bool, error) {
	if s.job != nil {
		return false, nil
	}
	if !ship.IsPackage(args[0]) {
		if st, err := os.Stat(args[0]); err == nil && st.IsDir() {
			return true, usage(fmt.Errorf("cannot run the folder %s: it has no Go program", args[0]), "name a job file, or the folder of a Go program that is a job: one with package main and run.Main")
		}
		return false, nil
	}
	say := func(text string) { fmt.Fprintln(s.env.Stderr, "heddle: "+text) }
	e, err := ship.BuildPackage(ctx, ship.Pick{Platform: ship.Host(), Log: say}, args[0])
	if err != nil && compileError.MatchString(err.Error()) {
		return true, usage(err)
	}
	if err != nil {
		return true, precondition(err)
	}
	defer e.Close()
	return true, s.runProgram(ctx, e.Path, s.argsWithout(args[0]), programName(absolute(args[0])))
}

// compileError is where the compiler found something wrong.
var compileError = regexp.MustCompile(`\.go:\d+(:\d+)?: `)

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// argsWithout is the command line without the job argument: its last word that is the same.
func (s *session) argsWithout(arg string) []string {
	args := slices.Clone(s.env.Args)
	for i, a := range slices.Backward(args) {
		if a == arg {
			return slices.Delete(args, i, i+1)
		}
	}
	return args
}

// runProgram runs a job's own program in the place of this one: signals go on to it, and its exit code is ours.
func (s *session) runProgram(ctx context.Context, path string, args []string, name string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Args[0] = name
	cmd.Env = s.env.Environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.env.Stdin, s.env.Stdout, s.env.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // else the terminal's Ctrl-C would reach it twice, which kills
	if err := cmd.Start(); err != nil {
		return failed(fmt.Errorf("cannot run the job's program: %w", err))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // it is waited for
	for {
		select {
		case sig := <-s.env.Signals:
			_ = cmd.Process.Signal(sig)
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
				return &exitError{code: exit.ExitCode()} // it has said why
			}
			if err != nil {
				return failed(fmt.Errorf("the job's program ended: %w", err))
			}
			return nil
		}
	}
}
