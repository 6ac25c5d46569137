package cli

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/heddle-stream/heddle"
)

// harmful is a job whose first record does harm in a way.
func harmful(way string) *heddle.Job {
	job := heddle.NewJob("harm")
	in, way, _ := strings.Cut(way, ":")
	lines := heddle.From(job, heddle.Files(in), heddle.Text())
	heddle.To(heddle.Map(lines, func(line string) string {
		switch way {
		case "escape":
			panic("\x1b[2Jall is well\rtab\tbed\nand \x9b2J")
		case "crash":
			for range 100 {
				go func() { select {} }()
			}
			go panic("out of its mind")
			select {}
		case "hang":
			select {}
		}
		return line
	}), heddle.Stdout(), heddle.Text())
	return job
}

// harm makes the world's job a harmful one.
func (w *world) harm(way string) {
	w.t.Helper()
	way = w.file("in.txt", text) + ":" + way
	w.job = harmful(way)
	w.environ = append(w.environ, badJob+"="+way)
}

// A job's error can't draw on the terminal.
func TestErrorTextIsHarmless(t *testing.T) {
	for _, target := range []string{"local", "inproc"} {
		w := newWorld(t)
		w.harm("escape")
		in := w.start("run", "--target", target)
		in.expect(5, "all is well", "tab    bed")
		for line := range strings.Lines(in.stderr.String()) {
			if line = strings.TrimSuffix(line, "\n"); strings.ContainsAny(line, "\x1b\r\t") || !utf8.ValidString(line) {
				t.Errorf("target %s: stderr has the line %q", target, line)
			}
		}
	}
}

// Of an agent that crashes, the reason is shown, not the end of the dump of its goroutines.
func TestCrashIsExplained(t *testing.T) {
	w := newWorld(t)
	w.environ = append(w.environ, "GOTRACEBACK=all")
	w.harm("crash")
	w.start("run").expect(5, "exit status 2", "| panic: out of its mind", "| …")
}

// A job whose output nobody wants any more fails by that, not by the signal that tells of it.
func TestStdoutIsClosed(t *testing.T) {
	w := newWorld(t)
	w.harm("none")
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.Close()
	in := &invocation{w: w, done: make(chan int, 1)}
	in.done <- Main(context.Background(), Env{
		Program: "heddle", Args: []string{"run"}, Environ: w.environ, Stdin: strings.NewReader(""),
		Stdout: out, Stderr: &in.stderr, Executable: os.Args[0],
	}, w.job)
	in.expect(5, "broken pipe")
	if text := in.stderr.String(); strings.Contains(text, "signal") {
		t.Errorf("stderr is\n%s\nwant no talk of a signal", text)
	}
}

// A terminal that goes away ends its job in order, as Ctrl-C does.
func TestHangUpCancels(t *testing.T) {
	w := newWorld(t)
	hup := make(chan os.Signal, 1) // or the client would inherit that it is ignored, where the tests run under nohup
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	cmd := exec.Command(os.Args[0], "run", w.endless())
	cmd.Env = append(w.environ, testMain+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	app, _ := w.running()
	signalMaster(t, app, syscall.SIGHUP) // not its affair
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != exitCancelled {
		t.Errorf("the client ended with %s, want exit code %d\n%s", cmd.ProcessState, exitCancelled, w.logs())
	}
	if left, err := w.kept(); err != nil || len(left) > 0 {
		t.Errorf("the state directory still holds %v, %v", left, err)
	}
}

// signalMaster sends a signal to an application's ApplicationMaster.
func signalMaster(t *testing.T, app appDir, sig syscall.Signal) {
	t.Helper()
	var addr struct{ PID int }
	if err := app.readJSON(addrFile, &addr); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(addr.PID, sig); err != nil {
		t.Fatal(err)
	}
}

// What can't be started for want of a file or a process is a precondition, and leaves nothing behind.
func TestRunCannotStart(t *testing.T) {
	w := newWorld(t)
	in := &invocation{w: w, done: make(chan int, 1)}
	in.done <- Main(context.Background(), Env{
		Program: "heddle", Args: []string{"run", w.endless()}, Environ: w.environ, Stdin: strings.NewReader(""),
		Stdout: &in.stdout, Stderr: &in.stderr, Executable: w.dir + "/nowhere",
	}, nil)
	in.expect(3, "cannot start the ApplicationMaster", "nowhere")
	if left, err := w.kept(); err != nil || len(left) > 0 {
		t.Errorf("the state directory still holds %v, %v", left, err)
	}
}

// An ApplicationMaster that hangs is not waited for: neither by itself nor after Ctrl-C.
func TestMasterHangs(t *testing.T) {
	const slow = 30 * time.Second // on a machine with much else to do
	for name, interrupt := range map[string]bool{"left alone": false, "interrupted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			heartbeats := "1s"
			if interrupt {
				heartbeats = "1h"
			}
			in := w.start("run", w.endless(), "--quiet", "--agent.heartbeat-interval", "300ms", "--agent.heartbeat-timeout", heartbeats)
			app, _ := w.running()
			signalMaster(t, app, syscall.SIGSTOP)
			if interrupt {
				in.signals <- os.Interrupt
			}
			in.ends(slow, exitUnreachable, "the ApplicationMaster has not answered for ", "it was killed", "appmaster.log")
			w.gone()
			if left := w.left(app); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	for name, interrupt := range map[string]bool{"before it listens": false, "interrupted before it listens": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			program := w.file("program", "#!/bin/sh\nexec sleep 60\n")
			if err := os.Chmod(program, 0o700); err != nil {
				t.Fatal(err)
			}
			in := &invocation{w: w, signals: make(chan os.Signal, 1), done: make(chan int, 1)}
			env := Env{
				Program: "heddle", Args: []string{"run", w.endless()}, Environ: w.environ, Stdin: strings.NewReader(""),
				Stdout: &in.stdout, Stderr: &in.stderr, Executable: program, Signals: in.signals,
			}
			go func() { in.done <- Main(context.Background(), env, nil) }()
			if interrupt {
				in.signals <- os.Interrupt
			}
			in.ends(slow, exitUnreachable, "the ApplicationMaster did not listen within ", "it was killed")
		})
	}
}

// ends is expect with a limit of its own.
func (in *invocation) ends(within time.Duration, code int, want ...string) {
	in.w.t.Helper()
	got := in.wait(within)
	in.done <- got
	in.expect(code, want...)
}

// A job in this process that is stuck in a function of its own ends by its time limit and by Ctrl-C, and is shown.
func TestStuckInProcess(t *testing.T) {
	for name, args := range map[string][]string{"timeout": {"--timeout", "300ms"}, "interrupt": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.harm("hang")
			cmd := exec.Command(os.Args[0], append([]string{"run", "--target", "inproc"}, args...)...)
			cmd.Env = append(w.environ, testMain+"=1")
			var stderr syncBuffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			code := exitTimeout
			if name == "interrupt" {
				code = exitCancelled
				w.eventually("the job runs", func() bool { return strings.Contains(stderr.String(), "running for") })
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Error(err)
				}
			}
			timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
			defer timer.Stop()
			cmd.Wait()
			if text := stderr.String(); cmd.ProcessState.ExitCode() != code || !strings.Contains(text, "did not stop within 5s") || !strings.Contains(text, "cli.harmful.func") {
				t.Errorf("it ended with %s, want exit code %d and where it hangs; stderr:\n%s", cmd.ProcessState, code, text)
			}
		})
	}
}
