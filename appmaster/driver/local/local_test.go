package local

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/drivertest"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
)

// TestMain lets this program play the roles that the driver starts.
func TestMain(m *testing.M) {
	if os.Getenv("HEDDLE_ROLE") == "agent" {
		os.Exit(playAgent())
	}
	if os.Getenv("TEST_ROLE") == "master" {
		playMaster()
	}
	goleak.VerifyTestMain(m)
}

// playAgent does what its argument says.
func playAgent() int {
	secrets, err := ctl.ReadSecrets(filepath.Join(os.Getenv("HEDDLE_AGENT_DIR"), ctl.SecretsFile))
	if err != nil || string(secrets.AgentID) != os.Getenv("HEDDLE_AGENT_ID") {
		fmt.Println("bad secrets:", err)
		return 9
	}
	for _, v := range os.Environ() {
		if strings.Contains(v, string(secrets.ExchangeKey)) || strings.Contains(v, "PRIVATE KEY") {
			fmt.Println("secrets in the environment")
			return 9
		}
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Println("pid", os.Getpid())
	switch os.Args[1] {
	case "panic":
		for range 100 {
			go func() { select {} }()
		}
		panic("out of its mind")
	case "crash":
		fmt.Println("out of luck")
		return 3
	case "obey":
		<-term
		fmt.Println("going")
		return 0
	case "ignore":
		for range term {
			fmt.Println("no")
		}
	}
	return 0
}

// playMaster starts an agent and waits to be killed.
func playMaster() {
	w := newWorld(os.Getenv("HEDDLE_APP_DIR"))
	d, err := New(Config{Args: []string{"ignore"}, Env: os.Environ()})
	if err == nil {
		err = d.Start(w.env())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	d.Ask(1)
	time.Sleep(time.Hour)
}

// world is the master's side of a driver.
type world struct {
	dir     string
	granted chan cluster.AgentID
	exited  chan appmaster.AgentExit
}

func newWorld(dir string) *world {
	return &world{dir, make(chan cluster.AgentID, 100), make(chan appmaster.AgentExit, 100)}
}

func (w *world) env() appmaster.DriverEnv {
	authority, err := pki.NewAuthority("app")
	if err != nil {
		panic(err)
	}
	return appmaster.DriverEnv{
		App: "app", AppDir: w.dir, Logger: slog.New(slog.DiscardHandler),
		Secrets: func(id cluster.AgentID, c cluster.ContainerID) (ctl.AgentSecrets, error) {
			leaf, err := authority.Agent(pki.Name{App: "app", Agent: id})
			return ctl.AgentSecrets{
				App: "app", AgentID: id, ContainerID: string(c), MasterAddr: "127.0.0.1:1",
				Cert: string(leaf.Cert), Key: string(leaf.Key), CA: string(authority.CertPEM()), ExchangeKey: pki.NewExchangeKey(),
			}, err
		},
		Granted: func(id cluster.AgentID, _ cluster.ContainerID, _ string) { w.granted <- id },
		Exited:  func(e appmaster.AgentExit) { w.exited <- e },
		Refused: func(string) {},
	}
}

func begin(t *testing.T, behave string, grace time.Duration) (*Driver, *world) {
	t.Helper()
	w := newWorld(t.TempDir())
	d, err := New(Config{Args: []string{behave}, Env: os.Environ(), Grace: grace})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(w.env()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		d.Stop(ctx)
	})
	return d, w
}

// pid waits until agent n has written its process id.
func (w *world) pid(t *testing.T, n int) int {
	t.Helper()
	path := filepath.Join(w.dir, "agents", strconv.Itoa(n), LogFile)
	for range 1000 {
		data, _ := os.ReadFile(path)
		if line, _, ok := strings.Cut(strings.TrimPrefix(string(data), "pid "), "\n"); ok {
			pid, err := strconv.Atoi(line)
			if err != nil {
				t.Fatalf("agent %d says %q", n, data)
			}
			return pid
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("agent %d does not speak", n)
	return 0
}

func gone(pid int) bool {
	for range 1000 {
		if syscall.Kill(pid, 0) != nil || zombie(pid) {
			return true
		}
		<-time.After(10 * time.Millisecond)
	}
	return false
}

// zombie reports whether a process is dead and only waits to be noticed: an orphan may in a container without an init.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestConformance(t *testing.T) {
	drivertest.Test(t, func(t *testing.T, dir string) drivertest.Subject {
		d, err := New(Config{Args: []string{"obey"}, Env: os.Environ(), Grace: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{dir: dir}
		pid := func(id cluster.AgentID) int {
			n, err := strconv.Atoi(strings.TrimPrefix(string(id), "agent-"))
			if err != nil {
				t.Fatal(err)
			}
			return w.pid(t, n)
		}
		return drivertest.Subject{
			Driver: d,
			Up:     func(id cluster.AgentID) { pid(id) },
			Crash:  func(id cluster.AgentID) { _ = syscall.Kill(pid(id), syscall.SIGKILL) },
		}
	})
}

func TestCrash(t *testing.T) {
	d, w := begin(t, "crash", 0)
	d.Ask(1)
	e := <-w.exited
	if id := <-w.granted; id != "agent-1" {
		t.Errorf("granted %s", id)
	}
	if e.Agent != "agent-1" || e.Reason != "exit status 3" || !e.Blame || len(e.LastLogs) != 2 || e.LastLogs[1] != "out of luck" {
		t.Errorf("exit %+v", e)
	}
	if entries, _ := os.ReadDir(filepath.Join(w.dir, "agents", "1")); len(entries) != 1 {
		t.Errorf("left behind: %v, want the log alone", entries)
	}
	d.Ask(1) // not started anew
	if len(w.granted) > 0 {
		t.Error("an agent that crashed was started again")
	}
}

// What an agent says when it panics is not hidden by the dump of its goroutines.
func TestPanic(t *testing.T) {
	t.Setenv("GOTRACEBACK", "all")
	d, w := begin(t, "panic", 0)
	d.Ask(1)
	if e := <-w.exited; e.Reason != "exit status 2" || len(e.LastLogs) != lastLines || e.LastLogs[0] != "panic: out of its mind" {
		t.Errorf("exit %+v", e)
	}
}

func TestKilled(t *testing.T) {
	d, w := begin(t, "obey", 0)
	d.Ask(2)
	if err := syscall.Kill(w.pid(t, 2), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := <-w.exited; e.Agent != "agent-2" || e.Reason != "killed by signal 9 (killed)" || !e.Blame {
		t.Errorf("exit %+v", e)
	}
}

func TestReturn(t *testing.T) {
	d, w := begin(t, "obey", 0)
	d.Ask(2)
	w.pid(t, 1)
	d.Return("agent-1", false)
	d.Return("agent-1", false)
	d.Return("agent-9", false)
	if e := <-w.exited; e.Agent != "agent-1" || e.Blame || e.LastLogs[len(e.LastLogs)-1] != "going" {
		t.Errorf("exit %+v", e)
	}
	pid := w.pid(t, 2)
	d.Stop(t.Context())
	if syscall.Kill(pid, 0) == nil {
		t.Error("Stop returned before the agent had ended")
	}
	d.Ask(9)
	if len(w.granted) != 2 {
		t.Errorf("%d agents were granted, want 2: none after Stop", len(w.granted))
	}
}

// TestStubborn ends agents that don't listen: after the grace, or when Stop has no more time.
func TestStubborn(t *testing.T) {
	d, w := begin(t, "ignore", 50*time.Millisecond)
	d.Ask(1)
	w.pid(t, 1)
	d.Return("agent-1", false)
	if e := <-w.exited; !strings.Contains(e.Reason, "signal 9") {
		t.Errorf("exit %+v", e)
	}
	d, w = begin(t, "ignore", time.Hour)
	d.Ask(2)
	w.pid(t, 1)
	w.pid(t, 2)
	d.Return("agent-2", true)
	if e := <-w.exited; e.Agent != "agent-2" || !strings.Contains(e.Reason, "signal 9") || e.Blame {
		t.Errorf("exit %+v", e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	d.Stop(ctx)
	if e := <-w.exited; !strings.Contains(e.Reason, "signal 9") {
		t.Errorf("exit %+v", e)
	}
}

func TestNoProgram(t *testing.T) {
	w := newWorld(t.TempDir())
	d, err := New(Config{Executable: "/nowhere/heddle"})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(w.env()); err != nil {
		t.Fatal(err)
	}
	d.Ask(1)
	if e := <-w.exited; !strings.Contains(e.Reason, "cannot start /nowhere/heddle") || !e.Blame {
		t.Errorf("exit %+v", e)
	}
	d.Stop(t.Context())
}

// TestOrphan kills the master: its agents go with it, though they ignore every signal they can.
func TestOrphan(t *testing.T) {
	if dieWithParent() == nil {
		return // the system has no such means; agents then notice the broken session
	}
	w := newWorld(t.TempDir())
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_ROLE=master", "HEDDLE_APP_DIR="+w.dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := w.pid(t, 1)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(bufio.NewReader(out))
	_ = cmd.Wait()
	if !gone(pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("the agent outlived its master, which said %q", said)
	}
}
