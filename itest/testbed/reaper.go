package testbed

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// bedEnv marks the processes of a bed and all that they start, by the bed's folder with a slash at its end.
const bedEnv = "ITEST_BED"

// reaper outlives the test's process, also one that is killed or runs into go test's own timeout, when no cleanup runs: it is a shell in a
// session of its own that waits for the end of a pipe, which comes by itself when the process that holds the other end is gone.
// Then it kills what bears the bed's mark, in whatever group or session that is, and removes the bed's folder.
// A signal at the parent's death would reach only what the test itself has started, and come when a thread of Go's ends.
type reaper struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

// reap takes the folder as its argument, so that it does not bear the mark. What it kills may be starting another process: it looks again.
const reap = `cat >/dev/null
n=0
while [ $n -lt 100 ]; do
  left=$(grep -lsaF "` + bedEnv + `=$1/" /proc/[0-9]*/environ | cut -d/ -f3)
  [ -n "$left" ] || break
  kill -9 $left 2>/dev/null
  n=$((n+1))
  sleep 0.1
done
rm -rf -- "$1"
`

func startReaper(t testing.TB, dir string) *reaper {
	t.Helper()
	r := &reaper{cmd: exec.Command("sh", "-c", reap, "sh", dir)}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r.cmd.Dir = "/"
	pipe, err := r.cmd.StdinPipe()
	if err == nil {
		r.pipe, err = pipe, r.cmd.Start()
	}
	if err != nil {
		t.Fatalf("cannot start the shell that ends what this test leaves: %v", err)
	}
	return r
}

// end lets the reaper do its work now, and waits for it.
func (r *reaper) end() error {
	_ = r.pipe.Close()
	return r.cmd.Wait()
}

// marked is the environment of a process that belongs to the bed.
func (b *Bed) marked(entries ...string) []string {
	return append(append(os.Environ(), bedEnv+"="+b.dir+"/"), entries...)
}
