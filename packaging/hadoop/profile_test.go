package hadoop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// contract is what the scripts of Hadoop 3 do with a shell profile, as far as one can tell from outside: they source it while their own functions are
// defined, list the subcommands it added, and call yarn_subcommand_NAME with the arguments as they came. It stands in for bin/yarn where
// there is no Hadoop; with HADOOP_HOME set, the test runs that one's bin/yarn as well.
const contract = `#!/usr/bin/env bash
HADOOP_SHELL_EXECNAME=${0##*/}
usage=()
function hadoop_add_subcommand { usage+=("$1 ($2): $3"); }
function hadoop_error { echo "$*" 1>&2; }
if [[ $1 = --config ]]; then export HADOOP_CONF_DIR=$2; shift 2; fi
for profile in "$(dirname "$0")"/../libexec/shellprofile.d/*.sh; do . "$profile"; done
if [[ $# = 0 ]]; then printf '%s\n' "${usage[@]}"; exit 1; fi
subcommand=$1; shift
declare -f "${HADOOP_SHELL_EXECNAME}_subcommand_$subcommand" >/dev/null || { echo "ERROR: $subcommand is not COMMAND nor fully qualified CLASSNAME."; exit 1; }
"${HADOOP_SHELL_EXECNAME}_subcommand_$subcommand" "$@"
echo "the profile's function returned: Java would be started"
`

// program stands for heddle.
const program = `#!/bin/sh
echo "target=$HEDDLE_TARGET conf=$HADOOP_CONF_DIR"
for a in "$@"; do echo "arg=$a"; done
exit 5
`

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// home is a Hadoop with the profile, and a release of Heddle that it is linked from.
func home(t *testing.T) (hadoop, release string) {
	t.Helper()
	hadoop, release = t.TempDir(), t.TempDir()
	profile, err := os.ReadFile("heddle.sh")
	if err != nil {
		t.Fatal(err)
	}
	write(t, release+"/hadoop/heddle.sh", string(profile))
	write(t, release+"/bin/heddle", program)
	for _, name := range []string{"yarn", "hdfs"} {
		write(t, hadoop+"/bin/"+name, contract)
	}
	if err := os.MkdirAll(hadoop+"/libexec/shellprofile.d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(release+"/hadoop/heddle.sh", hadoop+"/libexec/shellprofile.d/heddle.sh"); err != nil {
		t.Fatal(err)
	}
	return hadoop, release
}

// run runs a command of a Hadoop and returns what it printed and its exit code.
func run(t *testing.T, env []string, command string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "JAVA_HOME=" + os.Getenv("JAVA_HOME")}, env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestProfile(t *testing.T) {
	hadoop, release := home(t)
	yarn := hadoop + "/bin/yarn"
	const want = "target=yarn conf=/some/conf\narg=run\narg=a b.yaml\narg=--queue\narg=x  y\narg=\n"
	args := []string{"--config", "/some/conf", "heddle", "run", "a b.yaml", "--queue", "x  y", ""}
	if out, code := run(t, nil, yarn, args...); out != want || code != 5 {
		t.Errorf("got exit code %d and %q, want 5 and %q", code, out, want)
	}
	if out, _ := run(t, []string{"HEDDLE_TARGET=local"}, yarn, "heddle", "list"); !strings.HasPrefix(out, "target=local ") {
		t.Errorf("with a target: %q", out)
	}
	if out, _ := run(t, nil, yarn); !strings.Contains(out, "heddle (client): run stream-processing jobs") {
		t.Errorf("the usage of yarn: %q", out)
	}
	if out, _ := run(t, nil, hadoop+"/bin/hdfs"); strings.Contains(out, "heddle") {
		t.Errorf("the usage of hdfs: %q", out)
	}
	other := write(t, t.TempDir()+"/other", "#!/bin/sh\necho other\n")
	if out, code := run(t, []string{"YARN_HEDDLE_PROGRAM=" + other}, yarn, "heddle"); out != "other\n" || code != 0 {
		t.Errorf("with another program: %d, %q", code, out)
	}
	if err := os.Remove(release + "/bin/heddle"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/usr/lib/heddle/bin/heddle"); err == nil {
		return // that of the package would be found
	}
	if out, code := run(t, nil, yarn, "heddle", "list"); code != 1 || !strings.Contains(out, "cannot find the program heddle") || !strings.Contains(out, "YARN_HEDDLE_PROGRAM") {
		t.Errorf("without a program: %d, %q", code, out)
	}
}

// TestProfileInHadoop runs a Hadoop's own scripts where one is installed.
func TestProfileInHadoop(t *testing.T) {
	installed := os.Getenv("HADOOP_HOME")
	if _, err := os.Stat(installed + "/bin/yarn"); installed == "" || err != nil {
		t.Log("HADOOP_HOME names no Hadoop with scripts: only the contract is tested")
		return
	}
	_, release := home(t)
	conf := t.TempDir()
	if err := os.CopyFS(conf, os.DirFS(installed+"/etc/hadoop")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(conf+"/shellprofile.d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(release+"/hadoop/heddle.sh", conf+"/shellprofile.d/heddle.sh"); err != nil {
		t.Fatal(err)
	}
	yarn := installed + "/bin/yarn"
	want := "target=yarn conf=" + conf + "\narg=run\narg=a b.yaml\narg=\n"
	if out, code := run(t, nil, yarn, "--config", conf, "heddle", "run", "a b.yaml", ""); out != want || code != 5 {
		t.Errorf("got exit code %d and %q, want 5 and %q", code, out, want)
	}
	if out, _ := run(t, nil, yarn, "--config", conf); !strings.Contains(out, "run stream-processing jobs") {
		t.Errorf("the usage of yarn:\n%s", out)
	}
	if out, _ := run(t, nil, installed+"/bin/hdfs", "--config", conf); strings.Contains(out, "stream-processing") {
		t.Errorf("the usage of hdfs:\n%s", out)
	}
}
