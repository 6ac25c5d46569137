package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/yarnclient"
)

// TestCommandLine sends arguments through what YARN does to a command, and bash: they arrive as they were.
func TestCommandLine(t *testing.T) {
	args := []string{"run", "a b", "it's", `"quoted"`, "$HOME", "`id`", `back\slash`, "{{PWD}}", "<LOG_DIR>", "<CPS>", "", "a;b&c|d>e", "ünï", "!x", "-D", "k=v w"}
	line := commandLine("printf '%s\\\\0'", args)
	if !strings.HasSuffix(line, " 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr") {
		t.Fatalf("streams are not directed into the log folder: %s", line)
	}
	line = strings.TrimSuffix(line, " 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr")
	for _, magic := range []string{"{{", "}}", "<LOG_DIR>", "<CPS>"} {
		if strings.Contains(line, magic) {
			t.Errorf("YARN would replace %s in %s", magic, line)
		}
	}
	out, err := exec.Command("bash", "-c", `exec /bin/bash -c "`+line+`"`).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, line)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if strings.Join(got, "\n") != strings.Join(args, "\n") {
		t.Errorf("got %q\nwant %q", got, args)
	}
}

func TestHandedOn(t *testing.T) {
	env := handedOn([]string{"PATH=/bin", "TZ=Europe/Paris", "OTEL_SERVICE_NAME=a \"b\" $c", "HEDDLE_TARGET=yarn", "GODEBUG=x=1", "AWS_SECRET=s",
		// what a NodeManager gives an ApplicationMaster for HTTPS
		"KEYSTORE_FILE_LOCATION=/c/yarn_provided.keystore", "KEYSTORE_PASSWORD=p", "TRUSTSTORE_FILE_LOCATION=/c/yarn_provided.truststore", "TRUSTSTORE_PASSWORD=p"})
	if len(env) != 3 || env["TZ"] != "Europe/Paris" || env["GODEBUG"] != "x=1" {
		t.Errorf("handed on: %v", env)
	}
	out, err := exec.Command("bash", "-c", `X="`+env["OTEL_SERVICE_NAME"]+`"; printf %s "$X"`).Output()
	if err != nil || string(out) != `a "b" $c` {
		t.Errorf("it arrives as %q (%v)", out, err)
	}
}

// TestVariables: what options env.NAME set goes to the environment of containers and of processes.
func TestVariables(t *testing.T) {
	c := config(t, map[string]string{"env.A": "1,2", "env.b_1": "x $y"})
	if env := configured(c); len(env) != 2 || env["A"] != "1,2" || env["b_1"] != `x \$y` {
		t.Errorf("variables %v", env)
	}
	if got := variables([]string{"A=0"}, c); !slices.Equal(got, []string{"A=0", "A=1,2", "b_1=x $y"}) {
		t.Errorf("environment %q", got)
	}
}

// TestVariableFlags: names of variables are in no list of flags.
func TestVariableFlags(t *testing.T) {
	got := variableFlags([]string{"run", "--env.A=1=2", "--env.B", "x y", "--queue", "q", "--", "--env.C=1"})
	if want := []string{"run", "--define=env.A=1=2", "--define=env.B=x y", "--queue", "q", "--", "--env.C=1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgramName(t *testing.T) {
	for in, want := range map[string]string{"heddle": "heddle", "/x/my job": "my_job", "app": "heddle", "tmp": "heddle", "..": "heddle", "-x": "heddle", "launch_container.sh": "heddle", "wörter": "w_rter"} {
		if got := programName(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// config is a configuration with options set.
func config(t *testing.T, set map[string]string) *conf.Config {
	t.Helper()
	r, err := registry()
	if err != nil {
		t.Fatal(err)
	}
	c := conf.New(r)
	for name, text := range set {
		if err := c.Set(name, text, conf.FromFlag, "--"+name); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func hadoopConf(t *testing.T, set map[string]string) *hconf.Conf {
	t.Helper()
	var b strings.Builder
	for k, v := range set {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>", k, v)
	}
	c, err := hconf.Read("yarn-site.xml", []byte("<configuration>"+b.String()+"</configuration>"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestContainerSizes(t *testing.T) {
	const minimum, check = "yarn.scheduler.minimum-allocation-mb", "yarn.nodemanager.vmem-check-enabled"
	large := yarnclient.Resource{MemoryMB: 8192, VCores: 4}
	for name, x := range map[string]struct {
		hadoop, heddle map[string]string
		largest        yarnclient.Resource
		master, agent  yarnclient.Resource
		err            string
	}{
		"Hadoop's defaults":      {nil, nil, large, yarnclient.Resource{MemoryMB: 1024, VCores: 1}, yarnclient.Resource{MemoryMB: 1024, VCores: 2}, ""},
		"small, virtual counted": {map[string]string{minimum: "64"}, nil, large, yarnclient.Resource{MemoryMB: 832, VCores: 1}, yarnclient.Resource{MemoryMB: 832, VCores: 2}, ""},
		"small, not counted":     {map[string]string{minimum: "64", check: "false"}, nil, large, yarnclient.Resource{MemoryMB: 256, VCores: 1}, yarnclient.Resource{MemoryMB: 256, VCores: 2}, ""},
		"set":                    {nil, map[string]string{"agent.memory": "2GiB", "agent.cpu": "3", "appmaster.memory": "512MiB"}, large, yarnclient.Resource{MemoryMB: 512, VCores: 1}, yarnclient.Resource{MemoryMB: 2048, VCores: 3}, ""},
		"many slots":             {nil, map[string]string{"agent.slots": "16"}, large, yarnclient.Resource{MemoryMB: 1024, VCores: 1}, yarnclient.Resource{MemoryMB: 1024, VCores: 4}, ""},
		"too large":              {nil, map[string]string{"agent.memory": "16GiB"}, large, yarnclient.Resource{}, yarnclient.Resource{}, "16384 MB"},
		"too many cores":         {nil, map[string]string{"appmaster.cpu": "5"}, large, yarnclient.Resource{}, yarnclient.Resource{}, "5 cores"},
		"no resource":            {nil, map[string]string{"agent.resources": "gpu"}, large, yarnclient.Resource{}, yarnclient.Resource{}, "NAME=AMOUNT"},
		"broken":                 {map[string]string{minimum: "much"}, nil, large, yarnclient.Resource{}, yarnclient.Resource{}, minimum},
	} {
		z, err := containerSizes(config(t, x.heddle), hadoopConf(t, x.hadoop), yarnclient.NewApp{Max: x.largest})
		switch {
		case x.err != "":
			if err == nil || !strings.Contains(err.Error(), x.err) {
				t.Errorf("%s: error %v, want %q", name, err, x.err)
			}
		case err != nil || z.master != x.master || z.agent != x.agent:
			t.Errorf("%s: %+v, %v; want master %+v, agent %+v", name, z, err, x.master, x.agent)
		}
	}
}

// TestCustomResources: what the cluster does not have is refused before anything is sent.
func TestCustomResources(t *testing.T) {
	const gpu = "yarn.io/gpu"
	for name, x := range map[string]struct {
		option, wants string
		has           map[string]int64
		err           string
	}{
		"none":            {"agent.resources", gpu + "=1", map[string]int64{}, "this cluster has no resource yarn.io/gpu"},
		"master, none":    {"appmaster.resources", gpu + "=1", map[string]int64{"fpga": 3}, "this cluster has no resource yarn.io/gpu"},
		"enough":          {"agent.resources", gpu + "=2", map[string]int64{gpu: 2}, ""},
		"too many":        {"agent.resources", gpu + "=3", map[string]int64{gpu: 2}, "3 of yarn.io/gpu"},
		"it did not tell": {"agent.resources", gpu + "=3", nil, ""},
	} {
		most := yarnclient.NewApp{Max: yarnclient.Resource{MemoryMB: 8192, VCores: 4}, Custom: x.has}
		_, err := containerSizes(config(t, map[string]string{x.option: x.wants}), hadoopConf(t, nil), most)
		if x.err == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitPrecondition || !strings.Contains(e.Error(), x.err) {
			t.Errorf("%s: %v, want exit code %d and %q", name, err, exitPrecondition, x.err)
		}
	}
}

// TestUnsure: where a cluster does not say which resources it has, there is a warning, and none else.
func TestUnsure(t *testing.T) {
	gpu := map[string]int64{"yarn.io/gpu": 1}
	for _, x := range []struct {
		z    sizes
		has  map[string]int64
		want string
	}{
		{sizes{custom: gpu}, nil, "if it lacks yarn.io/gpu, YARN leaves that out"},
		{sizes{masterCustom: gpu}, nil, "yarn.io/gpu"},
		{sizes{custom: gpu}, map[string]int64{}, ""},
		{sizes{custom: map[string]int64{"x": 0}}, nil, ""},
		{sizes{}, nil, ""},
	} {
		if got := x.z.unsure(x.has); !strings.Contains(got, x.want) || x.want == "" && got != "" {
			t.Errorf("%+v, %v: %q, want %q", x.z, x.has, got, x.want)
		}
	}
}

// TestVmemHeap: what virtual memory leaves for the heap, where it is counted.
func TestVmemHeap(t *testing.T) {
	if n := vmemHeap(1024, 2.1, 1300); n != 818 {
		t.Errorf("1 GB leaves %d MB", n)
	}
	if n := vmemHeap(256, 2.1, 1300); n != 16 {
		t.Errorf("256 MB leave %d MB", n)
	}
	if n := virtualMB(); n < 100 || n > 1<<20 {
		t.Errorf("this process maps %d MB", n)
	}
}

func TestWaitReason(t *testing.T) {
	for in, want := range map[string]string{
		"": "no reason given",
		"[Mon Nov 30 14:41:19 +0000 2026] Application is Activated, waiting for resources to be assigned for AM.  Details : AM Partition = <DEFAULT_PARTITION> ; ": "Application is Activated, waiting for resources to be assigned for AM. Details : AM Partition = <DEFAULT_PARTITION> ;",
		"AM container is launched,\n waiting": "AM container is launched, waiting",
	} {
		if got := waitReason(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := waitReason(strings.Repeat("x", 1000)); len(got) > 310 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestYARNState names states as those of other applications are.
func TestYARNState(t *testing.T) {
	for _, x := range []struct{ state, final, want string }{
		{"ACCEPTED", "UNDEFINED", "accepted"}, {"RUNNING", "UNDEFINED", "running"}, {"FINISHED", "SUCCEEDED", "finished"},
		{"FINISHED", "KILLED", "canceled"}, {"FINISHED", "FAILED", "failed"}, {"KILLED", "KILLED", "killed"}, {"FAILED", "FAILED", "failed"},
	} {
		if got := yarnState(yarnclient.App{State: x.state, FinalStatus: x.final}).State; got != x.want {
			t.Errorf("%s, %s: %s, want %s", x.state, x.final, got, x.want)
		}
	}
}

// TestConclude gives every end of an application its exit code.
func TestConclude(t *testing.T) {
	for _, x := range []struct {
		app  yarnclient.App
		code int
		text string
	}{
		{yarnclient.App{State: "FINISHED", FinalStatus: "SUCCEEDED"}, 0, ""},
		{yarnclient.App{State: "FINISHED", FinalStatus: "KILLED", Diagnostics: "the job x was cancelled: 3 records in"}, 6, "was cancelled"},
		{yarnclient.App{State: "FINISHED", FinalStatus: "FAILED", Diagnostics: "the job x failed: no luck\n  | last words"}, 5, "no luck"},
		{yarnclient.App{State: "FINISHED", FinalStatus: "FAILED"}, 5, "did not say why"},
		{yarnclient.App{State: "KILLED", FinalStatus: "KILLED", Diagnostics: "killed by alice"}, 6, "killed by alice"},
		{yarnclient.App{State: "FAILED", FinalStatus: "FAILED", Diagnostics: "Application submitted by user alice to unknown queue: nowhere"}, 3, "nowhere"},
		{yarnclient.App{State: "FAILED", FinalStatus: "FAILED", Diagnostics: "AM Container for attempt exited with exitCode: 1"}, 5, "exitCode: 1"},
	} {
		s := &session{env: Env{Program: "heddle", Stderr: &syncBuffer{}, Stdout: &syncBuffer{}}}
		s.out = newTerminal(s.env, s.env.Stdout)
		removed := false
		r := &yarnRun{s: s, progress: newProgress(s, "x", "application_1_0001", true, nil), removeFolder: func() error { removed = true; return nil }}
		err := r.conclude(&x.app)
		code := s.report(err)
		if code != x.code || x.text != "" && (err == nil || !strings.Contains(err.Error(), x.text)) {
			t.Errorf("%+v: exit code %d, %v; want %d, %q", x.app, code, err, x.code, x.text)
		}
		if removed != (x.app.State != "FINISHED") {
			t.Errorf("%+v: folder removed: %v", x.app, removed)
		}
	}
}

func TestFinalStatus(t *testing.T) {
	start := time.Now()
	for _, x := range []struct {
		result appmaster.Result
		err    error
		status string
		text   string
	}{
		{appmaster.Result{Job: "x", State: "finished", Started: start, Ended: start.Add(time.Second)}, nil, "APP_SUCCEEDED", "finished"},
		{appmaster.Result{Job: "x", State: "canceled"}, nil, "APP_KILLED", "cancelled"},
		{appmaster.Result{Job: "x", State: "failed", Cause: &appmaster.Cause{Operator: "map", Message: "boom", LastLogs: []string{"last words"}}}, nil, "APP_FAILED", "operator map: boom\n  | last words"},
		{appmaster.Result{}, errors.New("no port"), "APP_FAILED", "no port"},
	} {
		status, text := finalStatus(x.result, x.err)
		if status.String() != x.status || !strings.Contains(text, x.text) {
			t.Errorf("%+v: %v, %q; want %s, %q", x.result, status, text, x.status, x.text)
		}
	}
}

func TestHDFSErrors(t *testing.T) {
	for _, x := range []struct {
		err  error
		code int
	}{
		{fmt.Errorf("cannot make x: %w", fs.ErrPermission), exitPrecondition}, {errors.New("Name node is in safe mode"), exitPrecondition},
		{errors.New("NSQuotaExceededException: Quota"), exitPrecondition}, {errors.New("cannot connect to HDFS at [x]: refused"), exitUnreachable},
		{errors.New("it is something else"), exitPrecondition},
		{fmt.Errorf("cannot connect to HDFS: %w", &krb.ExpiredError{Cache: "/c", Client: "a@R"}), exitPrecondition},
		{fmt.Errorf("cannot connect to HDFS: %w", &krb.KDCError{}), exitPrecondition},
	} {
		if e, ok := errors.AsType[*exitError](hdfsError(x.err)); !ok || e.code != x.code {
			t.Errorf("%v: %v, want %d", x.err, e, x.code)
		}
	}
}

func TestYARNErrors(t *testing.T) {
	for _, x := range []struct {
		err  error
		code int
	}{
		{&yarnclient.UnreachableError{What: "x", Err: errors.New("refused")}, exitUnreachable}, {&yarnclient.APIError{Status: 403}, exitPrecondition},
		{&yarnclient.APIError{Status: 400, Message: "invalid label"}, exitPrecondition}, {&yarnclient.APIError{Status: 404}, exitPrecondition}, {&yarnclient.APIError{Status: 500}, exitFailed},
		{usage(errors.New("x")), exitUsage},
	} {
		if e, ok := errors.AsType[*exitError](yarnError(x.err)); !ok || e.code != x.code {
			t.Errorf("%v: %v, want %d", x.err, e, x.code)
		}
	}
	if yarnError(nil) != nil {
		t.Error("an error of none")
	}
}

func TestLastLinesOf(t *testing.T) {
	for _, x := range []struct {
		text  string
		lines int
		want  string
	}{{"", 3, ""}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\n", 5, "a\nb\n"}, {"a\nb\n", 0, "a\nb\n"}} {
		if got := lastLinesOf(x.text, x.lines); got != x.want {
			t.Errorf("%q, %d: %q, want %q", x.text, x.lines, got, x.want)
		}
	}
}

// TestTokensForEach: the application gets a token for every file system involved, each once (FLINK-16595, SPARK-24149).
func TestTokensForEach(t *testing.T) {
	hc, err := hconf.Read("hadoop.xml", []byte(`<configuration>
<property><name>fs.defaultFS</name><value>hdfs://one:8020</value></property>
<property><name>dfs.nameservices</name><value>two,three</value></property>
<property><name>dfs.ha.namenodes.two</name><value>a,b</value></property>
<property><name>dfs.namenode.rpc-address.two.a</name><value>two-a:8020</value></property>
<property><name>dfs.namenode.rpc-address.two.b</name><value>two-b:8020</value></property>
<property><name>dfs.namenode.rpc-address.three</name><value>three:8020</value></property>
</configuration>`), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &hadoop{conf: hc, staging: "hdfs://three/staging"}
	systems, err := h.fileSystems(config(t, map[string]string{"yarn.file-systems": "hdfs://two,hdfs://one:8020,hdfs://three"}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range systems {
		got = append(got, fmt.Sprint(f.URI, len(f.NameNodes)))
	}
	if want := []string{"hdfs://one:80201", "hdfs://two2", "hdfs://three1"}; !slices.Equal(got, want) {
		t.Errorf("file systems %q, want %q", got, want)
	}
}
