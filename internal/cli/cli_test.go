package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/conf"
)

// outcome of a command run in process.
type outcome struct {
	code           int
	stdout, stderr string
}

// command runs the command in this process. The environment holds a home of its own and what environ adds.
func command(t *testing.T, job *heddle.Job, environ []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Main(context.Background(), Env{
		Program: "heddle", Args: args, Environ: append([]string{"HOME=" + t.TempDir()}, environ...),
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Executable: os.Args[0],
	}, job)
	return outcome{code, stdout.String(), stderr.String()}
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "heddle.yaml")
	if err := os.WriteFile(file, []byte("agents: 3\nexchange.tsl: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args    string
		environ []string
		code    int
		stdout  []string // all are in it
		stderr  []string
	}{
		{"", nil, 0, []string{"Usage:", "Verbs:", "  config", "heddle exit-codes"}, nil},
		{"help exit-codes", nil, 0, []string{"5  the job failed"}, nil},
		{"version", nil, 0, []string{"heddle ", "go1."}, nil},
		{"plna", nil, 2, nil, []string{"heddle: there is no verb \"plna\"\n  did you mean `heddle plan`?\n"}},
		{"job.yaml", nil, 2, nil, []string{"to run a job: heddle run job.yaml"}},
		{"plan", nil, 2, nil, []string{"heddle: heddle plan takes a job file (- for standard input), got 0 arguments\n  usage: heddle plan job.yaml"}},
		{"plan none.yaml", nil, 2, nil, []string{"heddle: cannot read the job: open none.yaml: no such file"}},
		{"config --agnets 3", nil, 2, nil, []string{"unknown flag: --agnets", "did you mean --agents?"}},
		{"config agents --agents 4", nil, 0, []string{"agents\t4\tflag --agents\n", "agents.max\t0\tdefault\n"}, nil},
		{"config agents", []string{"HEDDLE_AGENTS=5"}, 0, []string{"agents\t5\tenvironment HEDDLE_AGENTS\n"}, nil},
		{"config --changed --json --exchange.tls -D log.level=debug", nil, 0, []string{`"name": "exchange.tls"`, `"where": "-D log.level"`}, nil},
		{"config agents --agents few", nil, 2, nil, []string{`heddle: --agents: option agents: "few" is not a whole number, from 1 to 10000`}},
		{"config agnets", nil, 2, nil, []string{"did you mean agents?"}},
		{"config --config " + file, nil, 2, nil, []string{file + `:2:1: unknown option "exchange.tsl"; did you mean "exchange.tls"?`}},
		{"config", []string{"HEDDLE_CONF=/none"}, 2, nil, []string{"$HEDDLE_CONF", "/none"}},
		{"config --defaults", nil, 0, []string{"#agents: 2\n"}, nil},
		{"logs", nil, 3, nil, []string{"no application runs on this host"}},
		{"logs nope", nil, 3, nil, []string{`there is no application "nope"`}},
		{"bench exchange --record-size 0", nil, 2, nil, []string{"--record-size 0 is not from 8 to 16384"}},
		{"bench exchange --partitioner has", nil, 2, nil, []string{`--partitioner "has" is neither rebalance nor hash`}},
		{"bench exchange --duration 0s", nil, 2, nil, []string{"--duration 0s is not positive"}},
		{"bench exchange --help", nil, 0, []string{"from 8 to 16384"}, nil},
		{"__complete run --exchange.t", nil, 0, []string{"--exchange.tls\t"}, nil},
		{"__complete run -D exchange.t", nil, 0, []string{"exchange.tls=\t"}, nil},
		{"__complete run -D exchange.tls=t", nil, 0, []string{"exchange.tls=true\n"}, nil},
		{"__complete run -D log.format=", nil, 0, []string{"log.format=json\n"}, nil},
		{"__complete run o", nil, 0, []string{"yaml\nyml\n:8\n"}, nil},
	}
	for _, tt := range tests {
		got := command(t, nil, tt.environ, strings.Fields(tt.args)...)
		if got.code != tt.code {
			t.Errorf("heddle %s: exit code %d, want %d; stderr %s", tt.args, got.code, tt.code, got.stderr)
		}
		for _, want := range tt.stdout {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("heddle %s: stdout\n%s\nwant %q in it", tt.args, got.stdout, want)
			}
		}
		for _, want := range tt.stderr {
			if !strings.Contains(got.stderr, want) {
				t.Errorf("heddle %s: stderr\n%s\nwant %q in it", tt.args, got.stderr, want)
			}
		}
		if strings.HasPrefix(tt.args, "__complete") {
			continue
		}
		if tt.code != 0 && got.stdout != "" {
			t.Errorf("heddle %s: failed, but wrote to stdout: %s", tt.args, got.stdout)
		}
	}
}

// Every verb has a short help and an example, and prints help without touching anything.
func TestHelp(t *testing.T) {
	s := &session{env: Env{Program: "heddle", Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}}
	s.out = newTerminal(s.env, s.env.Stdout)
	for _, c := range s.root().Commands() {
		if !c.Runnable() || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.Short == "" || c.Example == "" && !c.HasSubCommands() {
			t.Errorf("heddle %s lacks a summary or an example", c.Name())
		}
		got := command(t, nil, nil, c.Name(), "--help")
		if got.code != 0 || !strings.Contains(got.stdout, "Usage:") || got.stderr != "" {
			t.Errorf("heddle %s --help: exit code %d, stdout %q, stderr %q", c.Name(), got.code, got.stdout, got.stderr)
		}
	}
}

func TestTableIsPlainInAPipe(t *testing.T) {
	var b bytes.Buffer
	out := newTerminal(Env{}, &b)
	if err := out.table([]string{"A", "B"}, [][]string{{"x\x1b[2J", "ü"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "x�[2J\tü\n"; got != want {
		t.Errorf("table in a pipe = %q, want %q", got, want)
	}
	out.tty = true
	b.Reset()
	if err := out.table([]string{"A", "B"}, [][]string{{"üü", "1"}, {"z", "22"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "A   B\nüü  1\nz   22\n"; got != want {
		t.Errorf("table on a terminal = %q, want %q", got, want)
	}
}

// The demo must not try to authenticate to its own broker because the user's configuration does.
func TestDemoConfig(t *testing.T) {
	r, err := registry()
	if err != nil {
		t.Fatal(err)
	}
	c := conf.New(r)
	for name, text := range map[string]string{"kafka.sasl.mechanism": "PLAIN", "kafka.sasl.password": "hunter2", "kafka.tls.enabled": "true", "kafka.brokers": "prod:9092"} {
		if err := c.Set(name, text, conf.FromEnvironment, "test"); err != nil {
			t.Fatal(err)
		}
	}
	if err := demoConfig(c, "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if c.Text("kafka.sasl.mechanism") != "" || len(c.Secrets()) > 0 || c.Bool("kafka.tls.enabled") || c.List("kafka.brokers")[0] != "127.0.0.1:1" || c.Int("parallelism") != 4 {
		t.Errorf("the demo runs with\n%s", c.AppendYAML(nil))
	}
}

// TestHelpOfProgram offers a program that is a job what it can use, and its own options.
func TestHelpOfProgram(t *testing.T) {
	job := heddle.NewJob("x")
	for _, verb := range []string{"demo", "schema", "bench"} {
		if got := command(t, job, nil, verb); got.code != 2 {
			t.Errorf("%s: exit code %d", verb, got.code)
		}
	}
	if got := command(t, job, nil, "help"); strings.Contains(got.stdout, "schema") || !strings.Contains(got.stdout, "  run ") {
		t.Errorf("help is\n%s", got.stdout)
	}
}

// TestCompleteApp offers ids of applications.
func TestCompleteApp(t *testing.T) {
	state := t.TempDir()
	app, lock, err := createApp(state, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"status", "logs", "cancel"} {
		if got := command(t, nil, nil, "__complete", verb, "--state-dir", state, ""); !strings.Contains(got.stdout, app.id+"\n") {
			t.Errorf("%s: completion offers\n%s", verb, got.stdout)
		}
	}
	lock.Close()
	if got := command(t, nil, nil, "__complete", "cancel", "--state-dir", state, ""); strings.Contains(got.stdout, app.id) {
		t.Errorf("cancel: completion offers what has ended:\n%s", got.stdout)
	}
}
