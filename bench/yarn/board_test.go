package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// TestRead takes the phases from what heddle run --timings prints.
func TestRead(t *testing.T) {
	const out = `application_1_0001: running for 12s, 4,000 records in (400/s), 4,000 out
cluster asked                 21 ms        23 ms
ApplicationMaster started    306 ms       517 ms
first record out             144 ms     1,595 ms
heddle: cancelled
`
	var r result
	if err := r.read(strings.ReplaceAll(out, ",", "")); err != nil {
		t.Fatal(err)
	}
	if r.first != 1595*time.Millisecond || len(r.phases) != 3 || r.at("ApplicationMaster started") != 0.517 {
		t.Errorf("read %+v", r)
	}
	if err := r.read("nothing"); err == nil {
		t.Error("read nothing without an error")
	}
}

// TestBoard judges made-up figures.
func TestBoard(t *testing.T) {
	one := func(first time.Duration, cpu time.Duration, memory int64) result {
		return result{phases: []phase{{firstOut, first}}, first: first, spent: map[string]time.Duration{client: cpu, master: cpu, agents: cpu},
			memory: map[string]int64{client: memory, master: memory, agents: memory}}
	}
	b := &board{names: []string{heddleName, "Flink, tuned"}, runs: map[string][]result{
		heddleName:     {one(time.Second, 100*time.Millisecond, 40e6), one(2*time.Second, 200*time.Millisecond, 41e6), one(60*time.Second, time.Minute, 42e6)},
		"Flink, tuned": {one(13*time.Second, 7*time.Second, 400e6)},
	}}
	var out strings.Builder
	if missed := b.print(&out); missed != 0 || !strings.Contains(out.String(), "1.00 to 60.00") || !strings.Contains(out.String(), "41 MB, 0.102 of it") {
		t.Errorf("%d goals were missed:\n%s", missed, &out)
	}
	b.runs["Flink, tuned"][0].memory[client] = 100e6
	b.runs[heddleName] = b.runs[heddleName][2:]
	if missed := b.print(&out); missed != 3 {
		t.Errorf("%d goals were missed, want 3:\n%s", missed, &out)
	}
	delete(b.runs, "Flink, tuned")
	b.names = b.names[:1]
	if missed := b.print(&out); missed != 2 {
		t.Errorf("%d goals were missed without Flink, want 2:\n%s", missed, &out)
	}
}

// TestJoin joins jars whose lists of services have the same name.
func TestJoin(t *testing.T) {
	var jars []string
	for name, files := range map[string]map[string]string{
		"a.jar": {"META-INF/MANIFEST.MF": "a", "META-INF/services/x": "A", "same.class": "1", "a.class": "a"},
		"b.jar": {"META-INF/MANIFEST.MF": "b", "META-INF/services/x": "B", "same.class": "1", "META-INF/KEY.SF": "b"},
	} {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for file, text := range files {
			f, err := w.Create(file)
			if err == nil {
				_, err = io.WriteString(f, text)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		jars = append(jars, filepath.Join(t.TempDir(), name))
		if err := os.WriteFile(jars[len(jars)-1], b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all bytes.Buffer
	w := zip.NewWriter(&all)
	if err := joinJars(w, jars); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(all.Bytes()), int64(all.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range r.File {
		b, err := contentOf(f)
		if err != nil || got[f.Name] != "" {
			t.Errorf("%s: %v, or twice", f.Name, err)
		}
		got[f.Name] = string(b)
	}
	if s := got["META-INF/services/x"]; len(got) != 3 || !strings.Contains(s, "A\n") || !strings.Contains(s, "B\n") || got["same.class"] != "1" {
		t.Errorf("joined %q", got)
	}
}

func TestNames(t *testing.T) {
	if id, ok := appIn("x application_1796062044912_0003: submitted"); !ok || id != (yarnid.Application{Cluster: 1796062044912, Number: 3}) {
		t.Errorf("found %v", id)
	}
	if _, ok := appIn("no application"); ok {
		t.Error("found an application where there is none")
	}
	if vs, err := variantsOf("tuned, provided"); err != nil || len(vs) != 2 {
		t.Errorf("variants %v, %v", vs, err)
	}
	if _, err := variantsOf("cold"); err == nil {
		t.Error("took a variant that there is not")
	}
	if d, ok := cpuOf(os.Getpid()); !ok || d < 0 || memory(os.Getpid(), "VmRSS:") == 0 {
		t.Errorf("this process has used %v, %v", d, ok)
	}
}
