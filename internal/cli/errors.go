package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes of every verb.
const (
	exitOK           = 0 // done; a job: finished
	exitUsage        = 2 // the command line, configuration or job file is wrong
	exitPrecondition = 3 // something needed is not there, or not allowed
	exitTimeout      = 4 // the time limit passed; the application still runs
	exitFailed       = 5 // the job, or the command itself, failed
	exitCancelled    = 6 // the job was cancelled or killed
	exitUnreachable  = 7 // the application or cluster does not answer
)

const exitCodesText = `Every verb ends with one of these codes:

  0  done; of a run: the job finished
  2  usage: the command line, the configuration or the job is wrong; nothing was started
  3  a precondition: something that is needed is not there, such as an input file or the address of brokers, or not allowed
  4  the time limit (--timeout) passed and the application still runs
  5  the job failed
  6  the job was cancelled or killed
  7  the application or the cluster cannot be reached`

// exitCodesTopic is `heddle help exit-codes`.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesText}
}

// exitError is an error with the exit code that it stands for and lines that help to mend it. One without an error has been told already.
type exitError struct {
	code  int
	err   error
	hints []string
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(err error, hints ...string) error        { return &exitError{exitUsage, err, hints} }
func precondition(err error, hints ...string) error { return &exitError{exitPrecondition, err, hints} }
func failed(err error, hints ...string) error       { return &exitError{exitFailed, err, hints} }
func unreachable(err error, hints ...string) error  { return &exitError{exitUnreachable, err, hints} }
