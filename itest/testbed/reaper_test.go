package testbed

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const victimEnv = "TESTBED_VICTIM"

// TestKilledTestLeavesNothing kills the process of a test whose services have started others, one of them in a session of its own.
func TestKilledTestLeavesNothing(t *testing.T) {
	if os.Getenv(victimEnv) != "" {
		beVictim(t)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledTestLeavesNothing$")
	cmd.Env = append(os.Environ(), victimEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	dir := strings.TrimSpace(line)
	mark := bedEnv + "=" + dir + "/"
	b := New(t)
	b.Eventually("all run", 2*time.Minute, func() error {
		if pids := WithEnv(mark); len(pids) != 4 {
			return fmt.Errorf("the bed %q has processes %v, want 4", dir, pids)
		}
		return nil
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	b.Eventually("all is gone", 2*time.Minute, func() error {
		if left := WithEnv(mark); len(left) > 0 {
			return fmt.Errorf("processes %v are left", left)
		}
		if _, err := os.Stat(dir); err == nil {
			return fmt.Errorf("%s is left", dir)
		}
		return nil
	})
}

// beVictim is a test that hangs, after its service has told that all its processes run.
func beVictim(t *testing.T) {
	b := New(t)
	p := b.Start(Spec{Name: "daemon", Path: "sh", Args: []string{"-c", `sleep 1000 & setsid sh -c 'sleep 1000 & echo ready; wait' & wait`}})
	b.Eventually("the daemon is ready", time.Minute, func() error {
		if p.Output() != "ready\n" {
			return fmt.Errorf("it says %q", p.Output())
		}
		return nil
	})
	fmt.Println(b.dir)
	select {}
}
