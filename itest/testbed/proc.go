package testbed

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Interrupt sends SIGINT, as Ctrl-C does.
func (p *Process) Interrupt() { p.Signal(syscall.SIGINT) }

// Kill9 sends SIGKILL to a process that the test started by way of another.
func Kill9(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("cannot kill process %d: %v", pid, err)
	}
}

// WithEnv returns the processes whose environment holds the entry.
func WithEnv(entry string) []int {
	return processes("environ", func(b []byte) bool {
		return bytes.Contains(append([]byte{0}, b...), append([]byte("\x00"+entry), 0))
	})
}

// WithArg returns the processes one of whose arguments contains s, the test's own apart.
func WithArg(s string) []int {
	return processes("cmdline", func(b []byte) bool { return bytes.Contains(b, []byte(s)) })
}

func processes(file string, match func([]byte) bool) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if b, err := os.ReadFile(filepath.Join(d, file)); err == nil && match(b) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Topics returns the names of all topics, by Kafka's own tool.
func (k *Kafka) Topics() map[string]bool {
	k.bed.t.Helper()
	out, err := k.Tool("", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", k.Bootstrap, "--list")
	if err != nil {
		k.bed.t.Fatal(err)
	}
	names := map[string]bool{}
	for _, n := range strings.Fields(out) {
		names[n] = true
	}
	return names
}
