// Package run gives a program that holds a job all verbs of the heddle command.
//
//	func main() {
//		job := heddle.NewJob("clicks-per-user")
//		… // add sources, operators and sinks
//		run.Main(job)
//	}
//
//	go run ./clicks plan
//	go run ./clicks run --agents 3
//
// # What main may do
//
// The program is started anew for each role of an application: once by the user, once as ApplicationMaster
// and once for every agent, with the same arguments. A job's functions are not shipped: each process runs
// main up to [Main] and finds them in the graph that it built. So until it calls Main, main
//
//   - must build the same graph every time. The graphs' fingerprints are compared; a main that depends on the
//     time, on chance, on the host or on its working directory is refused;
//   - must have no effects: no files written, nothing printed to stdout, no connections opened. What an
//     operator needs, it opens in its Open and closes in its Close;
//   - may read its own flags: if main has called [flag.Parse], Main takes the arguments that are left.
//     Environment variables are handed on to every role, save those that begin with HEDDLE_.
//
// Main does not return: what is deferred in main does not run.
package run

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/cli"
)

// Main runs the verb, or the role, that the process was started for, and exits.
// A job with errors is reported when a verb needs it; nil is refused.
func Main(job *heddle.Job) {
	if job == nil {
		fmt.Fprintln(os.Stderr, "heddle: run.Main got nil for the job: give it what heddle.NewJob returned")
		os.Exit(2)
	}
	env, stop := cli.System()
	if flag.Parsed() {
		env.Rest = flag.Args()
	}
	code := cli.Main(context.Background(), env, job)
	stop()
	os.Exit(code)
}
