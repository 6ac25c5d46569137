// Command heddle runs stream-processing jobs written in YAML.
// For jobs written in Go, see package run, which gives a program the same verbs.
package main

import (
	"context"
	"os"

	"github.com/heddle-stream/heddle/internal/cli"
)

func main() {
	env, stop := cli.System()
	code := cli.Main(context.Background(), env, nil)
	stop()
	os.Exit(code)
}
