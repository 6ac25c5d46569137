package cli

import (
	"context"
	"os"
	"strings"
	"testing"
)

// What can't be started for want of a file or a process is a precondition, and leaves nothing behind.
func TestRunCannotStart(t *testing.T) {
	w := newWorld(t)
	in := &invocation{w: w, done: make(chan int, 1)}
	in.done <- Main(context.Background(), Env{
		Program: "heddle", Args: []string{"run", w.endless()}, Environ: w.environ, Stdin: strings.NewReader(""),
		Stdout: &in.stdout, Stderr: &in.stderr, Executable: w.dir + "/nowhere",
	}, nil)
	in.expect(3, "cannot start the ApplicationMaster", "nowhere")
	if left, err := os.ReadDir(w.state); err != nil || len(left) > 0 {
		t.Errorf("the state directory still holds %v, %v", left, err)
	}
}
