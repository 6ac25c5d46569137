package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// limits are what the kernel does with this process's memory: the most bytes of a core file, and whether others of the user may read it.
func limits(t *testing.T) string {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%t %t", l.Cur == 0, dumpable(t))
}

// TestShut: every verb and role keeps its memory from core files and debuggers, unless it is told not to.
func TestShut(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &was); err != nil {
			t.Error(err)
		}
	}()
	shutNow, open := fmt.Sprintf("true %t", traced()), fmt.Sprintf("%t true", was.Max == 0)
	if err := reopen(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		environ []string
		args    string
		want    string
	}{
		{nil, "version", shutNow},
		{nil, "config agents", shutNow},
		{[]string{"HEDDLE_ROLE=agent"}, "run", shutNow},
		{nil, "config agents --debuggable", open},
		{nil, "config agents --target inproc", open},
		{nil, "config agents --target yarn", shutNow},
	} {
		command(t, nil, tt.environ, strings.Fields(tt.args)...)
		if got := limits(t); got != tt.want {
			t.Errorf("%s %v: %s, want %s", tt.args, tt.environ, got, tt.want)
		}
	}
}

// TestSecretsStayIn: secret options, by whatever way they are set, are in no process's arguments or environment, in no log, report or answer.
func TestSecretsStayIn(t *testing.T) {
	w := newWorld(t)
	file := w.file("heddle.yaml", "kafka.sasl.password: hunter2-file\n")
	w.environ = append(w.environ, "HEDDLE_SCHEMA_REGISTRY_PASSWORD=hunter2-own", "OTEL_EXPORTER_OTLP_HEADERS=authorization=hunter2-foreign")
	in := w.start("run", w.endless(), "--parallelism", "4", "--config", file)
	app, _ := w.running()
	look := func(where, text string) {
		t.Helper()
		if i := strings.Index(text, "hunter2"); i >= 0 {
			t.Errorf("%s has a secret: %.40q", where, text[max(0, i-20):])
		}
	}
	pids := w.processes()
	if len(pids) < 2 {
		t.Errorf("there are %d processes", len(pids))
	}
	for _, pid := range pids {
		for _, f := range []string{"environ", "cmdline"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, f))
			if err != nil {
				t.Fatal(err)
			}
			look(fmt.Sprintf("%s of process %d", f, pid), string(text))
		}
	}
	for _, verb := range []string{"config --json", "plan " + w.endless(), "status --json", "list --json", "logs"} {
		out := command(t, nil, append(w.environ, "HEDDLE_CONF="+file), strings.Fields(verb)...)
		if out.code != 0 {
			t.Errorf("%s ends with %d: %s", verb, out.code, out.stderr)
		}
		look(verb, out.stdout+out.stderr)
	}
	c, err := openClient(app)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, path := range []string{"/api/job", "/api/configuration", "/api/agents", "/metrics", "/"} {
		text, err := c.fetch(t.Context(), "GET", path, nil)
		if err != nil {
			t.Error(err)
		}
		look("GET "+path, string(text))
	}
	held := 0
	err = filepath.Walk(w.state, func(path string, st os.FileInfo, err error) error {
		if err != nil || !st.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, st.Mode())
		}
		if st.Name() != secretFile {
			look(path, string(text))
		} else if strings.Contains(string(text), "hunter2-file") && strings.Contains(string(text), "hunter2-own") && strings.Contains(string(text), "hunter2-foreign") {
			held++
		}
		return nil
	})
	if err != nil || held < 2 {
		t.Errorf("%d files hold the secrets, %v", held, err)
	}
	w.start("cancel").expect(0)
	in.expect(6)
	look("the command's output", in.stdout.String()+in.stderr.String())
}
