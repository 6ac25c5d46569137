package kerberos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/yarnclient"
)

// wordCount reads and writes HDFS.
const wordCount = `name: words
source: { file: { path: "hdfs:///user/alice/words.txt", format: text } }
steps:
  - flat_map: { word: words(line) }
  - key_by: word
  - window: { global: true, aggregate: { count: count() } }
sink: { file: { path: "hdfs:///user/alice/%s", format: json } }
`

// heddle runs the command with an environment of its own and returns what it printed.
func (x *cluster) heddle(t *testing.T, exe string, entries []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(x.kdc.Env(), "PATH="+os.Getenv("PATH"), "HOME="+x.bed.Dir("home"), "HADOOP_CONF_DIR="+x.h.ConfDir)
	cmd.Env = append(cmd.Env, entries...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// asker is how somebody comes to the cluster.
type asker struct {
	env  []string
	args []string
}

// testJob counts words on the cluster, by ticket cache, by keytab and by a file of tokens alone, and with each protection of RPC and data; it seals all if it may.
func (x *cluster) testJob(t *testing.T) {
	alice := x.identity(t, "alice")
	how, err := alice.HDFS()
	if err != nil {
		t.Fatal(err)
	}
	def, err := x.conf.DefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	how.NameNodes = def.NameNodes
	f, err := hdfs.Open(how)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := strings.Repeat("to be or not to be\n", 5000)
	if _, err := f.Upload(t.Context(), "/user/alice/words.txt", 0o600, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, nil); err != nil {
		t.Fatal(err)
	}
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	rm, _ := x.yarn(t, alice, yarnclient.REST)
	creds, err := alice.Fetch(t.Context(), []hconf.FileSystem{def}, rm)
	if err != nil {
		t.Fatal(err)
	}
	tokens := x.bed.File("job-tokens", string(creds.Append(nil)))
	cache := "FILE:" + filepath.Join(x.bed.Dir("job"), "cc")
	x.kdc.Kinit(cache, x.kdc.KeytabOf("alice"), "alice")
	protected := func(by string) asker {
		conf := x.site(t, map[string]string{"hadoop.rpc.protection": by, "dfs.data.transfer.protection": by})
		return asker{env: []string{"KRB5CCNAME=" + cache, "HADOOP_CONF_DIR=" + conf}}
	}
	for name, who := range map[string]asker{
		"cache":          {env: []string{"KRB5CCNAME=" + cache}},
		"keytab":         {args: []string{"--kerberos.keytab", x.kdc.KeytabOf("alice"), "--kerberos.principal", "alice"}},
		"tokens":         {env: []string{"HADOOP_TOKEN_FILE_LOCATION=" + tokens, "KRB5CCNAME=/nowhere"}},
		"authentication": protected("authentication"),
		"integrity":      protected("integrity"),
		"privacy":        protected("privacy"),
	} {
		t.Run(name, func(t *testing.T) {
			job := x.bed.File("job/"+name+".yaml", fmt.Sprintf(wordCount, "out-"+name))
			start := time.Now()
			out, err := x.heddle(t, exe, who.env, append([]string{"run", job, "--target", "yarn", "--agents", "1"}, who.args...)...)
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, x.logs())
			}
			t.Logf("ran in %v", time.Since(start).Round(100*time.Millisecond))
			x.checkCounts(t, "/user/alice/out-"+name, out)
		})
	}
	t.Run("nobody", func(t *testing.T) {
		job := x.bed.File("job/nobody.yaml", fmt.Sprintf(wordCount, "out-nobody"))
		out, err := x.heddle(t, exe, []string{"KRB5CCNAME=/nowhere"}, "run", job, "--target", "yarn")
		ee, ok := err.(*exec.ExitError)
		if !ok || ee.ExitCode() != 3 || !strings.Contains(out, "run kinit") {
			t.Errorf("without a ticket: %v\n%s", err, out)
		}
	})
}

// checkCounts reads what wordCount wrote into a folder and compares it with what it should be. out is what heddle said.
func (x *cluster) checkCounts(t *testing.T, dir, out string) {
	t.Helper()
	f := x.open(t, "alice")
	counts := map[string]int{}
	files, err := f.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := f.ReadFile(file.Path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var r struct {
				Word  string
				Count int
			}
			if err := json.Unmarshal(line, &r); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			counts[r.Word] += r.Count
		}
	}
	if fmt.Sprint(counts) != "map[be:10000 not:5000 or:5000 to:10000]" {
		t.Errorf("the counts are %v\n%s", counts, out)
	}
}
