package kerberos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// What the benchmark does.
const (
	benchSeconds = 3
	benchMB      = 128
	benchRounds  = 3
	benchStarts  = 5
)

// TestBench measures RPC and HDFS at privacy beside Hadoop's own Java client, in turns, and a start of a job beside one on a cluster without security. It asserts
// that the secured start takes at most 1.5 times as long, by the medians.
func TestBench(t *testing.T) {
	testbed.Group(t, "kerberos-bench")
	x := startCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{
		Core:         map[string]string{"hadoop.rpc.protection": "privacy"},
		HDFS:         map[string]string{"dfs.encrypt.data.transfer": "true", "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding"},
		DataTransfer: "privacy",
	})
	x.folders(t)
	t.Run("throughput", x.benchThroughput)
	t.Run("start", x.benchStart)
}

// benchThroughput prints figures of both clients.
func (x *cluster) benchThroughput(t *testing.T) {
	if out, err := exec.Command("javac", "-cp", filepath.Join(x.h.Lib(), "*"), "-d", x.h.ConfDir, "java/Bench.java").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ours, theirs := map[string][]float64{}, map[string][]float64{}
	for range benchRounds {
		out, err := x.h.Program("alice", "Bench", "/user/alice", strconv.Itoa(benchSeconds), strconv.Itoa(benchMB))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(out) {
			name, figure, _ := strings.Cut(strings.TrimSpace(line), " ")
			if v, err := strconv.ParseFloat(figure, 64); err == nil {
				theirs[name] = append(theirs[name], v)
			}
		}
		for name, v := range x.benchOurs(t) {
			ours[name] = append(ours[name], v)
		}
	}
	for _, row := range []struct{ name, what, unit string }{{"rpc1", "getFileInfo, one at a time", "calls/s"}, {"rpc8", "getFileInfo, 8 at once", "calls/s"},
		{"write", fmt.Sprintf("write %d MiB", benchMB), "MB/s"}, {"read", fmt.Sprintf("read %d MiB", benchMB), "MB/s"}} {
		a, b := median(ours[row.name]), median(theirs[row.name])
		t.Logf("%-28s  heddle %8.0f  java %8.0f %s  (%.2f x)   %.0f %.0f", row.what, a, b, row.unit, a/b, ours[row.name], theirs[row.name])
	}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// benchOurs is one round of ours.
func (x *cluster) benchOurs(t *testing.T) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	how, err := x.identity(t, "alice").HDFS()
	if err != nil {
		t.Fatal(err)
	}
	c := hrpc.New(hrpc.Config{Protocol: clientProtocol, Addrs: []string{x.h.NameNode}, Auth: how.Security.Auth, Protection: how.Security.Protection})
	defer c.Close()
	path := "/user/alice"
	calls := func(workers int) float64 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var done atomic.Int64
		var wg sync.WaitGroup
		start := time.Now()
		for range workers {
			wg.Go(func() {
				for time.Since(start) < benchSeconds*time.Second {
					if err := c.Call(ctx, "getFileInfo", &hadooppb.GetFileInfoRequestProto{Src: &path}, &hadooppb.GetFileInfoResponseProto{}); err != nil {
						t.Error(err)
						return
					}
					done.Add(1)
				}
			})
		}
		wg.Wait()
		return float64(done.Load()) / time.Since(start).Seconds()
	}
	out["rpc1"], out["rpc8"] = calls(1), calls(8)
	f := x.open(t, "alice")
	chunk := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range chunk {
		chunk[i] = byte(r.Uint32())
	}
	const file = "/user/alice/ours"
	_ = f.RemoveAll(file)
	start := time.Now()
	if _, err := f.Upload(t.Context(), file, 0o600, func() (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(&repeated{chunk: chunk}, benchMB<<20)), nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	out["write"] = float64(benchMB<<20) / 1e6 / time.Since(start).Seconds()
	start = time.Now()
	in, err := f.OpenAt(t.Context(), file, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{in}, make([]byte, 1<<20))
	if err != nil || n != benchMB<<20 {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	_ = in.Close()
	out["read"] = float64(benchMB<<20) / 1e6 / time.Since(start).Seconds()
	return out
}

// repeated reads a chunk again and again.
type repeated struct {
	chunk []byte
	rest  bytes.Reader
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.rest.Len() == 0 {
		r.rest.Reset(r.chunk)
	}
	return r.rest.Read(b)
}

var firstRecord = regexp.MustCompile(`first record out\s+[\d,]+ ms\s+([\d,]+) ms`)

// benchStart starts the same job here and on a cluster without security, in turns.
func (x *cluster) benchStart(t *testing.T) {
	plain := testbed.StartHadoop(t, testbed.New(t), testbed.HadoopOptions{NodeManagers: 1})
	super, err := hdfs.Open(hdfs.Config{NameNodes: []string{plain.NameNode}, User: "hdfs"})
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close()
	for _, dir := range []string{"/user", "/app-logs"} {
		if err := super.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := super.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
			t.Fatal(err)
		}
	}
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	cache := "KRB5CCNAME=FILE:" + filepath.Join(x.bed.Dir("start"), "cc")
	x.kdc.Kinit(strings.TrimPrefix(cache, "KRB5CCNAME="), x.kdc.KeytabOf("alice"), "alice")
	job := x.bed.File("start/start.yaml", "name: start\nsource: { generator: { count: 20, rate: 10, record: { n: n } } }\nsink: { stdout: {} }\n")
	var with, without []float64
	for i := range benchStarts + 1 {
		a := x.firstRecord(t, exe, job, cache)
		b := x.firstRecord(t, exe, job, "HADOOP_CONF_DIR="+plain.ConfDir, "HADOOP_USER_NAME=alice")
		if i > 0 { // the first stores the program
			with, without = append(with, a), append(without, b)
		}
	}
	ratio := median(with) / median(without)
	t.Logf("first record out: with Kerberos %.0f ms %.0f, without %.0f ms %.0f: %.2f x", median(with), with, median(without), without, ratio)
	if ratio > 1.5 {
		t.Errorf("a secured start takes %.2f times as long as one without security", ratio)
	}
}

// firstRecord runs a job and returns after how many milliseconds its first record came.
func (x *cluster) firstRecord(t *testing.T, exe, job string, entries ...string) float64 {
	t.Helper()
	out, err := x.heddle(t, exe, entries, "run", job, "--target", "yarn", "--agents", "1", "--timings")
	m := firstRecord.FindStringSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
