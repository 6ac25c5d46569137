package yarn

import (
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// Classes of Hadoop's own command line.
const (
	applicationCLI = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
	logsCLI        = "org.apache.hadoop.yarn.client.cli.LogsCLI"
)

// testCommand has an application of Heddle's seen, ended and read by Hadoop's own commands, and programs sent by each of the ways there are.
func (x *bench) testCommand(t *testing.T) {
	c := &command{bench: x, exe: testbed.BuildHeddle(t, x.bed)}
	t.Run("commands", c.testHadoopCommands)
	t.Run("along", c.testShipAlong)
	t.Run("local", c.testLocalBinary)
	t.Run("go", c.testGoJob)
}

// hadoopTool runs one of Hadoop's commands as the user and wants texts in what it prints.
func (c *command) hadoopTool(t *testing.T, texts []string, class string, args ...string) string {
	t.Helper()
	out, err := c.h.Tool(user, class, args...)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%s %q: want %q in\n%s", path.Ext(class)[1:], args, text, out)
		}
	}
	return out
}

func (c *command) testHadoopCommands(t *testing.T) {
	// Who reads the logs of what still runs is, to a NodeManager without security, whoever its pages are shown to.
	app := c.detached(t, c.endless(), "--yarn.acl-view", "*")
	s := c.running(t, app)
	c.hadoopTool(t, []string{app, "endless", "HEDDLE", user, "RUNNING"}, applicationCLI, "application", "-list")
	c.hadoopTool(t, []string{"Application-Name : endless", "Application-Type : HEDDLE", "State : RUNNING", "Tracking-URL : http"}, applicationCLI, "application", "-status", app)
	attempt := attemptOfName(t, app).String()
	c.hadoopTool(t, []string{attempt, "RUNNING"}, applicationCLI, "applicationattempt", "-list", app)
	want := []string{"Total number of containers :" + fmt.Sprint(1+len(s.Snapshot.Agents))}
	for _, a := range s.Snapshot.Agents {
		want = append(want, a.Container)
	}
	c.hadoopTool(t, want, applicationCLI, "container", "-list", attempt)
	c.hadoopTool(t, []string{"registered with YARN"}, logsCLI, "-applicationId", app)
	c.hadoopTool(t, []string{"Killing application " + app}, applicationCLI, "application", "-kill", app)
	c.hadoopTool(t, []string{"State : KILLED", "Final-State : KILLED"}, applicationCLI, "application", "-status", app)
	c.run(t, 6, []string{"killed"}, "wait", app)
	c.gone(t)
	c.bed.Eventually("the logs are collected", patience, func() error {
		out, err := c.h.Tool(user, logsCLI, "-applicationId", app)
		for _, text := range append([]string{"LogType:stderr", "registered with YARN"}, want[1:]...) {
			if err == nil && !strings.Contains(out, text) {
				err = fmt.Errorf("no %q in %d bytes of logs", text, len(out))
			}
		}
		return err
	})
	// Nobody was left who could have removed the application's files.
	c.run(t, 0, []string{"removed " + c.fs.Home() + "/.heddle/apps/" + app, "removed " + c.fs.Home() + "/.heddle/bin/"}, "gc", "--older-than", "0s")
	c.clean(t)
	if list, err := c.fs.List(c.fs.Home() + "/.heddle/bin"); err != nil || len(list) != 0 {
		t.Errorf("programs left: %+v, %v", list, err)
	}
}

// lines reads the result of a job.
func (c *command) lines(t *testing.T, dir string) []string {
	t.Helper()
	return linesOf(t, c.fs, dir)
}

func linesOf(t *testing.T, f *hdfs.FS, dir string) (lines []string) {
	t.Helper()
	parts, err := f.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		data, err := f.ReadFile(p.Path, 1<<24)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Fields(string(data))...)
	}
	slices.Sort(lines)
	return lines
}

// testShipAlong sends a folder and a file, one of which is in HDFS, along with a job that reads them in its containers.
func (c *command) testShipAlong(t *testing.T) {
	dir := filepath.Dir(c.bed.File("along/a.txt", "one\n"))
	c.bed.File("along/b.txt", "two\nthree\n")
	extra := c.bed.File("extra.txt", "four\n")
	job := c.bed.File("along.yaml", fmt.Sprintf(`name: along
sources:
  folder: { file: { path: "in/*.txt", format: text } }
  single: { file: { path: more, format: text } }
steps:
  - union: [folder, single]
sink: { file: { path: "hdfs://%s/along", format: text } }
`, c.fs.Home()))
	c.run(t, 0, []string{"finished: along"}, "run", job, "--ship", dir+"#in", "--ship", extra+"#more")
	if got := strings.Join(c.lines(t, c.fs.Home()+"/along"), " "); got != "four one three two" {
		t.Errorf("got %q", got)
	}
	c.run(t, 2, []string{"no such file"}, "run", job, "--ship", dir+"/none")
	c.clean(t)
}

// testLocalBinary uses the program that nodes have.
func (c *command) testLocalBinary(t *testing.T) {
	job := c.bed.File("few.yaml", fmt.Sprintf(`name: few
source: { generator: { count: 3, record: { n: string(n) } } }
sink: { file: { path: "hdfs://%s/few", format: text } }
`, c.fs.Home()))
	before, err := c.fs.List(c.fs.Home() + "/.heddle/bin")
	if err != nil {
		t.Fatal(err)
	}
	c.run(t, 0, []string{"finished: few"}, "run", job, "--yarn.binary", "local:"+c.exe)
	if got := strings.Join(c.lines(t, c.fs.Home()+"/few"), " "); got != "0 1 2" {
		t.Errorf("got %q", got)
	}
	after, err := c.fs.List(c.fs.Home() + "/.heddle/bin")
	if err != nil || len(after) != len(before) {
		t.Errorf("programs in HDFS: %+v, %v; want %+v", after, err, before)
	}
	c.clean(t)
}

// testGoJob runs a job in Go by the folder of its package. What is linked dynamically and built anew is tested by package ship.
func (c *command) testGoJob(t *testing.T) {
	root, err := testbed.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	p := c.startWith(t, goEnvironment(t), "run", filepath.Join(root, "itest/yarn/gojob"), "--parallelism", "2")
	if code := p.Wait(3 * patience); code != 0 { // it is built first
		t.Fatalf("exit code %d:\n%s\n%s", code, p.Output(), c.logs())
	}
	for _, text := range []string{"building " + root + "/itest/yarn/gojob", "finished: gojob"} {
		if !strings.Contains(p.Output(), text) {
			t.Errorf("want %q in\n%s", text, p.Output())
		}
	}
	if got := c.lines(t, c.fs.Home()+"/gojob"); len(got) != 1000 {
		t.Errorf("%d lines", len(got))
	}
	c.clean(t)
}

// goEnvironment are the folders of the go command, which would else be looked for in the home of the test's user.
func goEnvironment(t *testing.T) (env []string) {
	t.Helper()
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	return env
}
