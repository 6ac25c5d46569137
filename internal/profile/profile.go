// Package profile takes profiles of this process: what it computes, what memory it holds, where its goroutines stand. They hold names of
// functions, addresses and counts, and neither records nor secrets.
package profile

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/pprof"
	"runtime/trace"
	"time"
)

// Kind is what a profile shows.
type Kind string

// The kinds of profiles.
const (
	CPU    Kind = "cpu"    // what the process computes, over a while; for go tool pprof
	Heap   Kind = "heap"   // who holds memory, and who has asked for it; for go tool pprof
	Stacks Kind = "stacks" // where each goroutine stands; text
	Trace  Kind = "trace"  // what goroutines, the scheduler and the collector do, over a while; for go tool trace
)

// Bounds of profiles.
const (
	MaxSize  = 16 << 20         // bytes
	MaxCPU   = 5 * time.Minute  // of a CPU profile
	MaxTrace = 30 * time.Second // of a trace, which grows fast
)

// Check refuses what Take would.
func Check(kind Kind, d time.Duration) error {
	most := time.Duration(0)
	switch kind {
	case CPU:
		most = MaxCPU
	case Trace:
		most = MaxTrace
	case Heap, Stacks:
		return nil
	default:
		return fmt.Errorf("there is no profile %q: there are cpu, heap, stacks and trace", kind)
	}
	if d <= 0 || d > most {
		return fmt.Errorf("a %s profile can take up to %s, not %s", kind, most, d)
	}
	return nil
}

// Ext ends the name of a file with such a profile.
func (k Kind) Ext() string {
	switch k {
	case Stacks:
		return "txt"
	case Trace:
		return "trace"
	}
	return "pprof"
}

// ErrTooLarge says that a profile was given up since it grew beyond MaxSize.
var ErrTooLarge = fmt.Errorf("the profile is larger than %d MiB: take a shorter one", MaxSize>>20)

// Take makes a profile of this process. One that takes a while ends with an error when ctx does. Only one of each kind can be taken at a time.
func Take(ctx context.Context, kind Kind, d time.Duration) ([]byte, error) {
	if err := Check(kind, d); err != nil {
		return nil, err
	}
	out := &bounded{}
	var err error
	switch kind {
	case Heap:
		err = pprof.Lookup("heap").WriteTo(out, 0)
	case Stacks:
		err = pprof.Lookup("goroutine").WriteTo(out, 2)
	case CPU:
		if err = pprof.StartCPUProfile(out); err == nil {
			err = wait(ctx, d)
			pprof.StopCPUProfile()
		}
	case Trace:
		if err = trace.Start(out); err == nil {
			err = out.wait(ctx, d)
			trace.Stop()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot take the %s profile: %w", kind, err)
	}
	if out.full != nil {
		return nil, fmt.Errorf("cannot take the %s profile: %w", kind, ErrTooLarge)
	}
	if kind == Stacks {
		return withoutArguments(out.Bytes()), nil
	}
	return out.Bytes(), nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errors.New("the process is ending")
	}
}

// arguments are the words that functions were called with, in a line of a stack that names a function.
var arguments = regexp.MustCompile(`(?m)^([^\t\n].*)\([^()\n]*\)$`)

// withoutArguments leaves out the values of arguments: mostly addresses, but a number may be a part of a record.
func withoutArguments(stacks []byte) []byte { return arguments.ReplaceAll(stacks, []byte("$1(…)")) }
